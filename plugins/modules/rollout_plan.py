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
  - The same decision serves a first run and one that was interrupted, because it looks at what runs. A host that runs what is wanted is
    not touched, and one that still loads it is waited for.
  - It is refused, with the reason and the next step, where the wanted releases are not on the hosts or are not one world.
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
    description:
      - What every host is to run. V(staged) is what the inventory asks for (C(cutover.yml)).
      - V(same) is what it runs now, started again (C(restart.yml)).
      - V(stable) is the site's stable state before, or the one named by O(to) (C(rollback.yml)). After a rollout that did not end well it is
        the state in which that rollout found the site.
      - V(resumed) is what the newest rollout was about to bring (C(resume.yml)).
    type: str
    choices: [staged, same, stable, resumed]
    default: staged
  only:
    description: With O(target=same) the hosts to restart. Empty means all. A pair is always restarted as a whole.
    type: list
    elements: str
    default: []
  to:
    description: With O(target=stable) the id of the rollout whose stable state is wanted. Empty means the one before.
    type: str
    default: ""
  legacy:
    description:
      - By host name what is there of the world before the first release. C(silence) has the units and containers to silence, C(serving)
        whether they run an engine now, C(silenced) whether the host keeps something that can be put back, C(served) whether that was
        serving, and C(start_seconds) how long its start may take.
      - A site of which nothing runs, and that has something to silence, counts as served by that; so a failure puts it back, and so does
        a rollback that has no earlier stable state, or whose O(to) is V(legacy).
    type: dict
    default: {}
  journal:
    description: The newest rollout, as M(gb10.vllm.rollout_journal) returns it. It tells whether it has ended well.
    type: dict
    default: {}
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
targets:
  description: Each host's wanted release; V(legacy) for what was silenced before the first one.
  type: dict
  returned: always
before:
  description: Each host's release before this rollout, and before those that it resumes or repairs.
  type: dict
  returned: always
already_stable:
  description: Whether the targets are the newest stable state.
  type: bool
  returned: always
records:
  description: What has to be known of each host's wanted release.
  type: dict
  returned: always
"""
