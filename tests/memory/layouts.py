# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny models of different cache layouts. Their weights are made up by the engine, only their form matters."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

_COMMON = {"dtype": "bfloat16", "hidden_act": "silu", "rms_norm_eps": 1e-06, "max_position_embeddings": 8192, "vocab_size": 576,
           "tie_word_embeddings": False, "eos_token_id": 2, "rope_theta": 10000.0}  # fmt: skip

GROUPED: dict[str, Any] = {
    **_COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 96, "intermediate_size": 128,
    "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
}  # fmt: skip
"""Grouped heads, whose size is not hidden size over heads."""

WINDOWS: dict[str, Any] = {
    **_COMMON, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "sliding_window": 256,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 2, "query_pre_attn_scalar": 64,
    "rope_local_base_freq": 10000.0, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True,
}  # fmt: skip
"""Sliding windows, every fourth layer looks at everything."""

NETS: dict[str, Any] = {
    **_COMMON, "architectures": ["Qwen3NextForCausalLM"], "model_type": "qwen3_next", "hidden_size": 128, "intermediate_size": 128,
    "num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 64, "full_attention_interval": 4,
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32, "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 64, "decoder_sparse_step": 1, "norm_topk_prob": True, "partial_rotary_factor": 0.25,
}  # fmt: skip
"""Gated delta nets, every fourth layer attends."""

DRAFTS: dict[str, Any] = {**NETS, "num_nextn_predict_layers": 1}
"""The same with a draft head."""

LATENT: dict[str, Any] = {
    **_COMMON, "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 128, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": None, "first_k_dense_replace": 2, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 64, "topk_method": "greedy", "n_group": 1,
    "topk_group": 1, "norm_topk_prob": False, "routed_scaling_factor": 1.0, "scoring_func": "softmax", "moe_layer_freq": 1,
}  # fmt: skip
"""One latent vector per token (MLA)."""

ALIKE: dict[str, Any] = {
    **_COMMON, "architectures": ["MistralForCausalLM"], "model_type": "mistral", "hidden_size": 128, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 32, "sliding_window": 512,
}  # fmt: skip
"""Windows in every layer."""


def write(folder: Path, model: dict[str, Any], tokenizer: Path) -> Path:
    """A model's folder: its configuration, and the tokenizer of the lab's model."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model, indent=2))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
        shutil.copy(tokenizer / name, folder / name)
    return folder
