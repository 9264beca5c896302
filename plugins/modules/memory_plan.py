#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memory_plan
short_description: Plan how much of each host's memory an engine gets, and what that buys
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Plans the memory of a site from what M(gb10.vllm.memory_info) and M(gb10.vllm.weights_info) read on its hosts, from the engine's own
    arguments and from what the operator asks for.
  - Per host it finds the largest utilization (two decimals, rounded down) that leaves the rest of the box what it needs, the smallest
    one that holds what is asked for, and what lies between. For the site it says C(replicate), C(split) or C(neither), with the sum.
  - Figures of earlier starts of the same image, checkpoint, topology and settings replace the estimates. Before the first start the
    cache may differ from the plan by 1 GiB (about 6 percent of a usual one).
  - A configuration that is incomplete or contradicts itself is refused with the name of its entry. A cache that is not modelled gives
    the verdict C(unknown) with the reason; only the admission is judged then.
  - Runs completely on the controller, needs C(pydantic) there, and changes nothing.
requirements:
  - pydantic >= 2.7 (on the controller)
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  hosts:
    description:
      - "One entry per engine host: C(name); C(memory), the result of M(gb10.vllm.memory_info); C(replicated) and C(split), each with
        C(model), C(revision), C(digest) of the image, C(arguments) of the engine, and C(weights), the result of
        M(gb10.vllm.weights_info) with C(sizes)."
      - "C(wishes) are the variables C(vllm_plan_*) of the host without that prefix, all optional; they are described in the role
        C(gb10.vllm.memory). Sizes are in GiB, utilizations are 0.01 to 0.99."
    type: list
    elements: dict
    required: true
  topology:
    description: The arrangement whose utilization is judged.
    type: str
    choices: [replicated, split]
    default: replicated
"""

EXAMPLES = r"""
- name: Plan the memory of the site
  gb10.vllm.memory_plan:
    hosts: "{{ groups['engines'] | map('extract', hostvars, '__vllm_memory') | list }}"
    topology: "{{ vllm_topology }}"
  register: plan

- name: Show it
  ansible.builtin.debug:
    msg: "{{ plan.table.splitlines() }}"
"""

RETURN = r"""
verdict:
  description: C(replicate), C(split), C(neither), or C(unknown) for a cache that is not modelled.
  type: str
  returned: success
words:
  description: The reason and the sum behind it, one sentence per entry.
  type: list
  elements: str
  returned: success
copies:
  description:
    - The proposal for one full copy per host. Each entry has C(utilization), C(lowest), C(highest) and its C(limit), C(kv_bytes),
      C(tokens), C(requests) with C(requests_low) and C(requests_high), C(rest) and C(free) in bytes under load, C(max_num_seqs),
      C(max_num_batched_tokens), C(byte_mode) with C(byte_mode_utilization), and C(holds).
  type: list
  elements: dict
  returned: success
ranks:
  description: The same for one engine over all hosts; empty with a single host.
  type: list
  elements: dict
  returned: success
asked:
  description: C(copies) and C(ranks) once more, with the utilization that the engine's arguments set.
  type: dict
  returned: success
arguments:
  description: What to set to carry the proposal out, by arrangement and host.
  type: dict
  returned: success
admissions:
  description:
    - By host, whether the engine's own check at its start will pass once the running engine has stopped, with C(ok), C(need), C(have),
      C(missing) (bytes), C(largest) (utilization) and C(text).
  type: dict
  returned: success
problems:
  description: Why the wanted arrangement must not be started, each with C(host) and C(text); empty if it may.
  type: list
  elements: dict
  returned: success
unknown:
  description: Why there is no plan; empty if there is one.
  type: str
  returned: success
table:
  description: All of it for a person.
  type: str
  returned: success
"""
