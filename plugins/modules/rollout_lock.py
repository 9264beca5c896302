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
    other is told who has it, since when and why. A lock is never waited for.
  - Says of a lock whether it is stale. It is when its controller is this machine and the process has ended, or when the rollout has been
    silent for longer than the longest of its steps may take. A stale lock is taken over only on request (O(take_over)).
  - Writes one event into the journal in the same step, so that there is no lock without a beginning and no end with a lock.
  - Changes only the lock's file and the journal of its rollout.
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
  action:
    description: Runs partly on the controller.
    support: full
    details: The action says which process holds the lock, and looks whether the process that holds it is still there.
options:
  folder:
    description: Folder of the journals and of the lock.
    type: path
    default: /var/lib/gb10-vllm/rollouts
  state:
    description: What is wanted. V(seen) only looks.
    type: str
    choices: [held, released, seen]
    required: true
  rollout:
    description: Id of the rollout. V(any) releases whoever's lock it is, unless its controller is known to be at work.
    type: str
    default: ""
  who:
    description: The person, for others to ask. The action sets it to the user and the name of the controller.
    type: str
    default: ""
  why:
    description: What the rollout is about.
    type: str
    default: ""
  quiet_seconds:
    description: How long this rollout may be silent, in seconds. Longer than the longest of its steps may take.
    type: int
    default: 3600
  take_over:
    description: With O(state=held), take a stale lock over. A lock that is not stale is refused all the same.
    type: bool
    default: false
  event:
    description:
      - Event for the journal. With O(state=held) it is written once the lock is taken, with O(state=released) just before it is given back,
        into the journal of the rollout that holds it. O(who) is added as C(by).
    type: dict
    default: {}
  controller:
    description: The controller's process, with the keys C(host), C(boot), C(pid) and C(started). Set by the action.
    type: dict
    default: {}
  gone:
    description: Whether the process that holds the lock was looked for and is gone. Left out where that is not known. Set by the action.
    type: bool
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
before:
  description: Who held it before, null when nobody did.
  type: dict
  returned: always
stale:
  description: Why the lock that was there is stale, empty when it is not known to be.
  type: str
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _journal


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "default": _journal.FOLDER},
            "state": {"type": "str", "choices": ["held", "released", "seen"], "required": True},
            "rollout": {"type": "str", "default": ""},
            "who": {"type": "str", "default": ""},
            "why": {"type": "str", "default": ""},
            "quiet_seconds": {"type": "int", "default": 3600},
            "take_over": {"type": "bool", "default": False},
            "event": {"type": "dict", "default": {}},
            "controller": {"type": "dict", "default": {}},
            "gone": {"type": "bool"},
        },
        supports_check_mode=True,
    )
    options = module.params
    folder, rollout, now = options["folder"], options["rollout"], time.time()
    write = not module.check_mode

    def note(journal: str) -> None:
        if options["event"]:
            for event in _journal.append(folder, journal, [{**options["event"], "by": options["who"]}]):
                module.log(_journal.audit_line(journal, event))

    try:
        before = _journal.lock_holder(folder)
        stale = _journal.staleness(before, options["gone"], now) if before else ""
        changed = False
        if options["state"] == "held":
            holder = {name: options[name] for name in ("rollout", "who", "why", "quiet_seconds", "controller")}
            instead_of = before["rollout"] if before and stale and options["take_over"] else ""
            changed = _journal.acquire(folder, holder, stale, instead_of, write=write)
            if changed and write:
                note(rollout)
        elif options["state"] == "released":
            changed = _journal.release(folder, rollout, options["gone"], write=False)
            if before and write and changed:
                note(before["rollout"])
                _journal.release(folder, before["rollout"])
        module.exit_json(changed=changed, holder=_journal.lock_holder(folder), before=before, stale=stale)
    except (OSError, _host.HostError, _journal.LockedError) as error:
        module.fail_json(msg=str(error))


if __name__ == "__main__":
    main()
