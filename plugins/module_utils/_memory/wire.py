# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as plain data, for actions, filters and modules. Private to this collection: may change at any time.

For what goes in see ``inputs``. Coming out, sizes are bytes and utilizations are numbers with two decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .budget import HostPlan, Variant
from .grouping import make_layout
from .inputs import (
    Data,
    block_of,
    only,
    read_demand,
    read_host,
    read_settings,
    read_utilizations,
    read_variant,
    sizes_of,
)
from .kv_dtype import checkpoint_kv_dtype, resolve_kv_dtype
from .shape import AttentionLayers, ModelShape, read_shape
from .units import LayoutUnknown, PlanError
from .verdict import SitePlan, plan_site

_TOP = {"model", "hf_quant_config", "drafter", "version", "hosts", "demand", "replicated", "split"}


def make_plan(inputs: Data) -> dict[str, Any]:
    """Plans a site.

    Args:
        inputs: ``model`` (config.json), optional ``hf_quant_config`` and ``drafter`` (config.json of a separate drafter),
            ``version`` of the build, ``hosts`` (a list), ``demand``, ``replicated`` and optional ``split`` (how an engine is
            started in that arrangement).

    Returns:
        ``verdict``, ``words``, ``copies`` and ``ranks`` (one entry per host), ``kv_cache_dtype``, and in ``other_types`` the
        same for the second type where ``auto`` depends on a build that is not known.

    Raises:
        PlanError: an input is missing, unknown or out of range, or nothing can be planned; ``key`` names it.
    """
    only(inputs, "the plan", _TOP)
    config, separate = block_of(inputs, "model"), inputs.get("hf_quant_config")
    unknown: LayoutUnknown | None = None
    shape: ModelShape | None = None
    try:
        shape = read_shape(config, separate)
    except LayoutUnknown as error:
        unknown = error
    hosts = [read_host(entry) for entry in inputs.get("hosts") or ()]
    names = [host.name for host in hosts]
    if len(set(names)) != len(names):
        raise PlanError(f"two hosts have the same name: {', '.join(names)}", "hosts")
    demand, drafter = read_demand(inputs.get("demand") or {}), _drafter(inputs.get("drafter"))
    replicated, split = block_of(inputs, "replicated"), inputs.get("split")
    version, asked = str(inputs.get("version") or ""), str(replicated.get("kv_cache_dtype") or "auto")
    answers = []
    for kv_dtype in resolve_kv_dtype(asked, checkpoint_kv_dtype(config, separate), version):
        copy = read_variant(replicated, shape, unknown, read_settings(replicated, kv_dtype, version, 1, drafter))
        pair = None
        if split is not None:
            own = "weights" in sizes_of(split)
            weights = {key: value for key, value in replicated.items() if key.startswith("weights_") and not own}
            wished = str(split.get("kv_cache_dtype") or "auto")
            settings = read_settings(split, kv_dtype if wished == "auto" else wished, version, len(hosts) or 1, drafter)
            pair = read_variant({**weights, **split}, shape, unknown, settings, divide=not own)
        fixed, pair_fixed = read_utilizations(replicated, names), read_utilizations(split or {}, names)
        site = plan_site(hosts, copy, demand, pair, fixed, pair_fixed)
        answers.append({"kv_cache_dtype": kv_dtype, **site_data(site, copy, pair)})
    first, *others = answers
    words = [
        f"whether this build follows the checkpoint's cache type is not known: planned with {first['kv_cache_dtype']}; with "
        f"{other['kv_cache_dtype']} the verdict is {other['verdict']}"
        for other in others
    ]
    return {**first, "words": [*first["words"], *words], "other_types": others}


def capacity(model: Data, engine: Data, kv_bytes: int, version: str = "", kv_dtype: str = "bf16") -> dict[str, Any]:
    """What so many bytes of cache hold, in the engine's own figures.

    Args:
        model: ``config.json``, parsed.
        engine: how the engine is started, as ``replicated`` in ``make_plan``; only ``max_model_len`` is needed.
        kv_bytes: bytes of the cache on each rank.
        version: the build.
        kv_dtype: resolved type of the cache.

    Returns:
        ``block_size`` (tokens), ``block_bytes``, ``blocks``, ``blocks_per_request``, ``tokens`` and ``concurrency``.

    Raises:
        PlanError: the model or the layout is refused; ``key`` names the entry.
    """
    layout = make_layout(read_shape(model), read_settings(engine, kv_dtype, version, 1, None))
    blocks = layout.blocks(kv_bytes)
    return {
        "block_size": layout.block_size,
        "block_bytes": layout.block_bytes,
        "blocks": blocks,
        "blocks_per_request": layout.blocks_per_request(),
        "tokens": layout.tokens(blocks),
        "concurrency": layout.concurrency(blocks),
    }


def _drafter(config: Any) -> AttentionLayers | None:
    if config is None:
        return None
    if not isinstance(config, Mapping):
        raise PlanError(f"drafter is {config!r}, expected the drafter's config.json", "drafter")
    shape = read_shape(config)
    if len(shape.attention) > 1 or shape.state:
        raise PlanError("a drafter with layers of several kinds is not modelled", "drafter")
    return shape.attention[0]


def site_data(site: SitePlan, copy: Variant, pair: Variant | None) -> dict[str, Any]:
    """A site's plan as plain data."""
    return {
        "verdict": site.verdict,
        "words": list(site.words),
        "copies": [host_data(plan, copy) for plan in site.copies],
        "ranks": [host_data(plan, pair) for plan in site.ranks] if pair else [],
    }


def host_data(plan: HostPlan, variant: Variant) -> dict[str, Any]:
    """One host's plan as plain data, with what it rests on."""
    data = asdict(plan)
    for key in ("utilization", "lowest", "highest", "byte_mode_utilization"):
        data[key] = data[key] / 100
    for key in ("requests", "requests_low", "requests_high"):
        data[key] = round(data[key], 4)
    return {
        **data,
        "weights": variant.need.weights.size,
        "overhead": variant.need.overhead,
        "measured": variant.need.measured,
        "request_bytes": round(variant.cost.expected),
        "cost_source": variant.cost.source,
        "cost_error": round(variant.cost.error_share, 4),
        "block_size": variant.layout.block_size if variant.layout else None,
        "block_bytes": variant.layout.block_bytes if variant.layout else None,
        "max_model_len": variant.settings.max_model_len,
        "max_num_batched_tokens": variant.settings.batched_tokens,
        "note": variant.note,
    }
