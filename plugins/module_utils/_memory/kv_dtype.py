# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of the KV cache: bytes per token, and what ``auto`` means. Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .units import LayoutUnknown, ShapeRefused

_PLAIN = {"bf16": 16, "bfloat16": 16, "fp16": 16, "float16": 16, "half": 16, "fp32": 32, "float32": 32}
_LATENT_RECORDS = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
# Builds before 0.11.1 cached an FP8 checkpoint in the model's own type, builds from 0.12 on follow the checkpoint.
_IGNORES_CHECKPOINT, _FOLLOWS_CHECKPOINT = (0, 11, 0), (0, 12, 0)


def token_bytes(kv_dtype: str, heads: int, dims: int, latent: bool = False) -> int:
    """Bytes that one layer keeps for one token on one rank.

    Args:
        kv_dtype: a resolved type, never ``auto``: bf16, fp16, fp32, ``fp8`` in all spellings, ``int8_per_token_head``,
            ``fp8_per_token_head``, ``int4_per_token_head``, ``nvfp4``, ``nvfp4_4over6``, ``fp8_ds_mla``, ``nvfp4_ds_mla``.
        heads: cached heads on this rank.
        dims: elements per head: keys and values together, or the latent vector.
        latent: True for MLA.

    Raises:
        LayoutUnknown: the type is not known, or not for this kind of cache; ``key`` is ``kv_cache_dtype``.
    """
    name = kv_dtype.lower()
    if name in _PLAIN:
        return heads * dims * _PLAIN[name] // 8
    if name in _LATENT_RECORDS and latent and dims == 576:
        return _LATENT_RECORDS[name]
    if name in ("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc"):
        return heads * dims
    if not latent:
        if name in ("int8_per_token_head", "fp8_per_token_head"):
            return heads * (dims + 8)
        if name == "int4_per_token_head":
            return heads * (dims // 2 + 8)
        if name in ("nvfp4", "nvfp4_4over6"):
            return heads * (dims // 2 + dims // 16)
    told = " for a latent cache" if latent else ""
    raise LayoutUnknown(f"kv_cache_dtype {kv_dtype!r} is not modelled{told}", "kv_cache_dtype")


def checkpoint_kv_dtype(config: Mapping[str, Any], hf_quant_config: Mapping[str, Any] | None = None) -> str:
    """The cache type that a checkpoint asks for: ``fp8``, ``nvfp4`` or empty.

    Read from ``quantization_config`` (``kv_cache_scheme`` or ``kv_cache_quant_algo``) and ``hf_quant_config.json``.

    Raises:
        ShapeRefused: the entries disagree, or one is not understood; ``key`` names it.
    """
    places: list[tuple[str, Mapping[str, Any]]] = []
    nested = config.get("text_config")
    for block in (config, nested if isinstance(nested, Mapping) else {}):
        if isinstance(block.get("quantization_config"), Mapping):
            places.append(("quantization_config", block["quantization_config"]))
    if hf_quant_config:
        inner = hf_quant_config.get("quantization", hf_quant_config)
        places.append(("hf_quant_config.json", inner if isinstance(inner, Mapping) else {}))
    answers = {f"{where}: {key}": _algorithm(value, key) for where, place in places for key, value in _entries(place)}
    if len(set(answers.values())) > 1:
        told = ", ".join(f"{key} says {value}" for key, value in answers.items())
        raise ShapeRefused(f"the checkpoint contradicts itself about its KV cache: {told}", "kv_cache_quant_algo")
    return next(iter(answers.values()), "")


def _entries(place: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(key, place[key]) for key in ("kv_cache_scheme", "kv_cache_quant_algo") if place.get(key) is not None]


def _algorithm(value: object, key: str) -> str:
    if isinstance(value, Mapping):
        bits, kind = value.get("num_bits"), value.get("type", "float")
        if (bits, kind) == (8, "float"):
            return "fp8"
    elif isinstance(value, str) and value.upper() in ("FP8", "NVFP4"):
        return value.lower()
    raise ShapeRefused(f"the checkpoint's {key} is {value!r}, which is not understood", key)


def release(version: str) -> tuple[int, int, int] | None:
    """Major, minor and patch of a released build; None for development builds, forks and anything unclear."""
    match = re.match(r"v?(\d+)\.(\d+)\.(\d+)(?:\.post\d+)?(?:\+.*)?$", version.strip())
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def resolve_kv_dtype(asked: str, checkpoint: str, version: str = "", model_dtype: str = "bf16") -> tuple[str, ...]:
    """The type that the cache will have: one, or both if that depends on a build that is not known.

    Args:
        asked: value of ``--kv-cache-dtype``.
        checkpoint: what ``checkpoint_kv_dtype`` found.
        version: the build's version string, empty if unknown.
        model_dtype: the model's own type.

    Returns:
        One type; or two when ``auto`` meets a checkpoint that asks for FP8 and the build may or may not follow it.
        Plan the first (the larger) then, and show both.
    """
    if asked != "auto":
        return (asked,)
    if not checkpoint:
        return (model_dtype,)
    build = release(version)
    if build is not None and build <= _IGNORES_CHECKPOINT:
        return (model_dtype,)
    if build is not None and build >= _FOLLOWS_CHECKPOINT:
        return (checkpoint,)
    return (model_dtype, checkpoint)
