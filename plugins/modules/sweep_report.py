#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sweep_report
short_description: Write what was measured as a page with pictures, and compare split with copies
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Makes one HTML page, one JSON file and one SVG file for each picture from sweeps and scores. The page needs nothing else; it has no script
    and asks no network, and it is made for light, dark, paper and a telephone, like the report of a rollout.
  - With O(copies) it also compares a pair with that many copies at the same number of requests in all, and recommends one in words.
  - The pictures are drawn by C(vl-convert-python) on the controller. Without it the page has its tables only, and RV(remark) says so.
  - Writes only into O(local_folder).
requirements:
  - vl-convert-python >= 1.8 (on the controller, for the pictures)
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
  action:
    description: Runs completely on the controller.
    support: full
options:
  title:
    description: Title of the page.
    type: str
    required: true
  name:
    description: Name of the files, without their endings.
    type: str
    required: true
  sweeps:
    description: Results of M(gb10.vllm.sweep), each with the key C(host).
    type: list
    elements: dict
    default: []
  copies:
    description: How many copies are compared with the pair; 0 compares nothing.
    type: int
    default: 0
  full_requests:
    description: Requests of full length that one engine has to hold at once, for the comparison.
    type: float
    default: 1.0
  scores:
    description: Scores over time, each with C(time) in seconds since the epoch, C(score), C(verdict) and C(label).
    type: list
    elements: dict
    default: []
  record:
    description: A record that another site may take over, written beside the page as C(NAME.record.json). Empty means none.
    type: dict
    default: {}
  local_folder:
    description: Folder on the controller, made where it is missing. A relative one begins where Ansible was started. Empty means none.
    type: str
    default: ""
seealso:
  - module: gb10.vllm.sweep
  - module: gb10.vllm.rollout_report
"""

EXAMPLES = r"""
- name: Write what was measured
  gb10.vllm.sweep_report:
    title: spark2 over concurrency
    name: tune-spark2
    sweeps: ["{{ sweep | combine({'host': 'spark2'}) }}"]
    local_folder: reports
"""

RETURN = r"""
comparison:
  description: Both sides at the same number of requests, C(recommendation) and C(words); empty without O(copies).
  type: dict
  returned: success
table:
  description: The comparison for a person, line by line.
  type: list
  elements: str
  returned: success
local:
  description: The page, empty when none was written.
  type: str
  returned: success
remark:
  description: Why there are no pictures, empty when there are.
  type: str
  returned: success
"""
