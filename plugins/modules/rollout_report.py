#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_report
short_description: Write the report of a rollout
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Makes one HTML page and one JSON file of a rollout, from its journal and from what its hosts know, and puts them beside the journal and,
    where asked, on the controller.
  - The page needs nothing else. It has no script and asks no network; it is made for light, dark, paper and a telephone.
  - The pictures are drawn by C(vl-convert-python) on the controller, in a process of its own. Without it the page has its tables only, and
    RV(remark) says so.
  - What an earlier report of the same rollout knew and the hosts do not know any more is taken from there, because logs are not kept for ever.
  - Reads and writes only the report's own two files in O(folder) and O(local_folder).
requirements:
  - vl-convert-python >= 1.8 (on the controller, for the pictures)
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Writes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
    details:
      - The same knowledge makes the same files. The hosts may know more of what came after a rollout some minutes later.
  action:
    description: Runs partly on the controller.
    support: full
    details:
      - The report is made on the controller; only its files are copied to the host.
options:
  history:
    description: Result of M(gb10.vllm.rollout_history).
    type: dict
    required: true
  traces:
    description: By engine host the result of M(gb10.vllm.rollout_traces). A host that could not be asked may be missing.
    type: dict
    default: {}
  proxies:
    description: By proxy the result of M(gb10.vllm.access_log_info).
    type: dict
    default: {}
  folder:
    description: Folder of the journals on the host.
    type: path
    default: /var/lib/gb10-vllm/rollouts
  local_folder:
    description: Folder on the controller, made where it is missing. A relative one begins where Ansible was started. Empty means none.
    type: str
    default: ""
notes:
  - "The JSON has C(schema) 1. Times are seconds since the epoch, lengths are seconds, sizes are bytes; null is what nobody knows."
  - "C(state) is C(ok), C(failed) or C(unfinished); C(windows) are the times without an admitted copy, C(open) when it was not over,
    C(at_least) when it may have begun before. C(hosts) has C(spans), whose C(step) is C(drain), C(stop), C(memory), C(load), C(test), C(gate),
    C(admit), C(soak) or C(failed), and C(phases) of the last load."
  - "C(changes) has the differences of releases by groups of hosts, C(traffic) the access logs in the spans C(before), C(during), C(window)
    and C(after), C(memory) the planned and the real cache, C(earlier) the rollouts before, C(events) the journal."
seealso:
  - module: gb10.vllm.rollout_history
  - module: gb10.vllm.rollout_traces
  - module: gb10.vllm.access_log_info
"""

EXAMPLES = r"""
- name: Write the report of the newest rollout
  gb10.vllm.rollout_report:
    history: "{{ history }}"
    local_folder: reports
  register: report
"""

RETURN = r"""
kept:
  description: The page on the host, empty in check mode.
  type: str
  returned: always
local:
  description: The page on the controller, empty without one.
  type: str
  returned: always
remark:
  description: Why there are no pictures, empty when there are.
  type: str
  returned: always
summary:
  description: C(rollout), C(state), C(window_seconds), C(seconds), C(serving) and C(requests) of the report.
  type: dict
  returned: always
"""
