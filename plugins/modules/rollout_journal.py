#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_journal
short_description: Write down what a rollout does, and read it again
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Appends events to the journal of a rollout on this host and flushes them to the disk, or reads the newest journal.
  - Runs on the first proxy, so that nothing that matters is lost with the controller.
  - Each event is also a line of the host's system log, for audits, and a sign of life of the rollout for those who look at its lock.
  - Refuses to write when another rollout holds the lock, so that a rollout whose lock was taken over does nothing more.
  - Changes only the journal's file and the time of the lock's file. Never changes or removes a line.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Writes nothing.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Each call appends its events.
options:
  folder:
    description: Folder of the journals and of the lock.
    type: path
    default: /var/lib/gb10-vllm/rollouts
  rollout:
    description: Id of the rollout. Empty means the newest one, for reading.
    type: str
    default: ""
  events:
    description:
      - What happened, with the keys C(step), C(host), C(result) and whatever else the step knows; C(time) in seconds since the
        epoch is added where it is missing. Empty means to read only.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Write down that the copy was stopped
  gb10.vllm.rollout_journal:
    rollout: 20261022-090000-cutover
    events:
      - {step: stopped, host: spark1, result: ok}
"""

RETURN = r"""
rollout:
  description: Id of the rollout, empty when there never was one.
  type: str
  returned: always
events:
  description: All events of the rollout, oldest first.
  type: list
  elements: dict
  returned: always
lock:
  description: Who holds the lock, null when nobody does.
  type: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _journal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": _journal.FOLDER},
            "rollout": {"type": "str", "default": ""},
            "events": {"type": "list", "elements": "dict", "default": []},
        },
        supports_check_mode=True,
    )
    folder, rollout, events = (module.params[name] for name in ("folder", "rollout", "events"))
    if events and not rollout:
        module.fail_json(msg="rollout is needed to write events")
    try:
        holder = _journal.lock_holder(folder)
        if events and holder and holder.get("rollout") != rollout:
            module.fail_json(
                fenced=True,
                msg=f"rollout {rollout} does not hold the lock any more, rollout {holder.get('rollout')} of {holder.get('who')} does: "
                f"nothing more is done here",
            )
        if events and not module.check_mode:
            for event in _journal.append(folder, rollout, events):
                module.log(_journal.audit_line(rollout, event))
        module.exit_json(changed=bool(events), **_journal.look(folder, rollout))
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"the journal in {folder} cannot be used: {error}")


if __name__ == "__main__":
    main()
