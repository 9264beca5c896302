# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Histograms as ``{"bounds": [...], "counts": [...], "count": n, "sum": s}``: sums, differences and quantiles.

Private to this collection: may change at any time. Pure.

``counts`` are cumulative and belong to ``bounds``, the finite upper bounds in rising order; ``count`` is the one without a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Histogram = dict[str, Any]


def merged(parts: Sequence[Histogram]) -> Histogram:
    """The sum of histograms. Where their bounds differ, those that all have are kept: coarser, and exact."""
    common = set(parts[0]["bounds"]).intersection(*(part["bounds"] for part in parts[1:]))
    bounds = sorted(common)
    places = [dict(zip(part["bounds"], part["counts"], strict=True)) for part in parts]
    return {
        "bounds": bounds,
        "counts": [sum(place[bound] for place in places) for bound in bounds],
        "count": sum(part["count"] for part in parts),
        "sum": sum(part["sum"] for part in parts),
    }


def minus(after: Histogram, before: Histogram) -> Histogram | None:
    """What was observed in between, of one process. None if the pages contradict each other."""
    if after["bounds"] != before["bounds"]:
        return None
    counts = [now - then for now, then in zip(after["counts"], before["counts"], strict=True)]
    count = after["count"] - before["count"]
    rising = [0, *counts, count]
    if any(later < earlier for earlier, later in zip(rising, rising[1:], strict=False)):
        return None
    return {**after, "counts": counts, "count": count, "sum": max(0.0, after["sum"] - before["sum"])}


def quantile(histogram: Histogram, share: float) -> dict[str, float | None] | None:
    """Where the quantile is: between ``low`` and ``high``, about at ``estimate``. None without observations.

    Above the last bound nothing is known but that bound: ``high`` and ``estimate`` are None.
    """
    if not histogram["count"]:
        return None
    rank = share * histogram["count"]
    low, below = 0.0, 0
    for bound, count in zip(histogram["bounds"], histogram["counts"], strict=True):
        if count >= rank and count > below:
            return {"low": low, "high": bound, "estimate": low + (bound - low) * (rank - below) / (count - below)}
        low, below = bound, count
    return {"low": low, "high": None, "estimate": None}
