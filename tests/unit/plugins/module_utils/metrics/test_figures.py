# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Buckets and the figures that people are told: exact, bounded, idle or unknown."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import figures, histogram


def made(bounds: list[float], values: list[float]) -> histogram.Histogram:
    counts = [sum(value <= bound for value in values) for bound in bounds]
    return {"bounds": bounds, "counts": counts, "count": len(values), "sum": sum(values)}


def test_sum_of_equal_bounds() -> None:
    a, b = made([1, 2, 4], [0.5, 3, 9]), made([1, 2, 4], [1.5, 1.5])
    assert histogram.merged([a, b]) == made([1, 2, 4], [0.5, 3, 9, 1.5, 1.5])


def test_sum_of_different_bounds_keeps_what_all_know_and_is_exact() -> None:
    values = [[random.Random(seed).uniform(0, 10) for _n in range(200)] for seed in range(3)]
    parts = [made([1, 2, 4, 8], values[0]), made([1, 3, 4], values[1]), made([0.5, 1, 4, 8], values[2])]
    found, expected = histogram.merged(parts), made([1, 4], [value for part in values for value in part])
    assert found["sum"] == pytest.approx(expected["sum"])
    assert {**found, "sum": 0} == {**expected, "sum": 0}


def test_sum_without_a_common_bound_still_counts() -> None:
    found = histogram.merged([made([1], [0.5]), made([2], [0.5])])
    assert (found["bounds"], found["count"], found["sum"]) == ([], 2, 1.0)
    assert histogram.quantile(found, 0.5) == {"low": 0.0, "high": None, "estimate": None}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (made([1, 2], [0.5]), made([1, 3], [0.5])),
        (made([1, 2], [0.5]), made([1, 2], [1.5])),
        (made([1, 2], [0.5, 0.5]), made([1, 2], [0.5])),
    ],
)
def test_difference_of_what_does_not_follow_is_unknown(before: Any, after: Any) -> None:
    assert histogram.minus(after, before) is None


@pytest.mark.parametrize(
    ("values", "share", "low", "high"),
    [
        ([0.5, 0.5, 0.5, 3], 0.5, 0.0, 1.0),
        ([0.5, 3, 3, 3], 0.5, 2.0, 4.0),
        ([0.5, 1.5, 3], 1.0, 2.0, 4.0),
        ([0.5, 1.5, 3], 0.0, 0.0, 1.0),
        ([9, 9, 0.5], 0.5, 4.0, None),
    ],
)
def test_quantile_is_between_bounds(values: list[float], share: float, low: float, high: float | None) -> None:
    found = histogram.quantile(made([1.0, 2.0, 4.0], values), share)
    assert found is not None
    assert (found["low"], found["high"]) == (low, high)
    assert (found["estimate"] is None) == (high is None)
    if high is not None:
        assert found["estimate"] is not None
        assert low <= found["estimate"] <= high


def test_quantile_of_nothing_is_unknown() -> None:
    assert histogram.quantile(made([1.0], []), 0.5) is None


@pytest.mark.parametrize(
    ("accepted", "drafted", "share"),
    [(80, 100, 0.8), (79, 99, "idle"), (0, 0, "idle"), (None, 100, None), (5, None, None), (0, 200, 0.0)],
)
def test_acceptance(accepted: int | None, drafted: int | None, share: Any) -> None:
    assert figures.acceptance({"accepted_tokens": accepted, "draft_tokens": drafted}) == share


@pytest.mark.parametrize(("count", "kind"), [(0, "idle"), (1, "idle"), (4, "idle"), (5, "told")])
def test_time_is_told_only_of_enough_requests(count: int, kind: str) -> None:
    found = figures.figures({}, {"ttft": made([1.0, 2.0], [0.5] * count)})
    assert (found["ttft_p50"] == "idle") == (kind == "idle")
    assert (found["acceptance"], found["e2e_p95"]) == (None, None)
