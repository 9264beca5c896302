#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: access_log_info
short_description: Count requests in the proxy's access log
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Counts the requests in the access log that the role P(gb10.vllm.proxy#role) writes, by status and by copy, in named spans of time.
  - A request belongs to the second in which it ended, the only time that the log has. Requests for C(/health) are left out.
  - Reads only the part of the log that belongs to the spans, the last two rotated files included, and no more than
    O(most_megabytes) or for longer than O(seconds). Returns counts only, no address and no path.
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
    details: A host that cannot be reached becomes a failed result; everything else happens on the host.
options:
  path:
    description: The access log.
    type: path
    default: /var/log/nginx/gb10-vllm.access.log
  spans:
    description: Named spans, each a mapping with C(name), C(from) and C(to), in seconds since the epoch.
    type: list
    elements: dict
    required: true
  most_megabytes:
    description: How much of the log is read at most, in MB. Range 1 to 1024.
    type: int
    default: 64
  seconds:
    description: For how long it is read at most, in seconds. Range 1 to 300.
    type: float
    default: 15
"""

EXAMPLES = r"""
- name: Count the last ten minutes
  gb10.vllm.access_log_info:
    spans:
      - {name: now, from: "{{ now().timestamp() - 600 }}", to: "{{ now().timestamp() }}"}
  register: counted
"""

RETURN = r"""
spans:
  description:
    - By name C(requests), C(statuses), and of those with status 200 C(copies).
    - C(seconds_classes) and C(first_byte_classes) count durations; class C(n) is 1.1 to the power of C(n) seconds, within 5 percent.
  type: dict
  returned: success
series:
  description: Requests with status 200 (C(answered)) and others (C(failed)), in steps of C(step_seconds) beginning at C(from).
  type: dict
  returned: success
unreadable:
  description: Lines that are not of this log's format.
  type: int
  returned: success
cut:
  description: Whether a limit ended the count before the log ended.
  type: bool
  returned: success
found:
  description: Whether there is such a log.
  type: bool
  returned: success
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _access_log

LIMITS = {"most_megabytes": (1, 1024), "seconds": (1, 300)}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "default": "/var/log/nginx/gb10-vllm.access.log"},
            "spans": {"type": "list", "elements": "dict", "required": True},
            "most_megabytes": {"type": "int", "default": 64},
            "seconds": {"type": "float", "default": 15},
        },
        supports_check_mode=True,
    )
    asked = module.params
    for name, (least, most) in LIMITS.items():
        if not least <= asked[name] <= most:
            module.fail_json(msg=f"{name} is {asked[name]}, it must be {least} to {most}")
    try:
        spans = [(str(span["name"]), float(span["from"]), float(span["to"])) for span in asked["spans"]]
    except (KeyError, TypeError, ValueError) as error:
        module.fail_json(
            msg=f"spans is {asked['spans']!r}: each needs a name, from and to in seconds since the epoch ({error})"
        )
    if not spans or any(begin > end for _name, begin, end in spans):
        module.fail_json(msg=f"spans is {asked['spans']!r}: there must be one, and none may end before it begins")
    try:
        log = _access_log.Log(asked["path"], min(span[1] for span in spans), asked["most_megabytes"] * 1_000_000)
        result = _access_log.tally(log, spans, asked["seconds"])
    except OSError as error:
        module.fail_json(msg=f"the access log {asked['path']} cannot be read: {error}")
    module.exit_json(changed=False, found=os.path.exists(asked["path"]), **{**result, "cut": result["cut"] or log.cut})


if __name__ == "__main__":
    main()
