#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine
short_description: Start the engine of a host, or stop it and prove that it is gone
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - O(state=stopped) stops and disables the unit, then waits until four things are true at the same time, and names the
    ones that are not when the budget runs out. The unit is inactive, the container is gone, the port is closed, and the
    memory is back (two equal readings of MemAvailable in a row).
  - O(state=started) forgets earlier failures of the unit, enables it and starts it. It returns when the container's process
    runs; whether the engine can serve is another question (M(gb10.vllm.engine_ready)).
  - With O(release) it first points the links C(current) and C(previous) as M(gb10.vllm.current_release) does; one step instead of two
    while clients wait.
  - Changes only the unit C(vllm.service), the container C(vllm) and these links.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  state:
    description: What the engine is to be.
    type: str
    choices: [started, stopped]
    required: true
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  release:
    description: With O(state=started) the release to switch to before the start. Left out, the current one is started.
    type: str
  previous:
    description: What the link C(previous) says afterwards, as in M(gb10.vllm.current_release).
    type: str
  port:
    description: HTTP port of the engine; it must be closed after a stop.
    type: int
    default: 8000
  stop_seconds:
    description:
      - Budget of a stop including its proof, in seconds. Must be above the stop budget of the unit.
      - Memory of a stopped engine comes back within seconds to over a minute on a GB10.
    type: int
    default: 300
  settle_bytes:
    description: Two readings of MemAvailable this close to each other, in bytes, count as equal.
    type: int
    default: 268435456
  settle_interval:
    description: Seconds between two readings of MemAvailable.
    type: float
    default: 1.0
"""

EXAMPLES = r"""
- name: Stop the engine and prove it
  gb10.vllm.engine:
    state: stopped

- name: Start the current release
  gb10.vllm.engine:
    state: started
"""

RETURN = r"""
seconds:
  description: How long it took.
  type: float
  returned: always
memory_available_bytes:
  description: MemAvailable at the end, in bytes.
  type: int
  returned: always
started_at:
  description: Time of the start, seconds since the epoch by the host's clock.
  type: float
  returned: when started
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _links
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER

STOPPED = ("inactive", "failed")


def still_there(port: int) -> list[str]:
    """What of the engine is left, in words; empty when nothing is."""
    left = []
    active = _host.unit_state()["ActiveState"]
    if active not in STOPPED:
        left.append(f"unit {_host.UNIT} is {active}")
    container = _host.container_state(CONTAINER)
    if container:
        left.append(f"container {CONTAINER} is {container['status']}")
    if _host.is_listening(port):
        left.append(f"port {port} is open")
    return left


def prove_stopped(port: int, budget: _host.Deadline, settle_bytes: int, interval: float) -> list[str]:
    """Wait until nothing is left and the memory has settled; returns what is left at the end of the budget."""
    left = still_there(port)
    while left and budget.left > 0:
        budget.pause(0.5)
        left = still_there(port)
    before = _host.memory_available_bytes()
    while not left:
        if budget.left <= 0:
            return ["the free memory still changes"]
        budget.pause(interval)
        now = _host.memory_available_bytes()
        if abs(now - before) <= settle_bytes:
            break
        before = now
    return left


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["started", "stopped"], "required": True},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "release": {"type": "str"},
            "previous": {"type": "str"},
            "port": {"type": "int", "default": 8000},
            "stop_seconds": {"type": "int", "default": 300},
            "settle_bytes": {"type": "int", "default": 256 * 1024 * 1024},
            "settle_interval": {"type": "float", "default": 1.0},
        },
        supports_check_mode=True,
    )
    options = module.params
    result: dict[str, object] = {}
    try:
        unit = _host.unit_state()
        exists = unit["LoadState"] == "loaded"
        if options["state"] == "started":
            budget = _host.Deadline(options["stop_seconds"])
            switched = False
            if options["release"] is not None:
                links = _links.switch(
                    options["base_dir"], options["release"], options["previous"], write=not module.check_mode
                )
                switched, result["diff"] = links["changed"], links["diff"]
            idle = unit["ActiveState"] != "active" or unit["UnitFileState"] != "enabled"
            changed = switched or idle
            if idle and not module.check_mode:
                _host.run(["systemctl", "reset-failed", _host.UNIT], check=False)
                _host.run(["systemctl", "enable", "--quiet", _host.UNIT])
                result["started_at"] = time.time()
                _host.run(["systemctl", "start", _host.UNIT], timeout=options["stop_seconds"])
        else:
            budget = _host.Deadline(options["stop_seconds"])
            changed = bool(still_there(options["port"])) or unit["UnitFileState"] == "enabled"
            if changed and not module.check_mode:
                if exists:
                    # A running stop must not be overtaken by a boot or by somebody who starts enabled units.
                    _host.run(["systemctl", "disable", "--quiet", _host.UNIT])
                    _host.run(["systemctl", "stop", _host.UNIT], timeout=options["stop_seconds"])
                if _host.container_state(CONTAINER):
                    _host.run(["docker", "rm", "--force", CONTAINER], timeout=max(budget.left, 10), check=False)
                left = prove_stopped(options["port"], budget, options["settle_bytes"], options["settle_interval"])
                if left:
                    module.fail_json(
                        msg=f"the engine is not proven stopped after {budget.elapsed:.0f} s: {'; '.join(left)}. Nothing else was "
                        f"changed on this host; look with `systemctl status {_host.UNIT}` and `docker ps --all`"
                    )
        result["seconds"] = round(budget.elapsed, 3)
        result["memory_available_bytes"] = _host.memory_available_bytes()
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, **result)


if __name__ == "__main__":
    main()
