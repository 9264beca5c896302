#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: legacy_units
short_description: Silence units and containers of the old world, and put them back exactly
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - O(state=silenced) stops, disables and masks units, timers, paths and sockets before the services, sets the restart policy of containers
    to C(no) and stops them. What they were is written to C(silenced.json) in O(base_dir) and flushed before anything is changed.
  - Every silenced unit is masked, because nobody can know who else enables it or starts it by name. The mask is a link to C(/dev/null) in
    C(/etc/systemd/system.control), which systemd reads before all other folders, so no unit file is moved or changed.
  - O(state=restored) takes the masks away, puts every link back, sets the restart policies, and starts what ran. Then it empties
    the record. It refuses while C(vllm.service) runs or is enabled, because the old world would stop it or be stopped by it.
  - A run that was ended in the middle can be run again, either way. An entry of the record is never written twice.
  - Changes only the units and containers that it is told or that are in the record. Never edits a unit file, a script or a cron table.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  state:
    description: V(seen) only returns the record.
    type: str
    choices: [silenced, restored, seen]
    required: true
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  units:
    description: Units to silence, as M(gb10.vllm.foreign_units) returns them. Those of the record are kept silent too.
    type: list
    elements: str
    default: []
  containers:
    description: Containers to silence, in the same way.
    type: list
    elements: str
    default: []
  rollout:
    description: Id of the rollout, for the record.
    type: str
    default: ""
  port:
    description:
      - HTTP port of the engine. What answers on it before anything is silenced is kept in the record, so that a rollback knows what to
        wait for.
    type: int
    default: 8000
  api_key:
    description: Key that the old engine wants, empty for none.
    type: str
    default: ""
  stop_seconds:
    description: Budget of the stop of one unit or container, in seconds.
    type: int
    default: 300
  start_seconds:
    description: How long a restored unit may take until it is active, in seconds. One that is still starting then is no failure.
    type: int
    default: 60
seealso:
  - module: gb10.vllm.foreign_units
"""

EXAMPLES = r"""
- name: Silence the old split and its watchdog
  gb10.vllm.legacy_units:
    state: silenced
    units: [old-split-watchdog.timer, old-split-watchdog.service, old-split.service]

- name: Put them back
  gb10.vllm.legacy_units:
    state: restored
"""

RETURN = r"""
acted_on:
  description: Units and containers that were silenced or put back.
  type: list
  elements: str
  returned: when silenced or restored
slow:
  description: Restored units that are still starting.
  type: list
  elements: str
  returned: when restored
record:
  description:
    - The record, empty without one. C(units) and C(containers) say by name what each was; C(served) is true when something answered on the
      engine's port then, and C(models) are the names of its models.
  type: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _foreign_silence, _host
from ansible_collections.gb10.vllm.plugins.module_utils._foreign_kinds import ENABLED, RUNNING


def silenced(options: dict[str, Any], write: bool) -> dict[str, Any]:
    ours = _host.unit_state()["ActiveState"] in RUNNING
    models = None if ours else _foreign_silence.served_models(options["port"], options["api_key"])
    more = {
        "rollout": options["rollout"],
        "at": _foreign_silence.now(),
        "port": options["port"],
        "served": models is not None,
        "models": models or [],
    }
    return _foreign_silence.silence(
        options["base_dir"], options["units"], options["containers"], options["stop_seconds"], more, write
    )


def restored(options: dict[str, Any], write: bool) -> dict[str, Any]:
    ours = _host.unit_state()
    if _foreign_silence.holds(_foreign_silence.read(options["base_dir"])) and (
        ours["ActiveState"] in RUNNING or ours["UnitFileState"] in ENABLED
    ):
        raise _host.HostError(
            f"{_host.UNIT} is {ours['ActiveState']} and {ours['UnitFileState']}: the old world is put back by the playbook rollback.yml "
            f"(-e vllm_rollback_to=legacy), which stops and disables ours first"
        )
    return _foreign_silence.restore(options["base_dir"], options["start_seconds"], write)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["silenced", "restored", "seen"], "required": True},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "units": {"type": "list", "elements": "str", "default": []},
            "containers": {"type": "list", "elements": "str", "default": []},
            "rollout": {"type": "str", "default": ""},
            "port": {"type": "int", "default": 8000},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "stop_seconds": {"type": "int", "default": 300},
            "start_seconds": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    options, write = module.params, not module.check_mode
    try:
        if options["state"] == "seen":
            module.exit_json(changed=False, record=_foreign_silence.read(options["base_dir"]))
        act = silenced if options["state"] == "silenced" else restored
        result = act(options, write)
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    before = result.pop("before")
    after = _foreign_silence.after(result["record"], options["state"] == "silenced") if result["changed"] else before
    module.exit_json(**result, diff={"before": before, "after": after})


if __name__ == "__main__":
    main()
