# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts of the real engine (0.32.0 on a CPU, 64 MiB of cache, 512 tokens per batch, one batch in flight) with tiny models."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import wire

LLAMA = {
    "model_type": "llama",
    "hidden_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
}
GEMMA = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 8,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "sliding_window": 256,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2,
}
NEXT = {
    "model_type": "qwen3_next",
    "num_hidden_layers": 8,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "full_attention_interval": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
}
# model, how it was started -> block size, blocks, tokens, concurrency as the engine reported them
STARTS: list[tuple[str, dict[str, Any], dict[str, Any], int, int, int, float]] = [
    ("dense, head_dim unlike hidden / heads", LLAMA, {"max_model_len": 1000}, 128, 341, 42625, 42.625),
    ("smaller blocks", LLAMA, {"max_model_len": 2048, "block_size": 64}, 64, 682, 43648, 21.3125),
    ("windows", GEMMA, {"max_model_len": 4000}, 128, 1024, 77283, 19.32075471698113),
    ("delta nets, prefix caching", NEXT, {"max_model_len": 3000}, 128, 1024, 102400, 34.13333333333333),
    ("delta nets, none", NEXT, {"max_model_len": 3000, "prefix_caching": False}, 128, 1024, 113777, 37.925925925925924),
]


@pytest.mark.parametrize(
    ("model", "engine", "block_size", "blocks", "tokens", "concurrency"),
    [case[1:] for case in STARTS],
    ids=[case[0] for case in STARTS],
)
def test_equal_to_the_engines_own_figures(
    model: dict[str, Any], engine: dict[str, Any], block_size: int, blocks: int, tokens: int, concurrency: float
) -> None:
    defaults = {"block_size": 128, "max_num_batched_tokens": 512, "batches_in_flight": 1}
    found = wire.capacity(model, {**defaults, **engine}, 64 << 20, "0.32.0")
    assert (found["block_size"], found["blocks"], found["tokens"]) == (block_size, blocks, tokens)
    assert found["concurrency"] == concurrency
