# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Model shapes that several tests share, as configurations with the published dimensions."""

from __future__ import annotations

from typing import Any


def gated(layers: int, kv_heads: int, value_heads: int, **more: Any) -> dict[str, Any]:
    """Every fourth layer attends, the others are gated delta nets (Qwen3.5 to 3.8)."""
    return {
        "num_hidden_layers": layers,
        "full_attention_interval": 4,
        "num_key_value_heads": kv_heads,
        "head_dim": 256,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
        **more,
    }


FLASH_NEXT = gated(
    48, 2, 48, hidden_size=2560, hc_count=4, indexer_head_dim=128, indexer_kv_heads=1, indexer_compress_ratio=4,
    max_position_embeddings=262144, model_type="qwen4_exp",
)  # fmt: skip
"""The article's model."""
GEMMA_TINY = {
    "num_hidden_layers": 12,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "sliding_window": 256,
    "layer_types": ["sliding_attention"] * 10 + ["full_attention"] * 2,
}
NEXT_TINY = {
    "num_hidden_layers": 8,
    "full_attention_interval": 4,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "mamba_ssm_dtype": "float32",
}
GPT_OSS = {
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
}
MINIMAX = {"num_hidden_layers": 62, "num_key_value_heads": 8, "head_dim": 128}
DENSE = {"num_hidden_layers": 2, "num_key_value_heads": 1, "head_dim": 32}
