# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which layer of a model keeps which cache. Private to this collection: may change at any time.

Every way in which published configurations say it ends in one list with one word per layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from .config_keys import LAYERS, Config, needed, whole
from .units import LayoutUnknown, ShapeRefused

FULL, SLIDING, CHUNKED, STATE, NONE = "full", "sliding", "chunked", "state", "none"

_WORDS = {
    "full_attention": FULL,
    "attention": FULL,
    "indexed_attention": FULL,
    "global_attention": FULL,
    "sliding_attention": SLIDING,
    "local_attention": SLIDING,
    "sliding_window_attention": SLIDING,
    "chunked_attention": CHUNKED,
    "linear_attention": STATE,
    "mamba": STATE,
    "mamba2": STATE,
    "kda": STATE,
    "moe": NONE,
    "mlp": NONE,
}
_LETTERS = {"M": STATE, "*": FULL, "E": NONE, "-": NONE}
_WINDOW_LETTERS = {"L": SLIDING, "G": FULL}
_UNMODELLED = {
    "compress_ratios": "compressed attention (DeepSeek V4 class)",
    "compress_rates": "compressed attention (DeepSeek V4 class)",
    "block_configs": "layers that differ one by one",
    "cla_share_factor": "cross-layer attention",
    "attn_type_list": "lightning attention",
    "attn_layer_period": "Mamba 1 layers",
    "conv_L_cache": "short convolution layers",
    "cross_attention_layers": "cross attention",
    "block_types": "recurrent blocks that alternate with windows",
    "layer_group_size": "lightning attention",
    "attention_other_setting": "windowed layers with other heads",
    "swa_num_key_value_heads": "windowed layers with other heads",
    "swa_head_dim": "windowed layers with other heads",
    "num_key_value_heads_per_layer": "layers that differ one by one",
}
# The defaults of the architecture's own configuration class: every n-th layer is full, the others are windowed.
_EVERY = {"gemma2": 2, "gemma2_text": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2}
_ALL_WINDOWED = ("mistral", "mixtral", "phi3", "starcoder2")
_QWEN = ("qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen2_5_vl", "qwen2_5_vl_text", "qwen2_vl", "qwen2_vl_text")


def layer_words(block: Config) -> list[str]:
    """One word per layer: full, sliding, chunked, state or none.

    Args:
        block: the language model's block of ``config.json``.

    Raises:
        ShapeRefused: entries are malformed, or disagree with each other or with the layer count.
        LayoutUnknown: a kind of layer whose cache this plan does not model.
    """
    for key, what in _UNMODELLED.items():
        if block.get(key) is not None:
            raise LayoutUnknown(f"config.json: {key} means {what}, a cache layout this plan does not model", key)
    count = needed(block, *LAYERS)
    words = _listed(block, count)
    if words is None:
        words = _derived(block, count)
    if block.get("use_sliding_window") is False:
        words = [FULL if word == SLIDING else word for word in words]
    shared = whole(block, "num_kv_shared_layers", least=0) or 0
    if shared >= count:
        raise ShapeRefused(f"config.json: num_kv_shared_layers {shared} of {count} layers", "num_kv_shared_layers")
    return [*words[: count - shared], *[NONE] * shared]


def _listed(block: Config, count: int) -> list[str] | None:
    """The explicit forms: a list of words, a string of letters, or lists of layer numbers."""
    answers: dict[str, list[str]] = {}
    for key in ("layer_types", "layers_block_type"):
        if block.get(key) is not None:
            answers[key] = _translate(block[key], key, _WORDS)
    if block.get("hybrid_override_pattern") is not None:
        key = "hybrid_override_pattern"
        answers[key] = _translate(block[key], key, _LETTERS)
    if block.get("linear_attn_config") is not None:
        answers["linear_attn_config"] = _numbered(block, count)
    if block.get("attn_layer_indices") is not None:
        attention = block["attn_layer_indices"]
        if any(not isinstance(i, int) or not 0 <= i < count for i in attention):
            raise ShapeRefused(f"config.json: attn_layer_indices outside 0 to {count - 1}", "attn_layer_indices")
        answers["attn_layer_indices"] = [FULL if i in attention else STATE for i in range(count)]
    for key, words in answers.items():
        if len(words) != count:
            raise ShapeRefused(f"config.json: {key} names {len(words)} layers, {LAYERS[0]} is {count}", key)
    if len({tuple(words) for words in answers.values()}) > 1:
        raise ShapeRefused(f"config.json contradicts itself: {' and '.join(answers)} differ", next(iter(answers)))
    return next(iter(answers.values()), None)


def _translate(value: object, key: str, table: dict[str, str]) -> list[str]:
    if not isinstance(value, Sequence) or (isinstance(value, str) and table is _WORDS):
        raise ShapeRefused(f"config.json: {key} is {value!r}, expected one entry per layer", key)
    strange = next((item for item in value if not isinstance(item, str) or item not in table), None)
    if strange is not None:
        raise LayoutUnknown(f"config.json: {key} holds {strange!r}, a kind of layer this plan does not model", key)
    return [table[item] for item in value]


def _numbered(block: Config, count: int) -> list[str]:
    """``linear_attn_config`` counts layers from 1 and lists both kinds."""
    key, lists = "linear_attn_config", block["linear_attn_config"]
    state, full = lists.get("kda_layers"), lists.get("full_attn_layers")
    if state is None or full is None:
        raise ShapeRefused(f"config.json: {key} needs kda_layers and full_attn_layers", key)
    if sorted([*state, *full]) != list(range(1, count + 1)):
        raise ShapeRefused(f"config.json: {key} does not name each of the layers 1 to {count} exactly once", key)
    return [STATE if number in state else FULL for number in range(1, count + 1)]


def _derived(block: Config, count: int) -> list[str]:
    """The rules: every n-th layer is full and the others are linear, chunked or windowed."""
    kind = str(block.get("model_type", ""))
    if block.get("full_attention_interval") is not None:
        every = needed(block, "full_attention_interval")
        return [FULL if (i + 1) % every == 0 else STATE for i in range(count)]
    if any(block.get(key) is not None for key in ("linear_num_value_heads", "mamba_num_heads", "mamba_n_heads")):
        raise ShapeRefused("config.json: layer_types is missing, although some layers keep a state", "layer_types")
    if block.get("attention_chunk_size") is not None:
        rotary = block.get("no_rope_layers")
        if rotary:
            if len(rotary) != count:
                raise ShapeRefused(
                    f"config.json: no_rope_layers names {len(rotary)} of {count} layers", "no_rope_layers"
                )
            return [CHUNKED if flag else FULL for flag in rotary]
        every = whole(block, "no_rope_layer_interval") or 4
        return [FULL if (i + 1) % every == 0 else CHUNKED for i in range(count)]
    return _windowed(block, count, kind)


def _windowed(block: Config, count: int, kind: str) -> list[str]:
    pattern = block.get("sliding_window_pattern")
    windowed = block.get("sliding_window") is not None and block.get("use_sliding_window") is not False
    if pattern is not None and not windowed:
        if block.get("use_sliding_window") is False:
            return [FULL] * count
        raise ShapeRefused("config.json: sliding_window_pattern without sliding_window", "sliding_window")
    if not windowed:
        return [FULL] * count
    if isinstance(pattern, (str, list)):
        if not pattern or any(item not in _WINDOW_LETTERS for item in pattern):
            raise ShapeRefused(f"config.json: sliding_window_pattern is {pattern!r}", "sliding_window_pattern")
        return [_WINDOW_LETTERS[pattern[i % len(pattern)]] for i in range(count)]
    every = whole(block, "sliding_window_pattern") or _EVERY.get(kind)
    if every:
        return [FULL if (i + 1) % every == 0 else SLIDING for i in range(count)]
    if kind in _QWEN:
        if block.get("use_sliding_window") is not True:
            return [FULL] * count
        first = needed(block, "max_window_layers", least=0)
        return [FULL if i < first else SLIDING for i in range(count)]
    if kind in _ALL_WINDOWED:
        return [SLIDING] * count
    raise ShapeRefused(
        "config.json: sliding_window is set, but neither layer_types nor sliding_window_pattern says for which layers",
        "sliding_window",
    )
