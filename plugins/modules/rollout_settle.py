#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_settle
short_description: Judge what came of a rollout
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Folds the results of all hosts into which copies serve, which hosts failed and why, and whether the release before has to be
    brought back because nothing serves.
  - Runs completely on the controller. Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  plan:
    description: Result of M(gb10.vllm.rollout_plan).
    type: dict
    required: true
  results:
    description: By host name a mapping with C(ok) and C(reason). A host that is missing counts as unreachable.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Judge what came of it
  gb10.vllm.rollout_settle:
    plan: "{{ __vllm_plan }}"
    results: {spark1: {ok: true}, spark2: {ok: false, reason: the process ended}}
"""

RETURN = r"""
ok:
  description: Whether every host did all its steps.
  type: bool
  returned: always
serving:
  description: Names of the hosts that were admitted.
  type: list
  elements: str
  returned: always
failed_hosts:
  description: By host name the reason why it failed.
  type: dict
  returned: always
restore:
  description: Whether the release before has to be brought back.
  type: bool
  returned: always
restore_legacy:
  description: Whether instead what was silenced has to be put back, because it served before and there is no release to go back to.
  type: bool
  returned: always
"""
