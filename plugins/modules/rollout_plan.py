#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_plan
short_description: Decide what a rollout has to do
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Compares what runs with what is wanted and picks the path, which is one of C(none), C(rolling) or C(switch), with each host's steps.
  - For a rollback the wanted release of each host is the one that ran before, as its files are on the host's disk; it is
    refused, with the reason and the next step, where that would not bring one world back.
  - Runs completely on the controller, from facts that other tasks have read. Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  engines:
    description:
      - One entry per engine host, in the order of the ranks, with the keys C(name), C(rank), C(engine) (the result of
        M(gb10.vllm.engine_info)) and, for a cutover, C(staged) (the result of M(gb10.vllm.release)).
    type: list
    elements: dict
    required: true
  admitted:
    description: Names of the hosts that are in the proxy's upstream.
    type: list
    elements: str
    required: true
  target:
    description: Whether the staged or the previous releases are wanted.
    type: str
    choices: [staged, previous]
    default: staged
"""

EXAMPLES = r"""
- name: Decide what to do
  gb10.vllm.rollout_plan:
    engines: "{{ groups['engines'] | map('extract', hostvars, '__vllm_facts') | list }}"
    admitted: "{{ __vllm_proxy.admitted }}"
"""

RETURN = r"""
path:
  description: One of C(none), C(rolling) or C(switch).
  type: str
  returned: always
topology:
  description: The topology afterwards.
  type: str
  returned: always
words:
  description: The plan in one sentence.
  type: str
  returned: always
hosts:
  description: Each host's steps, by name.
  type: dict
  returned: always
"""
