#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_ready
short_description: Wait until an engine has loaded, with a heartbeat
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Waits on the engine's own host until C(/health) answers 200. While the engine loads, the terminal shows a heartbeat per host with
    phase, seconds and the engine's last log line.
  - Ends at once when the engine's process ends, instead of waiting for the deadline.
  - This is not the gate, because C(/health) stays 200 with a hung engine and with a broken build. The proofs that admit a copy
    are those of M(gb10.vllm.proxy_admit).
  - A rank without an HTTP port watches its own process and asks rank 0 (O(address)).
  - Reads the engine's log, unit and port; changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Says that it would wait, and asks nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
  action:
    description: Runs partly on the controller.
    support: full
    details: The action asks the module on the host again and again and prints the heartbeat; a look happens on the host.
options:
  address:
    description: Address to ask, the host itself or for a headless rank the host of rank 0.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
  deadline_seconds:
    description: Budget of the wait, in seconds.
    type: int
    required: true
  started_at:
    description: When the engine was started, in seconds since the epoch; bounds the log that is read. The action sets it to now.
    type: float
  heartbeat_seconds:
    description: Time between two heartbeats on the terminal, in seconds.
    type: float
    default: 10
  invocation:
    description: Which start of the unit is waited for. Set by the action, from the first look.
    type: str
    default: ""
seealso:
  - module: gb10.vllm.engine
  - module: gb10.vllm.proxy_admit
"""

EXAMPLES = r"""
- name: Wait until the engine has loaded
  gb10.vllm.engine_ready:
    deadline_seconds: 1800
"""

RETURN = r"""
verdict:
  description: C(pass), C(fail) (not in time), C(gone) (its process ended) or C(error) (could not be measured).
  type: str
  returned: always
reason:
  description: Why, in one sentence. Empty for C(pass).
  type: str
  returned: always
seconds:
  description: Seconds from the start to the verdict.
  type: float
  returned: always
phase:
  description: Where the start was.
  type: str
  returned: always
last_log_line:
  description: The engine's last log line, shortened.
  type: str
  returned: always
log:
  description: The engine's last log lines.
  type: list
  elements: str
  returned: unless passed
invocation:
  description: Which start of the unit was waited for.
  type: str
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _gate_probe, _host, _phase


def look(base: str, invocation: str) -> tuple[str, str, str]:
    """One look: verdict, reason, and which start of the unit was seen."""
    unit = _host.unit_state()
    invocation = invocation or unit.get("InvocationID", "")
    gone = _gate.process_step(unit, invocation)
    if gone:
        return _gate.GONE, gone, invocation
    health = _gate_probe.health(base)
    return (_gate.PASS, "", invocation) if health.good else (_gate.PENDING, health.reason, invocation)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 8000},
            "deadline_seconds": {"type": "int", "required": True},
            "started_at": {"type": "float"},
            "heartbeat_seconds": {"type": "float", "default": 10},
            "invocation": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    options = module.params
    started = options["started_at"] or time.time()
    base = _gate_probe.base_url(options["address"], options["port"])
    invocation, lines = options["invocation"], []
    budget = _host.Deadline(options["heartbeat_seconds"])
    try:
        while True:
            verdict, reason, invocation = look(base, invocation)
            if verdict == _gate.PENDING and time.time() - started >= options["deadline_seconds"]:
                verdict, reason = _gate.FAIL, f"not ready after {options['deadline_seconds']} s; last: {reason}"
            if verdict != _gate.PENDING or budget.left <= 0:
                break
            budget.pause(_gate_probe.LOOK_INTERVAL)
        lines = _host.last_log_lines(200, started - 1)
    except (OSError, _host.HostError) as error:
        verdict, reason = _gate.ERROR, str(error)
    module.exit_json(
        changed=False,
        verdict=verdict,
        reason=reason,
        seconds=round(time.time() - started, 3),
        phase=_phase.phase(lines),
        last_log_line=_phase.short(lines[-1]) if lines else "",
        log=lines[-30:],
        invocation=invocation,
    )


if __name__ == "__main__":
    main()
