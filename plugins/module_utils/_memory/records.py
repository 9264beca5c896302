# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of earlier starts, as they are kept on a host. Private to this collection: may change at any time.

One file per image digest, checkpoint and topology; in it the last starts, oldest first. A start is only compared with a plan
for the same settings, since a cache type or a draft length changes what a token costs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .cache_info import CacheInfo
from .startup_log import StartFigures
from .units import from_gib, share
from .weights import store_key

SCHEMA = 1
KEPT = 10
"""Starts kept per file: enough to see a trend, and two lengths of one model."""

_TOTAL = (
    re.compile(r"(?:Free|Available) memory on (?:device|node)(?: \S+)? \((-?[\d.]+)/([\d.]+) GiB\)"),
    re.compile(r"(?:Auto|Explicitly) set \((-?[\d.]+)/([\d.]+)\) GiB for KV cache"),
)
_NOT_SETTINGS = ("utilization", "max_model_len", "batches_in_flight")


def read_total(lines: Iterable[str]) -> int | None:
    """Total memory as the engine sees it, in bytes, from the last line that says it; None if none does."""
    found = None
    for line in lines:
        for pattern in _TOTAL:
            match = pattern.search(line)
            if match:
                found = from_gib(float(match[2]))
    return found


def file_name(digest: str, model: str, revision: str, topology: str) -> str:
    """Name of the file for one image, checkpoint and topology: readable first, then exact."""
    key = store_key(digest, f"{model}@{revision or 'main'}", topology)
    short = re.sub(r"[^A-Za-z0-9.]+", "-", model).strip("-")[-40:]
    return (
        f"{short}-{topology}-{digest.removeprefix('sha256:')[:12]}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.json"
    )


def settings_of(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an engine's block on which its cache per token and its overhead depend."""
    return {key: value for key, value in sorted(engine.items()) if key not in _NOT_SETTINGS}


def start_entry(
    figures: StartFigures,
    infos: Sequence[CacheInfo],
    total: int | None,
    assumed: int,
    engine: Mapping[str, Any],
    byte_mode: bool = False,
) -> dict[str, Any]:
    """One start in the form that is kept: the log, sharpened by the engine's own metrics where it has them.

    Args:
        figures: from the log.
        infos: from ``/metrics``; empty on a rank without a port.
        total: device memory in bytes as the log says it, None if it does not.
        assumed: what to reckon with then.
        engine: how it was started, see ``engine_arguments.engine_block``.
        byte_mode: True if the cache was given in bytes: the share says nothing then.
    """
    info = infos[0] if infos else None
    exact = info.kv_bytes if info else None
    tokens = figures.kv_tokens if figures.meaning == "concurrency" else None
    requested = None if byte_mode else share(total or assumed, round(engine["utilization"] * 100))
    return {
        "version": figures.version,
        "total_bytes": total,
        "utilization": engine["utilization"],
        "requested_bytes": requested,
        "kv_bytes": exact or figures.kv_bytes,
        "kv_exact": bool(exact),
        "concurrency": (info.concurrency if info else None) or figures.concurrency,
        "tokens": (info.tokens if info else None) or tokens,
        "blocks": (info.blocks if info else None) or figures.blocks,
        "block_size": info.block_size if info else None,
        "max_model_len": figures.max_model_len or engine["max_model_len"],
        "weights_bytes": figures.weights,
        "graph_estimate_bytes": figures.graph_estimate,
        "graph_actual_bytes": figures.graph_actual,
        "settings": settings_of(engine),
    }


def add_start(stored: Mapping[str, Any] | None, about: Mapping[str, Any], start: Mapping[str, Any]) -> dict[str, Any]:
    """The file's content with one more start; a second look at the same start replaces the first."""
    earlier = [entry for entry in (stored or {}).get("starts", []) if entry.get("invocation") != start["invocation"]]
    return {"schema": SCHEMA, **about, "starts": [*earlier, dict(start)][-KEPT:]}


def usable_starts(stored: Mapping[str, Any] | None, engine: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Starts with the same settings that say enough to plan from, oldest first, as ``starts`` of an engine's block."""
    wanted, found = settings_of(engine), []
    for entry in (stored or {}).get("starts", []):
        if entry.get("settings") != wanted or entry.get("verdict") == "negative":
            continue
        if not all((entry.get(key) or 0) > 0 for key in ("kv_bytes", "concurrency", "max_model_len")):
            continue
        start = {key: entry[key] for key in ("kv_bytes", "concurrency", "max_model_len")}
        start.update({key: entry[key] for key in ("tokens", "blocks", "requested_bytes") if entry.get(key)})
        if not entry.get("kv_exact"):
            start["rounding_bytes"] = from_gib(0.005)
        found.append(start)
    return found


def last_value(stored: Iterable[Mapping[str, Any]], key: str) -> Any:
    """The newest start's value of a key over several files; None if no start has it."""
    starts = [entry for content in stored for entry in content.get("starts", []) if entry.get(key)]
    return max(starts, key=lambda entry: entry.get("began") or 0)[key] if starts else None


def expected_requests(stored: Mapping[str, Any] | None, start: Mapping[str, Any]) -> float | None:
    """What an equal start before this one held, where no plan says it; None if there was none."""
    same = [
        entry["concurrency"]
        for entry in (stored or {}).get("starts", [])
        if all(entry.get(key) == start[key] for key in ("settings", "utilization", "max_model_len"))
        and entry.get("invocation") != start["invocation"]
        and entry.get("verdict") == "ok"
        and entry.get("concurrency")
    ]
    return same[-1] if same else None
