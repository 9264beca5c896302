#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_lock
short_description: Hold the site's lock, so that one rollout runs at a time
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Takes or gives back the lock of a site. It is taken in one step, so of two operators at the same moment one gets it and the
    other is told who has it, since when and why. A lock is never waited for and never taken away by itself.
  - Changes only the lock's file.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Also refuses in check mode when somebody else holds the lock.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  folder:
    description: Folder of the journals and of the lock.
    type: path
    default: /var/lib/gb10-vllm/rollouts
  state:
    description: What is wanted.
    type: str
    choices: [held, released]
    required: true
  rollout:
    description: Id of the rollout. V(any) releases whoever's lock it is.
    type: str
    required: true
  who:
    description: The person, for others to ask.
    type: str
    default: ""
  why:
    description: What the rollout is about.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Hold the lock
  gb10.vllm.rollout_lock:
    state: held
    rollout: 20261022-090000-cutover
    who: ada@desk
    why: replicated instead of split
"""

RETURN = r"""
holder:
  description: Who holds the lock afterwards, null when nobody does.
  type: dict
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _journal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": _journal.FOLDER},
            "state": {"type": "str", "choices": ["held", "released"], "required": True},
            "rollout": {"type": "str", "required": True},
            "who": {"type": "str", "default": ""},
            "why": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    options = module.params
    folder, rollout = options["folder"], options["rollout"]
    try:
        present = _journal.lock_holder(folder)
        if module.check_mode:
            mine = present is not None and present.get("rollout") == rollout
            if options["state"] == "held" and present is not None and not mine:
                raise _journal.LockedError(_journal.refusal(present, time.time()))
            changed = (options["state"] == "held") != mine
        elif options["state"] == "held":
            changed = _journal.acquire(folder, {"rollout": rollout, "who": options["who"], "why": options["why"]})
        else:
            changed = _journal.release(folder, rollout)
        module.exit_json(changed=changed, holder=_journal.lock_holder(folder))
    except (OSError, _host.HostError, _journal.LockedError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
