# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading single entries of a ``config.json``. Private to this collection: may change at any time.

An entry that is absent has a meaning (the model type's default); an entry that is there and makes no sense is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .units import ShapeRefused

Config = Mapping[str, Any]

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
HIDDEN = ("hidden_size", "n_embd", "d_model")
KV_HEADS = ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num", "num_attention_groups")
HEAD_DIM = ("head_dim", "hidden_size_per_head")

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
_REFERENCES = ("_name_or_path", "name_or_path", "model_name", "model_name_or_path", "pretrained_model_name_or_path")
_DEPTH = 3


def whole(block: Config, *names: str, least: int = 1) -> int | None:
    """The whole number under the first of several names for the same thing.

    Args:
        block: the configuration block.
        names: accepted names; null counts as absent.
        least: smallest value that makes sense.

    Returns:
        The value, or None if no name is present.

    Raises:
        ShapeRefused: not a whole number, below ``least``, or two names with different values.
    """
    found: dict[str, int] = {}
    for name in names:
        value = block.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ShapeRefused(f"config.json: {name} is {value!r}, expected a whole number of at least {least}", name)
        found[name] = value
    if len(set(found.values())) > 1:
        told = " and ".join(f"{name}={value}" for name, value in found.items())
        raise ShapeRefused(f"config.json contradicts itself: {told}", next(iter(found)))
    return next(iter(found.values()), None)


def needed(block: Config, *names: str, least: int = 1) -> int:
    """As ``whole``, but absent is refused too, naming the first of the names."""
    value = whole(block, *names, least=least)
    if value is None:
        raise ShapeRefused(f"config.json: {names[0]} is missing", names[0])
    return value


def language_block(config: Config, depth: int = _DEPTH) -> Config:
    """The block that describes the language model, at most three levels below the root.

    A nested block wins over the root, whose layer count may be the vision tower's.

    Raises:
        ShapeRefused: no block has a layer count, a block only names another model, or two blocks disagree.
    """
    found: dict[str, Config] = {}
    for name in _NESTED if depth else ():
        nested = config.get(name)
        if nested is None:
            continue
        if isinstance(nested, str):
            raise _reference(name, nested)
        if not isinstance(nested, Mapping):
            raise ShapeRefused(f"config.json: {name} is {nested!r}, expected a block", name)
        named = next((nested[key] for key in _REFERENCES if nested.get(key)), None)
        if named and not _has_layers(nested, depth - 1):
            raise _reference(name, str(named))
        found[name] = language_block(nested, depth - 1)
    if len({whole(block, *LAYERS) for block in found.values()}) > 1:
        told = " and ".join(found)
        raise ShapeRefused(f"config.json: {told} describe language models of different depth", next(iter(found)))
    if found:
        return next(iter(found.values()))
    if whole(config, *LAYERS) is None:
        raise ShapeRefused(
            "config.json: num_hidden_layers is missing, at the root and in every nested block", LAYERS[0]
        )
    return config


def _has_layers(block: Config, depth: int) -> bool:
    if any(block.get(name) is not None for name in LAYERS):
        return True
    return depth > 0 and any(
        _has_layers(block[key], depth - 1) for key in _NESTED if isinstance(block.get(key), Mapping)
    )


def _reference(name: str, model: str) -> ShapeRefused:
    return ShapeRefused(
        f"config.json: {name} only names another model, {model!r}; give the config.json of {model!r} instead", name
    )


def kv_heads(block: Config) -> int:
    """KV heads of the whole model. Absent means one per attention head, one in all with ``multi_query``."""
    nested = block.get("attn_config")
    if isinstance(nested, Mapping) and nested.get("kv_n_heads") is not None:
        return needed(nested, "kv_n_heads")
    found = whole(block, *KV_HEADS)
    if block.get("multi_query") is True and not block.get("new_decoder_architecture"):
        # one KV head per attention head is what the configuration class fills in by itself
        if found not in (None, 1, whole(block, *HEADS)):
            raise ShapeRefused(f"config.json contradicts itself: multi_query with {found} KV heads", "multi_query")
        return 1
    return found if found is not None else needed(block, *HEADS)


def head_dim(block: Config) -> int:
    """Width of one head. An explicit value wins, also over hidden size / heads; else that quotient if it is whole."""
    for name in HEAD_DIM:
        explicit = whole(block, name, least=0)
        if explicit:
            return explicit
    hidden, heads = needed(block, *HIDDEN), needed(block, *HEADS)
    if hidden % heads:
        raise ShapeRefused(f"config.json: head_dim is missing and {hidden} / {heads} heads is not whole", HEAD_DIM[0])
    other = whole(block, "kv_channels")
    if other not in (None, hidden // heads):
        raise ShapeRefused(
            f"config.json contradicts itself: kv_channels {other}, {hidden} / {heads} heads", "kv_channels"
        )
    return hidden // heads


_LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "n_ctx",
            "max_sequence_length", "max_seq_length", "seq_len")  # fmt: skip
_UNSCALED_ROPE = ("su", "longrope", "llama3", "yarn", "deepseek_yarn", "default", "proportional")


def context_length(block: Config) -> int:
    """Longest context in tokens the configuration promises, 0 if it does not say.

    The smallest of the known entries, times the rope factor where that factor is not already part of the entry.
    """
    lengths = [value for name in _LENGTHS if (value := whole(block, name)) is not None]
    rope = block.get("rope_scaling") or block.get("rope_parameters") or {}
    kind = rope.get("rope_type", rope.get("type")) if isinstance(rope, Mapping) else None
    if not lengths or kind is None or kind in _UNSCALED_ROPE:
        return min(lengths, default=0)
    factor = rope.get("factor", 1)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or factor <= 0:
        raise ShapeRefused(f"config.json: rope factor is {factor!r}, expected a number above 0", "rope_scaling")
    return int(min(lengths) * factor)
