# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data to the plan's own types. Private to this collection: may change at any time.

A size is given either as ``NAME_bytes`` (whole) or as ``NAME_gib`` (any number); utilizations are 0.01 to 0.99 with two
decimals. What is missing, unknown, of the wrong type or out of range is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .budget import OVERHEAD, Demand, Variant, engine_need, make_variant
from .host import Claim, HostMemory
from .layout import Settings, batches_in_flight
from .measured import START_ONCE, Measurement
from .shape import AttentionLayers, ModelShape
from .units import LayoutUnknown, PlanError, from_gib
from .weights import Weights, per_rank

Data = Mapping[str, Any]

_HOST_SIZES = ("available", "system", "engine_outside", "keep_free", "start_margin", "start_drift")
_SETTINGS = {
    "max_model_len": "max_model_len",
    "tensor_parallel_size": "ranks",
    "decode_context_parallel_size": "context_ranks",
    "num_speculative_tokens": "draft_tokens",
    "block_size": "block_size",
    "max_num_batched_tokens": "batched_tokens",
    "batches_in_flight": "batches",
    "mamba_cache_mode": "cache_mode",
    "model_bytes": "model_bytes",
}
_ENGINE = {*_SETTINGS, "kv_cache_dtype", "prefix_caching", "starts", "utilization", "weights_source", "unmodelled"}


def only(block: Data, what: str, known: set[str]) -> None:
    """Refuses a key that nobody would read."""
    strange = sorted(set(block) - known)
    if strange:
        raise PlanError(f"{what}: {strange[0]} is not known; known are {', '.join(sorted(known))}", strange[0])


def block_of(block: Data, key: str) -> Data:
    """A block inside a block, which must be there."""
    value = block.get(key)
    if not isinstance(value, Mapping):
        raise PlanError(f"{key} is missing or not a block", key)
    return value


def sizes_of(block: Data) -> dict[str, int]:
    """All sizes of a block in bytes, by their name without the unit."""
    found: dict[str, int] = {}
    for key, value in block.items():
        name, _separator, unit = key.rpartition("_")
        if unit not in ("gib", "bytes") or value is None:
            continue
        if name in found:
            raise PlanError(f"{name} is given twice, as {name}_gib and as {name}_bytes", key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or (unit == "bytes" and int(value) != value):
            raise PlanError(f"{key} is {value!r}, expected a {'number' if unit == 'gib' else 'whole number'}", key)
        found[name] = from_gib(value) if unit == "gib" else int(value)
    return found


def _both(*names: str) -> set[str]:
    return {f"{name}_{unit}" for name in names for unit in ("gib", "bytes")}


def _hundredths(value: Any, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.01 <= value <= 0.99:
        raise PlanError(f"{key} is {value!r}, expected 0.01 to 0.99", key)
    if abs(value * 100 - round(value * 100)) > 1e-6:
        raise PlanError(f"{key} is {value!r}, expected two decimals", key)
    return round(value * 100)


def read_utilizations(block: Data, names: Sequence[str]) -> dict[str, int]:
    """Hundredths by host, from one value for all or from one per host; empty if the plan shall propose them."""
    value = block.get("utilization")
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, _hundredths(value, "utilization"))
    strange = next((name for name in value if name not in names), None)
    if strange is not None:
        raise PlanError(f"utilization names {strange}, which is not one of the hosts", "utilization")
    return {name: _hundredths(part, f"utilization of {name}") for name, part in value.items()}


def read_demand(block: Data) -> Demand:
    """What is asked of each copy: ``full_requests``, ``tokens`` and ``max_num_seqs``, all optional."""
    only(block, "demand", {"full_requests", "tokens", "max_num_seqs"})
    given = {key: value for key, value in block.items() if value is not None}
    for key, value in given.items():
        kinds = (int, float) if key == "full_requests" else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise PlanError(f"{key} is {value!r}, expected a {'number' if len(kinds) > 1 else 'whole number'}", key)
    return Demand(**given)


def read_host(block: Data) -> HostMemory:
    """One host: ``name``, ``total``, and what else is known of its memory."""
    name = str(block.get("name") or "")
    if not name:
        raise PlanError("a host has no name", "name")
    only(block, name, {"name", "others", "ceiling", "engines", *_both("total", *_HOST_SIZES)})
    sizes = sizes_of(block)
    if "total" not in sizes:
        raise PlanError(f"{name}: total_gib is missing: the memory as the engine sees it", "total_gib")
    more: dict[str, Any] = {key: sizes[key] for key in _HOST_SIZES if key in sizes}
    if block.get("ceiling") is not None:
        more["ceiling"] = _hundredths(block["ceiling"], "ceiling")
    others = tuple(_claim(name, entry) for entry in block.get("others") or ())
    engines = tuple((engine, _hundredths(part, engine)) for engine, part in (block.get("engines") or {}).items())
    return HostMemory(name, sizes["total"], others=others, engines=engines, **more)


def _claim(host: str, block: Data) -> Claim:
    only(block, f"{host}: others", {"name", *_both("size")})
    sizes = sizes_of(block)
    if "size" not in sizes or not block.get("name"):
        raise PlanError(f"{host}: an entry of others needs a name and size_gib", "others")
    return Claim(str(block["name"]), sizes["size"])


def read_settings(block: Data, kv_dtype: str, version: str, ranks: int, drafter: AttentionLayers | None) -> Settings:
    """How an engine is started. ``ranks`` holds unless the block gives a tensor parallel size."""
    if block.get("max_model_len") is None:
        raise PlanError("max_model_len is missing", "max_model_len")
    given = {target: block[key] for key, target in _SETTINGS.items() if block.get(key) is not None}
    if block.get("prefix_caching") is False:
        given["cache_mode"] = "none"
    given = {"ranks": ranks, "batches": batches_in_flight(version), **given}
    return Settings(kv_dtype=kv_dtype, version=version, drafter=drafter, **given)


def read_variant(
    block: Data, shape: ModelShape | None, unknown: LayoutUnknown | None, settings: Settings, divide: bool = False
) -> Variant:
    """One way to run the model.

    Args:
        block: how the engine is started, with ``weights``, optional ``overhead`` and the figures of earlier ``starts``.
        shape: the model; None if its family is not known.
        unknown: why it is not known.
        settings: what ``read_settings`` made of the block.
        divide: True if the weights are those of the whole model and each rank takes its part.
    """
    only(block, "replicated or split", {*_ENGINE, *_both("weights", "overhead")})
    if block.get("unmodelled"):
        shape, unknown = None, LayoutUnknown(str(block["unmodelled"]), "unmodelled")
    sizes = sizes_of(block)
    if "weights" not in sizes:
        raise PlanError("weights_bytes is missing: measured, from the files' headers or declared", "weights_bytes")
    weights = Weights(sizes["weights"], str(block.get("weights_source") or "declared"))
    if divide:
        weights = per_rank(weights, settings.ranks)
    starts = [_start(entry) for entry in block.get("starts") or ()]
    need = engine_need(weights, starts, sizes.get("overhead", OVERHEAD))
    if shape is None and not starts and unknown is not None:
        raise LayoutUnknown(f"{unknown}; {START_ONCE}", unknown.key)
    variant = make_variant(shape, settings, need, starts)
    return replace(variant, note=str(unknown)) if unknown is not None else variant


def _start(block: Data) -> Measurement:
    only(block, "starts", {"concurrency", "max_model_len", "tokens", "blocks", *_both("kv", "requested", "rounding")})
    sizes = sizes_of(block)
    more: dict[str, int] = {key: sizes[key] for key in ("requested", "rounding") if key in sizes}
    more.update({key: block[key] for key in ("tokens", "blocks") if block.get(key)})
    if "rounding" not in more and block.get("kv_bytes") is not None:
        more["rounding"] = 0
    return Measurement(sizes.get("kv", 0), block.get("concurrency") or 0, block.get("max_model_len") or 0, **more)
