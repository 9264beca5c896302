#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_history
short_description: Read the journals of a rollout and of those before it
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the journal of one rollout, those of the rollouts before it, and what a report of it has kept, all on the first proxy.
  - Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Changes nothing in any mode.
  diff_mode:
    support: N/A
    details:
      - Changes nothing.
  idempotent:
    support: full
    details:
      - Changes nothing.
  action:
    description: Runs partly on the controller.
    support: full
    details: The action adds RV(ask); everything else happens on the host.
options:
  folder:
    description: Folder of the journals.
    type: path
    default: /var/lib/gb10-vllm/rollouts
  rollout:
    description: Id of the rollout. Empty means the newest one.
    type: str
    default: ""
  earlier:
    description: How many rollouts before it are read. Range 0 to 100.
    type: int
    default: 10
seealso:
  - module: gb10.vllm.rollout_journal
  - module: gb10.vllm.rollout_report
"""

EXAMPLES = r"""
- name: Read the newest rollout and the ten before it
  gb10.vllm.rollout_history:
  register: history
"""

RETURN = r"""
rollout:
  description: Id of the rollout, empty when there never was one.
  type: str
  returned: success
events:
  description: Its events, oldest first.
  type: list
  elements: dict
  returned: success
earlier:
  description: The rollouts before it, oldest first, each with C(rollout) and C(events).
  type: list
  elements: dict
  returned: success
kept:
  description: The report of it that was written before, null without one.
  type: dict
  returned: success
lock:
  description: Who holds the lock, null when nobody does.
  type: dict
  returned: success
ask:
  description:
    - What a report has to ask the other hosts. C(hosts) has by engine host the options of M(gb10.vllm.rollout_traces), C(spans) is that of
      M(gb10.vllm.access_log_info), empty when clients could feel nothing.
  type: dict
  returned: success
now:
  description: Time of this host in seconds since the epoch.
  type: float
  returned: success
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _journal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": _journal.FOLDER},
            "rollout": {"type": "str", "default": ""},
            "earlier": {"type": "int", "default": 10},
        },
        supports_check_mode=True,
    )
    folder, rollout, count = (module.params[name] for name in ("folder", "rollout", "earlier"))
    if not 0 <= count <= 100:
        module.fail_json(msg=f"earlier is {count}, it must be 0 to 100")
    known = _journal.rollouts(folder)
    if rollout and rollout not in known:
        module.fail_json(
            msg=f"rollout {rollout} has no journal in {folder}. The newest are {', '.join(known[-5:][::-1]) or 'none yet'}"
        )
    rollout = rollout or (known or [""])[-1]
    before = [name for name in known if name < rollout]
    try:
        result = {
            "events": _journal.read(folder, rollout) if rollout else [],
            "earlier": [
                {"rollout": name, "events": _journal.read(folder, name)} for name in before[len(before) - count :]
            ],
            "lock": _journal.lock_holder(folder),
        }
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"the journals in {folder} cannot be read: {error}")
    try:
        kept = _host.read_json(f"{folder}/{rollout}.report.json")
    except (OSError, _host.HostError) as error:
        # It can be made again from the journal.
        module.warn(str(error))
        kept = None
    module.exit_json(changed=False, rollout=rollout, kept=kept, now=time.time(), **result)


if __name__ == "__main__":
    main()
