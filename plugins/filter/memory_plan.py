# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory plan of a site, from plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError
from ansible_collections.gb10.vllm.plugins.module_utils._memory.wire import make_plan

DOCUMENTATION = r"""
name: memory_plan
short_description: How much of each host an engine gets, and what that buys
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Plans the memory of one model on the hosts of a site from figures alone. It reads no file, asks no host and changes nothing.
  - The engine takes C(utilization x total) from the memory that everything else on a GB10 uses too. The plan finds the largest
    utilization that leaves the rest of the box what it needs, the smallest one that holds what is asked for, the KV tokens and
    full-length requests in between, and the verdict C(replicate), C(split) or C(neither).
  - Sizes are given as C(NAME_bytes) (a whole number of bytes) or as C(NAME_gib) (1 GiB is 2^30 bytes), never both.
  - Fails with one message that names the entry when the model's configuration is incomplete, contradicts itself or describes a cache
    that is not modelled, and when an input is missing, unknown or out of range. It never fills in a guess.
  - The engine's own figure may differ from an estimate by 1 GiB until the first start of a build was measured (see O(replicated),
    C(starts)). The rules of the cache are those of vLLM 0.10 to 0.33.
positional: hosts, replicated
options:
  _input:
    description: The model's C(config.json), parsed.
    type: dict
    required: true
  hosts:
    description:
      - "The engine hosts: C(name); C(total), the memory as the engine sees it (119.6 to 121.7 GiB on a GB10, never 128)."
      - "Optional: C(available), MemAvailable with our own engine stopped; C(others), a list of C(name) and C(size) of other work at its
        peak; C(system) (default 6 GiB), what the idle host holds; C(engine_outside) (15.6 GiB), what the engine takes beside its share;
        C(keep_free) (5 GiB), what must stay available; C(start_margin) (3 GiB); C(start_drift) (0.7 GiB if there is other work);
        C(ceiling) (0.80), the highest utilization; C(engines), utilizations of further engines by name."
    type: list
    elements: dict
    required: true
  replicated:
    description:
      - "How a copy is started: C(max_model_len) in tokens and C(weights), both required."
      - "Optional: C(kv_cache_dtype) (V(auto)), C(num_speculative_tokens) (0), C(prefix_caching) (true), C(block_size) (16) as the attention
        backend wants it, C(max_num_batched_tokens) (2048), C(batches_in_flight) (by C(version)), C(mamba_cache_mode), C(tensor_parallel_size) (1),
        C(decode_context_parallel_size) (1), C(overhead) (5.3 GiB) for activations and graphs, C(weights_source), C(utilization) to judge
        instead of a proposal (one value, or one per host), and C(starts)."
      - "C(starts) holds earlier starts of this image, checkpoint and topology, oldest first: C(kv), C(concurrency), C(max_model_len), optional
        C(requested), C(tokens) and C(blocks). They replace estimates, and are needed where the layout of the cache is not known."
    type: dict
    required: true
  split:
    description: How a rank over all hosts is started, in the same form. Without C(weights) each rank takes an even part of the model.
    type: dict
  demand:
    description:
      - "What is asked of each copy: C(full_requests) of full length at once (1), KV C(tokens) in all (0), C(max_num_seqs) (12)."
    type: dict
    default: {}
  version:
    description: The build's version, empty if it is not known. Old builds group the cache differently.
    type: str
    default: ""
  hf_quant_config:
    description: The checkpoint's C(hf_quant_config.json), parsed.
    type: dict
  drafter:
    description: The C(config.json) of a separate drafter model, parsed. A draft head of the model itself needs none.
    type: dict
"""

EXAMPLES = r"""
- name: Show what two hosts can hold
  ansible.builtin.debug:
    msg: "{{ (lookup('ansible.builtin.file', 'config.json') | from_json | gb10.vllm.memory_plan(hosts, engine, demand=wish)).words }}"
  vars:
    hosts:
      - name: spark1
        total_gib: 121.69
      - name: spark2
        total_gib: 121.69
        others:
          - name: databases
            size_gib: 4.5
    engine:
      max_model_len: 262144
      weights_gib: 71
      kv_cache_dtype: fp8
      num_speculative_tokens: 4
      max_num_batched_tokens: 4096
    wish:
      full_requests: 2
"""

RETURN = r"""
_value:
  description:
    - C(verdict), and C(words) with the reason and the sum behind it.
    - C(copies) and C(ranks), one entry per host, with C(utilization), its usable band C(lowest) to C(highest) and what limits it,
      C(kv_bytes), C(tokens), C(requests) with C(requests_low) and C(requests_high), C(rest) (bytes left for other work under load), C(free)
      (after the declared work), C(max_num_seqs), C(max_num_batched_tokens), C(byte_mode) with C(byte_mode_utilization), and C(holds).
    - C(other_types), the same for the other cache type where V(auto) depends on a build that is not known.
  type: dict
"""


def memory_plan(
    model: Mapping[str, Any],
    hosts: Sequence[Mapping[str, Any]],
    replicated: Mapping[str, Any],
    split: Mapping[str, Any] | None = None,
    demand: Mapping[str, Any] | None = None,
    version: str = "",
    hf_quant_config: Mapping[str, Any] | None = None,
    drafter: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Hands everything to the plan; a refusal becomes a filter error that names the entry."""
    try:
        return make_plan(
            {
                "model": model,
                "hosts": hosts,
                "replicated": replicated,
                "split": split,
                "demand": demand,
                "version": version,
                "hf_quant_config": hf_quant_config,
                "drafter": drafter,
            }
        )
    except PlanError as error:
        raise AnsibleFilterError(f"memory_plan: {error}") from error


class FilterModule:
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters of this file by name."""
        return {"memory_plan": memory_plan}
