# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rates, shares and times for people: only where enough was counted, else idle or unknown.

Private to this collection: may change at any time. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import histogram

# A share or a quantile of fewer is noise: nobody is told one.
LEAST_OBSERVATIONS = 5
LEAST_DRAFT_TOKENS = 100
IDLE = "idle"


def share(part: int | None, whole: int | None, least: int) -> float | str | None:
    """``part`` of ``whole``; ``idle`` if less than ``least`` was counted, None if it is unknown."""
    if part is None or whole is None:
        return None
    return part / whole if whole >= max(1, least) else IDLE


def acceptance(counters: Mapping[str, Any]) -> float | str | None:
    """Which share of the drafted tokens was accepted; None for a build or a start without drafting."""
    return share(counters.get("accepted_tokens"), counters.get("draft_tokens"), LEAST_DRAFT_TOKENS)


def when(observed: histogram.Histogram | None, at: float) -> dict[str, float | None] | str | None:
    """A quantile of a histogram of seconds; ``idle`` if it has too few observations, None if it is unknown."""
    if observed is None:
        return None
    return histogram.quantile(observed, at) if observed["count"] >= LEAST_OBSERVATIONS else IDLE


def figures(counters: Mapping[str, Any], histograms: Mapping[str, Any]) -> dict[str, Any]:
    """What people ask for, of a span or of a whole life."""
    return {
        "acceptance": acceptance(counters),
        **{
            f"{key}_p{percent}": when(histograms.get(key), percent / 100)
            for key in ("ttft", "inter_token", "e2e", "queue")
            for percent in (50, 95)
        },
    }
