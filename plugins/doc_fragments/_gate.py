# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the gate's proofs. Private to this collection: may change at any time."""

from __future__ import annotations


class ModuleDocFragment:
    """C(DOCUMENTATION): what a copy has to prove; C(SERIES): how often, and in what time."""

    DOCUMENTATION = r"""
options:
  model:
    description: Name that C(/v1/models) must show.
    type: str
    required: true
  max_model_len:
    description: Shortest acceptable length in tokens; not looked at when left out.
    type: int
  prompt:
    description: Prompt of the completions. Choose one whose answer is short and known.
    type: str
    default: What is the capital of France? Answer with one word.
  expect:
    description: Regular expression that the answer must match.
    type: str
    default: (?i)\bparis\b
  max_tokens:
    description:
      - Bound of an answer in tokens.
      - A thinking model that ignores the request not to think needs room. When thinking takes all of it the verdict is C(error).
    type: int
    default: 64
  completion_seconds:
    description: How long one completion may take, in seconds.
    type: float
    default: 60
  api_key:
    description: Key that the engine was started with; sent with every request that may need it.
    type: str
    default: ""
"""

    SERIES = r"""
options:
  successes:
    description: Good looks in a row; one look asks for a completion and for a streamed one.
    type: int
    default: 2
  minimum_healthy_seconds:
    description: Time between the first and the last of them, in seconds.
    type: float
    default: 1
  deadline_seconds:
    description: Budget of the proofs, in seconds.
    type: int
    required: true
"""
