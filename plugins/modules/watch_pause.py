#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: watch_pause
short_description: Keep the programs that act by themselves on a host from acting, for a while
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Watchdog, pair keeper and memory guard look into a folder of the host before they act. Each file in it keeps them from acting, until
    its time is over. A file that they cannot understand does so as well, so an operator without Ansible may just C(touch) one.
  - O(state=paused) writes the file O(name), O(state=resumed) removes it, O(state=seen) only says what there is. Other files in the folder
    are never touched.
  - A pause that ends within O(seconds) is written again only when less than half of O(seconds) is left, or when O(why) is new.
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
    description: What is wanted.
    type: str
    choices: [paused, resumed, seen]
    required: true
  folder:
    description: Folder with one file per pause. Created when it is missing.
    type: path
    default: /var/lib/gb10-vllm/pause
  name:
    description: Name of the file, letters, digits, and C(._-); whoever pauses takes a name of its own.
    type: str
    default: operator.json
  seconds:
    description: After this many seconds the pause ends by itself, 1 or more. Left out, it lasts until it is taken back.
    type: int
  who:
    description: Who pauses.
    type: str
    default: an operator
  why:
    description: Why, in words.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Let nothing act by itself for an hour
  gb10.vllm.watch_pause:
    state: paused
    seconds: 3600
    why: the power supply is being changed

- name: Let it act again
  gb10.vllm.watch_pause:
    state: resumed
"""

RETURN = r"""
paused:
  description: Why nothing may act now, by all files together; empty when something may.
  type: str
  returned: always
files:
  description: What each file says; null for one that cannot be understood.
  type: dict
  returned: always
"""

import json
import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _pause


def wanted(options: dict[str, Any], now: float) -> dict[str, Any]:
    seconds = options["seconds"]
    until = None if seconds is None else round(now + seconds, 3)
    return {"until": until, "who": options["who"], "why": options["why"], "since": round(now, 3)}


def is_enough(there: Any, new: dict[str, Any], seconds: float | None, now: float) -> bool:
    """Whether the file there says the same, for a time that is long enough."""
    if not isinstance(there, dict) or any(there.get(key) != new[key] for key in ("who", "why")):
        return False
    until = there.get("until")
    if seconds is None or not isinstance(until, (int, float)):
        return seconds is None and until is None
    return now + seconds / 2 < until <= now + seconds


def act(options: dict[str, Any], write: bool, now: float) -> dict[str, Any]:
    """Bring the file into its state; with `write` false only say what would be."""
    folder, name = options["folder"], options["name"]
    path = os.path.join(folder, name)
    before = _pause.read(folder)
    after, there = dict(before), os.path.lexists(path)
    changed = False
    if options["state"] == "paused":
        new = wanted(options, now)
        changed = not is_enough(before.get(name), new, options["seconds"], now)
        after.update({name: new} if changed else {})
    elif options["state"] == "resumed":
        changed = there
        after.pop(name, None)
    if changed and write:
        if options["state"] == "paused":
            os.makedirs(folder, mode=0o755, exist_ok=True)
            _host.write_atomically(path, json.dumps(after[name]) + "\n")
        else:
            os.unlink(path)
            _host.sync_folder(folder)
    text = {
        key: json.dumps(files.get(name), indent=2) + "\n" if name in files else ""
        for key, files in (("before", before), ("after", after))
    }
    diff = {**text, "before_header": path, "after_header": path}
    return {"changed": changed, "paused": _pause.reason(after, now), "files": after, "diff": diff}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["paused", "resumed", "seen"], "required": True},
            "folder": {"type": "path", "default": _pause.FOLDER},
            "name": {"type": "str", "default": "operator.json"},
            "seconds": {"type": "int"},
            "who": {"type": "str", "default": "an operator"},
            "why": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    name, seconds = module.params["name"], module.params["seconds"]
    if not _pause.NAME.fullmatch(name):
        module.fail_json(
            msg=f"name is {name!r}: letters, digits, and ._-, at most 64, beginning with a letter or a digit"
        )
    if seconds is not None and seconds < 1:
        module.fail_json(msg=f"seconds is {seconds}: must be 1 or more; leave it out for a pause without an end")
    try:
        result = act(module.params, not module.check_mode, time.time())
    except OSError as error:
        module.fail_json(
            msg=f"the pause {name} in {module.params['folder']} could not be changed: {error.strerror or error}"
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
