# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draft layers, and layers with dimensions of their own. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping

from .config_keys import Config, whole
from .units import LayoutUnknown, ShapeRefused

_OF_THE_CACHE = ("head_dim", "num_key_value_heads")
_NOT_PER_LAYER = ("sliding_window", "kv_lora_rank", "v_head_dim", "attention_chunk_size")


def draft_layers(block: Config) -> int:
    """Attention layers of the model's own draft head, 0 if it has none.

    Raises:
        ShapeRefused: an entry is malformed, or two disagree.
    """
    counts: dict[str, int] = {}
    for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"):
        value = whole(block, key, least=0)
        if value is not None:
            counts[key] = value
    listed = block.get("mtp_layers_block_type")
    if listed is not None:
        if isinstance(listed, (str, Mapping)):
            raise ShapeRefused(f"config.json: mtp_layers_block_type is {listed!r}", "mtp_layers_block_type")
        counts["mtp_layers_block_type"] = sum(item in ("attention", "full_attention") for item in listed)
    pattern = block.get("mtp_hybrid_override_pattern")
    if pattern is not None:
        counts["mtp_hybrid_override_pattern"] = str(pattern).count("*")
    if len(set(counts.values())) > 1:
        told = " and ".join(f"{key}={value}" for key, value in counts.items())
        raise ShapeRefused(f"config.json contradicts itself about draft layers: {told}", next(iter(counts)))
    return next(iter(counts.values()), 0)


def per_layer(block: Config) -> dict[int, tuple[int, int]]:
    """KV heads and head width of the layers that ``per_layer_config`` sets apart, by layer number; 0 where it is silent.

    Raises:
        ShapeRefused: the entry is malformed.
        LayoutUnknown: a layer differs in something else that its cache depends on.
    """
    key = "per_layer_config"
    listed = block.get(key) or {}
    if not isinstance(listed, Mapping):
        raise ShapeRefused(f"config.json: {key} is {listed!r}, expected a block", key)
    found = {}
    for place, own in listed.items():
        if not str(place).isdecimal() or not isinstance(own, Mapping):
            raise ShapeRefused(f"config.json: {key} has the entry {place!r}, expected a layer number and a block", key)
        strange = next((name for name in _NOT_PER_LAYER if name in own), None)
        if strange is not None:
            raise LayoutUnknown(f"config.json: {key} sets {strange} for layer {place}, which is not modelled", key)
        width, heads = (whole(own, name) or 0 for name in _OF_THE_CACHE)
        found[int(place)] = (heads, width)
    return found
