# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Split against copies: published measurements, and what is recommended of them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _comparison


def measurement(
    host: str, curve: dict[int, float], own: bool = True, name: str = "mix", **engine: Any
) -> dict[str, Any]:
    rows = [
        {"concurrency": at, "output_per_second": speed, "ttft_p50": 100.0 * at, "ttft_p99": 200.0 * at, "itl_p50": 1000 * at / speed,
         "itl_p99": 2000 * at / speed, "why": ""}
        for at, speed in curve.items()
    ]  # fmt: skip
    return {"host": host, "shapes": [{"name": name, "own": own, "rows": rows}], "engine": engine}


def test_the_two_machines_that_were_reported() -> None:
    """111 and 99 tokens/s from two copies against 180 split; 1.08 and 0.76 M tokens against 3 M; 5 to 13 minutes against 20."""
    copies = [
        measurement("spark1", {12: 99}, kv_tokens=760_000, full_requests=2.9, load_seconds=780),
        measurement("spark2", {12: 111}, kv_tokens=1_080_000, full_requests=4.1, load_seconds=300),
    ]
    pair = measurement("spark1", {24: 180}, kv_tokens=3_000_000, full_requests=12.0, load_seconds=1200)
    found = _comparison.compare(copies, pair, 2)
    assert found["recommendation"] == "replicated"
    assert found["points"][0]["ratio"] == pytest.approx(210 / 180, abs=0.001)
    text = " ".join(found["words"])
    assert "24 at once: 2 copies give 210 tokens/s in all, the pair 180" in text
    assert "3.00 M tokens, a copy's 0.76 M and 1.08 M" in text
    assert "12.0 requests of full length against 2.9 and 4.1" in text
    assert "A copy loads in 300 to 780 s while another one can serve; the pair in 1200 s" in text


def test_what_a_copy_does_not_hold_is_for_the_pair_however_fast_copies_are() -> None:
    copies = [measurement("spark1", {8: 200}, full_requests=1.9), measurement("spark2", {8: 200}, full_requests=1.9)]
    pair = measurement("spark1", {16: 100}, full_requests=12.0)
    found = _comparison.compare(copies, pair, 2, full_requests=4)
    assert found["recommendation"] == "split"
    assert "a copy holds 1.9 requests of full length and 4 are needed" in found["words"][0]
    assert _comparison.compare(copies, pair, 2, full_requests=1)["recommendation"] == "replicated"
    assert _comparison.compare(copies, pair, 2, full_requests=20)["recommendation"] == "replicated", (
        "neither holds that"
    )


# A published curve of one model on two such machines, at 1, 4, 16, 32 and 64 requests in all.
TP = {1: 69, 4: 155, 16: 342, 32: 472, 64: 472}
COPIES = {4: 128, 16: 269, 32: 382, 64: 568}


def halves(curve: dict[int, float]) -> dict[int, float]:
    return {at // 2: speed / 2 for at, speed in curve.items()}


def test_curves_that_cross_are_told_by_the_load() -> None:
    copies = [measurement(host, halves(COPIES)) for host in ("spark1", "spark2")]
    found = _comparison.compare(copies, measurement("spark1", TP), 2)
    assert found["recommendation"] == "replicated", "at the most that was measured"
    assert found["words"][0].startswith("It depends on how many requests you have at once")
    assert "the pair is faster at 4, 16, 32, the copies at 64" in " ".join(found["words"])


@pytest.mark.parametrize(
    ("copies", "pair", "choice", "word"),
    [
        ({4: 161}, {4: 173}, "split", "faster wherever"),
        ({4: 100}, {4: 104.9}, "replicated", "as fast"),
        ({4: 104.9}, {4: 100}, "replicated", "as fast"),
        ({4: 105.1}, {4: 100}, "replicated", "faster"),
        ({4: 100, 8: 100}, {4: 101, 8: 120}, "split", "some loads"),
        ({4: 100, 8: 90}, {4: 80, 8: 120}, "split", "It depends"),
        ({4: 100}, {8: 100}, "", "Nothing can be recommended"),
    ],
)
def test_choices(copies: dict[int, float], pair: dict[int, float], choice: str, word: str) -> None:
    found = _comparison.compare(
        [measurement(host, halves(copies)) for host in ("spark1", "spark2")], measurement("spark1", pair), 2
    )
    assert found["recommendation"] == choice
    assert word in found["words"][0]


def test_copies_give_their_sum_and_the_worse_tail() -> None:
    copies = [measurement("spark1", {2: 100}), measurement("spark2", {2: 50})]
    copies[1]["shapes"][0]["rows"][0].update(ttft_p50=500.0, ttft_p99=900.0)
    row = _comparison.together(copies, "mix", 2)[4]
    assert row["output_per_second"] == 150
    assert row["ttft_p50"] == pytest.approx((200 * 100 + 500 * 50) / 150)
    assert row["ttft_p99"] == 900


def test_more_copies_than_were_measured_are_like_the_last() -> None:
    copies = [measurement("spark1", {2: 100}), measurement("spark4", {2: 50})]
    assert _comparison.together(copies, "mix", 4)[8]["output_per_second"] == 250


def test_a_point_with_failures_is_not_compared() -> None:
    pair = measurement("spark1", {4: 90, 8: 90})
    pair["shapes"][0]["rows"][1]["why"] = "2 of 40 requests failed"
    found = _comparison.compare([measurement("a", {2: 50, 4: 50}), measurement("b", {2: 50, 4: 50})], pair, 2)
    assert [point["concurrency"] for point in found["points"]] == [4]


def test_the_owners_mix_is_compared_and_other_shapes_only_without_one() -> None:
    def both(host: str, at: int) -> dict[str, Any]:
        first = measurement(host, {at: 50})
        first["shapes"] += measurement(host, {at: 10}, own=False, name="short")["shapes"]
        return first

    found = _comparison.compare([both("a", 2), both("b", 2)], both("a", 4), 2)
    assert {point["shape"] for point in found["points"]} == {"mix"}
    assert found["own"]


def test_the_table_for_people() -> None:
    copies = [measurement(host, {2: 60}) for host in ("a", "b")]
    text = _comparison.lines(_comparison.compare(copies, measurement("a", {4: 100}), 2))
    assert text[1].split() == ["mix", "4", "120.0", "100.0", "1.20", "200", "/", "400", "33.3", "/", "40.0"]
