# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which published config.json files broke an estimator, as a small invented model with its golden cost."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import config_keys, shape, units

DENSE = {"num_hidden_layers": 6, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64}
"""6 layers x 2 heads x (16 + 16) x 2 bytes = 768 bytes per token."""
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}
MAMBA = {
    "mamba_num_heads": 4,
    "mamba_head_dim": 8,
    "ssm_state_size": 16,
    "n_groups": 2,
    "conv_kernel": 4,
    "mamba_ssm_cache_dtype": "float32",
}


def without(*names: str, **more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in DENSE.items() if key not in names}, **more}


def token_cost(model: shape.ModelShape, drafting: bool = False) -> int:
    """Bytes of one token in all attention layers, two bytes per element."""
    layers = [*model.attention, *([model.draft] if drafting and model.draft else [])]
    return sum(one.count * one.kv_heads * one.dims * 2 for one in layers)


def states(model: shape.ModelShape) -> list[tuple[str, int]]:
    return [(layers.kind, layers.count) for layers in model.state]


ACCEPTED: list[tuple[str, dict[str, Any], int]] = [
    ("plain", DENSE, 768),
    ("under text_config", {"text_config": DENSE}, 768),
    ("under llm_config", {"llm_config": DENSE}, 768),
    ("under language_config", {"language_config": DENSE}, 768),
    ("two levels down", {"thinker_config": {"text_config": DENSE}, "talker_config": {"num_hidden_layers": 9}}, 768),
    ("root holds the vision tower's layer count", {"num_hidden_layers": 5, "text_config": DENSE}, 768),
    ("nested block is null", {**DENSE, "text_config": None}, 768),
    ("nested block also names a model", {"text_config": {**DENSE, "_name_or_path": "some/model"}}, 768),
    ("head_dim null", without(head_dim=None), 768),
    ("head_dim zero", without(head_dim=0), 768),
    ("hidden_size_per_head", without(hidden_size_per_head=20), 960),
    ("explicit head_dim wins", without(head_dim=20), 960),
    ("KV heads absent", without("num_key_value_heads"), 1536),
    ("KV heads null", without(num_key_value_heads=None), 1536),
    ("one KV head for all queries", without("num_key_value_heads", multi_query=True), 384),
    ("one KV head, with the class default beside it", without(num_key_value_heads=4, multi_query=True), 384),
    ("KV heads nested", without("num_key_value_heads", attn_config={"kv_n_heads": 1}), 384),
    ("n_layer, n_head, n_embd", {"n_layer": 6, "n_head": 4, "n_embd": 64, "n_head_kv": 2}, 768),
    ("wider values than keys", without(head_dim=16, v_head_dim=24), 960),
    ("latent cache", without(num_key_value_heads=4, kv_lora_rank=32, qk_rope_head_dim=8), 480),
    ("rope width 0 is a value", without(kv_lora_rank=32, qk_rope_head_dim=0, head_dim=0), 384),
    ("global head size", without(
        head_dim=16, sliding_window=8, global_head_dim=32, num_global_key_value_heads=1,
        layer_types=["sliding_attention"] * 5 + ["full_attention"]), 5 * 128 + 128),
    ("sizes of single layers", without(
        head_dim=16, per_layer_config={"02": {"head_dim": 32, "num_key_value_heads": 1}, "5": {"head_dim": 32}}),
     4 * 128 + 128 + 256),
    ("quotient repeated as kv_channels", without(kv_channels=16), 768),
    ("latent type that is known", without(kv_lora_rank=32, qk_rope_head_dim=8, model_type="deepseek_v3"), 480),
    ("shared KV layers", without(num_kv_shared_layers=2), 512),
    ("quantised weights do not change the cache", without(quantization_config={"quant_method": "awq", "bits": 4}), 768),
]  # fmt: skip


@pytest.mark.parametrize(("config", "cost"), [case[1:] for case in ACCEPTED], ids=[case[0] for case in ACCEPTED])
def test_bytes_per_token(config: dict[str, Any], cost: int) -> None:
    assert token_cost(shape.read_shape(config)) == cost


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("no layer count", without("num_hidden_layers"), "num_hidden_layers", "missing"),
    ("nothing at four levels", {"text_config": {"text_config": {"text_config": {"text_config": DENSE}}}},
     "num_hidden_layers", "missing"),
    ("only a name", {"text_config": {"_name_or_path": "some/model", "model_type": "x"}}, "text_config", "some/model"),
    ("a name as text", {"text_config": "some/model", **DENSE}, "text_config", "some/model"),
    ("a number as block", {"text_config": 3, **DENSE}, "text_config", "expected a block"),
    ("two language models", {"text_config": DENSE, "llm_config": without(num_hidden_layers=7)}, "text_config", "different"),
    ("quotient not whole", without(hidden_size=62), "head_dim", "not whole"),
    ("no head width at all", without("hidden_size"), "hidden_size", "missing"),
    ("no heads", without("num_attention_heads", "num_key_value_heads"), "num_attention_heads", "missing"),
    ("aliases disagree", without(n_layer=7), "num_hidden_layers", "n_layer=7"),
    ("KV heads disagree", without(num_kv_heads=4), "num_key_value_heads", "contradicts"),
    ("KV heads 0", without(num_key_value_heads=0), "num_key_value_heads", "at least 1"),
    ("KV heads per layer", without(num_key_value_heads=[1, 2]), "num_key_value_heads", "whole number"),
    ("a truth value", without(num_hidden_layers=True), "num_hidden_layers", "whole number"),
    ("multi_query with heads", without(num_key_value_heads=3, multi_query=True), "multi_query", "contradicts"),
    ("latent without rope", without(kv_lora_rank=32), "qk_rope_head_dim", "missing"),
    ("list and count disagree", without(layer_types=["full_attention"] * 5), "layer_types", "5"),
    ("unknown kind of layer", without(layer_types=["full_attention"] * 5 + ["telepathy"]), "layer_types", "telepathy"),
    ("letters and count disagree", without(hybrid_override_pattern="M*", **MAMBA), "hybrid_override_pattern", "2"),
    ("unknown letter", without(hybrid_override_pattern="M*M*MX", **MAMBA), "hybrid_override_pattern", "X"),
    ("two lists disagree", without(layer_types=["full_attention"] * 6, hybrid_override_pattern="M*M*M*", **MAMBA),
     "layer_types", "differ"),
    ("layers counted from 0", without(linear_attn_config={
        "kda_layers": [0, 1, 2, 3], "full_attn_layers": [4, 5], "num_heads": 2, "head_dim": 8}),
     "linear_attn_config", "1 to 6"),
    ("attention beyond the last layer", without(attn_layer_indices=[0, 6], **MAMBA), "attn_layer_indices", "0 to 5"),
    ("attention at no number", without(attn_layer_indices=["0"], **MAMBA), "attn_layer_indices", "0 to 5"),
    ("rotary flags for other layers", without(attention_chunk_size=8, no_rope_layers=[1, 0]), "no_rope_layers", "2 of 6"),
    ("pattern of strange letters", without(sliding_window=8, sliding_window_pattern="LX"), "sliding_window_pattern", "LX"),
    ("draft layers as text", without(mtp_layers_block_type="attention"), "mtp_layers_block_type", "attention"),
    ("latent windows", without(kv_lora_rank=8, qk_rope_head_dim=4, sliding_window=8, sliding_window_pattern=2),
     "kv_lora_rank", "sliding"),
    ("nothing but states", without(layer_types=["linear_attention"] * 6, **LINEAR), "layer_types", "no layer keeps keys"),
    ("window without a rule", without(sliding_window=8), "sliding_window", "layer_types"),
    ("pattern without a window", without(sliding_window_pattern=3), "sliding_window", "without"),
    ("states without a rule", without(**LINEAR), "layer_types", "state"),
    ("states without a size", without(full_attention_interval=3), "linear_num_value_heads", "none of"),
    ("state dimension missing", without(full_attention_interval=3, linear_num_value_heads=4),
     "linear_value_head_dim", "missing"),
    ("strange state type", without(full_attention_interval=3, mamba_ssm_dtype="fp12", **LINEAR), "mamba_ssm_dtype", "fp12"),
    ("draft layers disagree", without(num_nextn_predict_layers=1, mtp_num_hidden_layers=2),
     "num_nextn_predict_layers", "contradicts"),
    ("compressed attention", without(compress_ratios=[0, 4, 128]), "compress_ratios", "not model"),
    ("compressed attention, newer name", without(compress_rates={"a": 4}), "compress_rates", "not model"),
    ("latent type that is not known", without(kv_lora_rank=32, qk_rope_head_dim=8, model_type="youtu"), "kv_lora_rank", "youtu"),
    ("shared indexers", without(kv_lora_rank=32, qk_rope_head_dim=8, index_head_dim=8, indexer_types=["full", "shared"]),
     "indexer_types", "of their own"),
    ("index beside heads", without(index_head_dim=8), "index_head_dim", "latent"),
    ("indexed layers without an indexer", without(layer_types=["indexed_attention"] * 6), "indexer_head_dim", "missing"),
    ("indexed family without an indexer", without(model_type="qwen4_exp_text"), "indexer_head_dim", "missing"),
    ("channels unlike the quotient", without(kv_channels=32), "kv_channels", "contradicts"),
    ("windows with other heads", without(swa_num_key_value_heads=4), "swa_num_key_value_heads", "not model"),
    ("cross attention", without(cross_attention_layers=[3]), "cross_attention_layers", "not model"),
    ("single layers malformed", without(per_layer_config={"x": {}}), "per_layer_config", "layer number"),
    ("single layers with windows", without(per_layer_config={"1": {"sliding_window": 4}}), "per_layer_config", "layer 1"),
    ("layers one by one", without(block_configs=[]), "block_configs", "not model"),
    ("encoder and decoder", without(is_encoder_decoder=True), "is_encoder_decoder", "not modelled"),
    ("sharing all layers", without(num_kv_shared_layers=6), "num_kv_shared_layers", "6"),
    ("rope factor", without(max_position_embeddings=9, rope_scaling={"type": "linear", "factor": "two"}),
     "rope_scaling", "factor"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "key", "text"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refusal_names_the_key(config: dict[str, Any], key: str, text: str) -> None:
    with pytest.raises(units.PlanError) as refused:
        shape.read_shape(config)
    assert refused.value.key == key
    assert text in str(refused.value)


def counts(config: dict[str, Any]) -> dict[str, int]:
    model = shape.read_shape(config)
    found = {layers.kind: layers.count for layers in model.attention}
    return {**found, **{layers.kind: layers.count for layers in model.state}}


KINDS: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    ("every third is full", without(full_attention_interval=3, **LINEAR), {"full": 2, "gdn": 4}),
    ("list of kinds", without(layer_types=["linear_attention", "full_attention"] * 3, **LINEAR), {"full": 3, "gdn": 3}),
    ("renamed by the engine", without(
        layer_types=["linear_attention", "indexed_attention"] * 3, indexer_head_dim=8, indexer_compress_ratio=4,
        ple_layer_ids=[], **LINEAR), {"full": 3, "gdn": 3}),
    ("beside convolutions", without(
        layer_types=["linear_attention", "full_attention"] * 3, indexer_head_dim=8, indexer_compress_ratio=4,
        ple_layer_ids=[1, 3], ple_conv_kernel_size=4, **LINEAR), {"full": 3, "gdn": 3, "ple": 2}),
    ("newer names of the same", without(
        kv_lora_rank=8, qk_rope_head_dim=4, layer_types=["linear_attention", "full_attention"] * 3, linear_num_heads=2,
        linear_head_dim=8, linear_conv_kernel_dim=4), {"full": 3, "kda": 3}),
    ("every third is global", without(sliding_window=8, sliding_window_pattern=3), {"full": 2, "sliding": 4}),
    ("letters of windows", without(sliding_window=8, sliding_window_pattern="LLG"), {"full": 2, "sliding": 4}),
    ("the type's own pattern", without(sliding_window=8, model_type="gemma3_text"), {"full": 1, "sliding": 5}),
    ("alternating type", without(sliding_window=8, model_type="gemma2"), {"full": 3, "sliding": 3}),
    ("all windowed", without(sliding_window=8, model_type="mistral"), {"sliding": 6}),
    ("flag beats window", without(sliding_window=8, use_sliding_window=False), {"full": 6}),
    ("flag beats the list", without(
        sliding_window=8, use_sliding_window=False, layer_types=["sliding_attention"] * 6), {"full": 6}),
    ("type without windows by default", without(sliding_window=8, model_type="qwen2"), {"full": 6}),
    ("upper layers windowed", without(sliding_window=8, model_type="qwen2", use_sliding_window=True, max_window_layers=4),
     {"full": 4, "sliding": 2}),
    ("letters M, E, star, dash", without(hybrid_override_pattern="ME*M-M", **MAMBA), {"full": 1, "mamba2": 3}),
    ("block types", without(layers_block_type=["mamba", "moe", "attention"] * 2, **MAMBA), {"full": 2, "mamba2": 2}),
    ("attention by position", without(attn_layer_indices=[0, 3], **MAMBA), {"full": 2, "mamba2": 4}),
    ("numbered from 1", without(kv_lora_rank=8, qk_rope_head_dim=4, linear_attn_config={
        "kda_layers": [1, 2, 3, 5], "full_attn_layers": [4, 6], "num_heads": 2, "head_dim": 8,
        "short_conv_kernel_size": 4}), {"full": 2, "kda": 4}),
    ("chunks by flag", without(attention_chunk_size=8, no_rope_layers=[1, 1, 0, 1, 1, 0]), {"chunked": 4, "full": 2}),
    ("chunks by rule", without(attention_chunk_size=8, no_rope_layer_interval=3), {"chunked": 4, "full": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "expected"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS])
def test_kinds_of_layers(config: dict[str, Any], expected: dict[str, int]) -> None:
    assert counts(config) == expected


@pytest.mark.parametrize(
    ("more", "layers"),
    [
        ({"num_nextn_predict_layers": 1}, 1),
        ({"mtp_num_hidden_layers": 2}, 2),
        ({"num_mtp_modules": 3}, 3),
        ({"mtp_layers_block_type": ["attention", "moe"]}, 1),
        ({"mtp_hybrid_override_pattern": "*E"}, 1),
        ({"num_nextn_predict_layers": 0}, 0),
        ({}, 0),
    ],
)
def test_draft_head_counts_only_when_drafting(more: dict[str, Any], layers: int) -> None:
    model = shape.read_shape(without(**more))
    assert token_cost(model) == 768
    assert token_cost(model, drafting=True) == 768 + 128 * layers


def test_indexed_family_has_its_side_convolution() -> None:
    model = shape.read_shape(
        without(full_attention_interval=3, indexer_head_dim=8, indexer_compress_ratio=4, hc_count=2, **LINEAR)
    )
    assert states(model) == [("gdn", 4), ("ple", 1)]
    assert (model.attention[0].index_dim, model.attention[0].index_ratio) == (8, 4)


@pytest.mark.parametrize(
    ("more", "length"),
    [
        ({}, 0),
        ({"max_position_embeddings": 100, "seq_length": 80}, 80),
        ({"max_position_embeddings": 100, "rope_scaling": {"type": "linear", "factor": 2.0}}, 200),
        ({"max_position_embeddings": 100, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, 100),
        ({"max_position_embeddings": 100, "rope_parameters": {"rope_type": "llama3", "factor": 8}}, 100),
        ({"max_position_embeddings": 100, "rope_scaling": None}, 100),
    ],
)
def test_context(more: dict[str, Any], length: int) -> None:
    assert config_keys.context_length(without(**more)) == length
