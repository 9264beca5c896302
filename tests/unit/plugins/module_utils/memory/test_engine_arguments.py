# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the engine's own arguments to what a plan needs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import engine_arguments, units

LEAST: dict[str, Any] = {"max-model-len": 262144, "gpu-memory-utilization": 0.78}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {}),
        ({"tensor-parallel-size": "2"}, {"tensor_parallel_size": 2}),
        ({"tp": 2, "max_num_batched_tokens": "4k"}, {"tensor_parallel_size": 2, "max_num_batched_tokens": 4000}),
        ({"kv-cache-dtype": "fp8", "block-size": 64}, {"kv_cache_dtype": "fp8", "block_size": 64}),
        ({"enable-prefix-caching": False}, {"prefix_caching": False}),
        ({"enable-prefix-caching": True}, {"prefix_caching": True}),
        ({"async-scheduling": False}, {"batches_in_flight": 1}),
        ({"speculative-config": {"method": "mtp", "num_speculative_tokens": 4}}, {"num_speculative_tokens": 4}),
        (
            {"speculative-config": '{"method": "qwen3_next_mtp", "num_speculative_tokens": 2}'},
            {"num_speculative_tokens": 2},
        ),
        ({"dtype": "float32"}, {"model_bytes": 4, "kv_cache_dtype": "fp32"}),
        ({"dtype": "float32", "kv-cache-dtype": "fp8"}, {"model_bytes": 4, "kv_cache_dtype": "fp8"}),
        ({"dtype": "bfloat16", "max-num-seqs": 8, "quantization": None}, {}),
    ],
)
def test_an_engines_block(more: dict[str, Any], expected: dict[str, Any]) -> None:
    found = engine_arguments.engine_block({**LEAST, **more})
    assert found == {"max_model_len": 262144, "utilization": 0.78, **expected}


@pytest.mark.parametrize(
    ("written", "value"), [("256k", 256_000), ("256K", 262_144), (2048, 2048), ("1.5k", 1500), ("1M", 1 << 20)]
)
def test_lengths_in_every_form_of_the_engine(written: Any, value: int) -> None:
    assert engine_arguments.count("max-model-len", written) == value


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"max-model-len": None}, "max-model-len"),
        ({"max-model-len": "auto"}, "max-model-len"),
        ({"max-model-len": -1}, "max-model-len"),
        ({"max-model-len": True}, "max-model-len"),
        ({"block-size": "big"}, "block-size"),
        ({"gpu-memory-utilization": 0.785}, "gpu-memory-utilization"),
        ({"gpu-memory-utilization": 1}, "gpu-memory-utilization"),
        ({"gpu-memory-utilization": "much"}, "gpu-memory-utilization"),
        ({"speculative-config": "{"}, "speculative-config"),
        ({"speculative-config": 4}, "speculative-config"),
    ],
)
def test_what_is_no_plans_is_refused_by_name(arguments: dict[str, Any], key: str) -> None:
    with pytest.raises(units.PlanError, match=key) as caught:
        engine_arguments.engine_block({**LEAST, **arguments})
    assert caught.value.key == key


@pytest.mark.parametrize(
    "arguments",
    [
        {"pipeline-parallel-size": 2},
        {"speculative-config": {"method": "ngram", "num_speculative_tokens": 4}},
        {"speculative-config": {"model": "some/drafter", "num_speculative_tokens": 4}},
    ],
)
def test_what_is_not_modelled_is_told(arguments: dict[str, Any]) -> None:
    assert "not modelled" in engine_arguments.engine_block({**LEAST, **arguments})["unmodelled"]


def test_an_engine_that_is_not_told_takes_its_own_default() -> None:
    assert engine_arguments.utilization({}) == 0.92


def test_a_releases_command_says_the_same() -> None:
    config = {"method": "mtp", "num_speculative_tokens": 4}
    command = [["serve", "m"], ["--max-model-len", "262144"], ["--no-enable-prefix-caching"], ["--trust-remote-code"],
               ["--gpu-memory-utilization", "0.78"], ["--speculative-config", json.dumps(config)], ["--x", "1", "2"]]  # fmt: skip
    arguments = engine_arguments.from_command(command)
    assert arguments["trust-remote-code"] is True
    assert arguments["x"] == ["1", "2"]
    wanted = {**LEAST, "enable-prefix-caching": False, "speculative-config": config}
    assert engine_arguments.engine_block(arguments) == engine_arguments.engine_block(wanted)
