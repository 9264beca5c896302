# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's shape as far as its cache depends on it. Private to this collection: may change at any time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .config_keys import Config, context_length, head_dim, kv_heads, language_block, needed, whole
from .kv_dtype import checkpoint_kv_dtype
from .layer_extras import draft_layers, per_layer
from .layer_kinds import CHUNKED, FULL, NONE, SLIDING, STATE, layer_words
from .state_layers import StateLayers, state_layers
from .units import LayoutUnknown

_LATENT_MODELS = ("deepseek_v2", "deepseek_v3", "deepseek_v32", "deepseek_mtp", "kimi_k2", "kimi_linear", "glm_moe_dsa",
                  "glm4_moe_lite", "glm4_moe_lite_mtp", "glm5_next", "glm5_next_text", "pangu_ultra_moe", "axk1")  # fmt: skip
"""Model types that the engine caches as one latent vector per token; others with the same key it expands to heads."""


@dataclass(frozen=True)
class AttentionLayers:
    """Layers that keep keys and values of one form.

    Attributes:
        kind: ``full``, ``sliding`` or ``chunked``.
        count: layers of this form.
        kv_heads: heads of the whole model that are cached (1 for a latent cache).
        dims: cached elements per head and token: key width + value width, or the width of the latent vector.
        window: tokens a sliding or chunked layer looks back; 0 for full attention.
        latent: True for MLA: one vector per token, kept whole on every rank.
        index_dim: width of the indexer's key per token, 0 without an indexer.
        index_ratio: tokens per indexer key; 1 is the sparse MLA form (one fp8 key with its scale for each token), more
            than 1 the compressed one (two bytes per element, keys in the same group, raw keys in a ring).
    """

    kind: str
    count: int
    kv_heads: int
    dims: int
    window: int = 0
    latent: bool = False
    index_dim: int = 0
    index_ratio: int = 1


@dataclass(frozen=True)
class ModelShape:
    """What a plan needs to know of a model.

    Attributes:
        model_type: the configuration's own word, may be empty.
        attention: forms of attention layers, at least one.
        state: recurrent layers, if any, the widest first.
        draft: the attention layers of the model's own draft (MTP) head, counted only when drafting is on.
        context: longest context in tokens that the configuration promises, 0 if it does not say.
        kv_dtype: cache type that the checkpoint itself asks for, empty if it does not.
    """

    model_type: str
    attention: tuple[AttentionLayers, ...]
    state: tuple[StateLayers, ...] = ()
    draft: AttentionLayers | None = None
    context: int = 0
    kv_dtype: str = ""


def read_shape(config: Config, hf_quant_config: Config | None = None) -> ModelShape:
    """The shape of a model from its ``config.json``.

    Args:
        config: the whole file, parsed.
        hf_quant_config: the separate ``hf_quant_config.json`` of some quantised exports, parsed.

    Raises:
        ShapeRefused: an entry is missing, malformed or contradicts another; ``key`` names it.
        LayoutUnknown: the model is of a family whose cache this plan does not model.
    """
    block = language_block(config)
    if config.get("is_encoder_decoder") or block.get("is_encoder_decoder"):
        raise LayoutUnknown("config.json: is_encoder_decoder: cross attention is not modelled", "is_encoder_decoder")
    words = layer_words(block)
    states = words.count(STATE)
    own = per_layer(block)
    forms = Counter((word, own.get(i, (0, 0))) for i, word in enumerate(words) if word not in (NONE, STATE))
    if not forms:
        raise LayoutUnknown("config.json: no layer keeps keys and values, which is not modelled", "layer_types")
    attention = tuple(_attention(block, kind, count, *more) for (kind, more), count in sorted(forms.items()))
    state = (state_layers(block, states),) if states else ()
    if any(layers.index_ratio > 1 for layers in attention):
        state = (*state, *_side_convolutions(block))
    drafts = draft_layers(block)
    return ModelShape(
        str(block.get("model_type") or config.get("model_type") or ""),
        attention,
        state,
        _attention(block, FULL, drafts) if drafts else None,
        context_length(block),
        checkpoint_kv_dtype(config, hf_quant_config),
    )


def _attention(block: Config, kind: str, count: int, heads: int = 0, dim: int = 0) -> AttentionLayers:
    if block.get("kv_lora_rank") is not None:
        return _latent(block, kind, count)
    if block.get("index_head_dim") is not None:
        raise LayoutUnknown("config.json: index_head_dim without a latent cache is not modelled", "index_head_dim")
    if kind == FULL:
        heads = heads or whole(block, "num_global_key_value_heads") or 0
        dim = dim or whole(block, "global_head_dim") or 0
    heads, dim = heads or kv_heads(block), dim or head_dim(block)
    window = 0
    if kind == SLIDING:
        window = needed(block, "sliding_window")
    elif kind == CHUNKED:
        window = needed(block, "attention_chunk_size")
    dims = dim + (whole(block, "v_head_dim") or dim)
    indexed = "indexed_attention" in (block.get("layer_types") or ()) or str(block.get("model_type")).startswith(
        "qwen4_exp"
    )
    if not indexed and block.get("indexer_head_dim") is None:
        return AttentionLayers(kind, count, heads, dims, window)
    index = needed(block, "indexer_head_dim") * (whole(block, "indexer_kv_heads") or 1)
    return AttentionLayers(
        kind, count, heads, dims, window, index_dim=index, index_ratio=needed(block, "indexer_compress_ratio", least=2)
    )


def _latent(block: Config, kind: str, count: int) -> AttentionLayers:
    kind_of_model = block.get("model_type")
    if kind_of_model and kind_of_model not in _LATENT_MODELS:
        raise LayoutUnknown(
            f"config.json: kv_lora_rank, but {kind_of_model} is not known to be cached as one latent vector per token",
            "kv_lora_rank",
        )
    if any(item != "full" for item in block.get("indexer_types") or ()):
        raise LayoutUnknown("config.json: indexer_types has layers without an indexer of their own", "indexer_types")
    if kind != FULL:
        raise LayoutUnknown(f"config.json: kv_lora_rank with {kind} layers is not modelled", "kv_lora_rank")
    width = needed(block, "kv_lora_rank") + needed(block, "qk_rope_head_dim", least=0)
    return AttentionLayers(kind, count, 1, width, latent=True, index_dim=whole(block, "index_head_dim", least=0) or 0)


def _side_convolutions(block: Config) -> tuple[StateLayers, ...]:
    """The short convolutions beside the layers of the indexed-attention family: a group of their own, on every rank.

    Their bytes never decide a page (160 KiB against 3 MiB).
    """
    places = block.get("ple_layer_ids")
    count = 1 if places is None else len(places)
    channels = (whole(block, "hc_count") or 1) * (whole(block, "hidden_size") or 1)
    taps = (whole(block, "ple_conv_kernel_size") or 4) - 1
    return (StateLayers("ple", count, channels, taps, 0, 0, 0),) if count else ()
