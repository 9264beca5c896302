# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache figures on the metrics page, and a start against its plan."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import cache_info, compare, startup_log, units

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "memory"
gib = units.from_gib


def test_cache_info() -> None:
    first, second = cache_info.read_cache_info((LOGS / "metrics.txt").read_text(encoding="utf-8"))
    assert (first.engine, first.block_size, first.blocks, first.tokens) == ("0", 3216, 439, 1075525)
    assert first.concurrency == pytest.approx(439 / 107)
    assert (first.kv_bytes, first.utilization) == (None, 0.78)
    assert first.labels["note"] == 'a "quoted" } brace'
    assert (second.engine, second.block_size, second.blocks, second.tokens) == ("1", 16, None, None)
    assert cache_info.read_cache_info("vllm:other 1.0\n") == ()


def test_cache_info_for_the_next_plan() -> None:
    first, second = cache_info.read_cache_info((LOGS / "metrics.txt").read_text(encoding="utf-8"))
    start = first.measurement(262144, kv_bytes=gib(18.6))
    assert start is not None
    assert (start.kv_bytes, start.tokens, start.blocks) == (gib(18.6), 1075525, 439)
    assert start.rounding > 0
    assert first.measurement(262144) is None
    assert second.measurement(262144, kv_bytes=gib(18.6)) is None
    exact = cache_info.CacheInfo({}, "0", 16, 100, 1600, 2.0, 1 << 20, None).measurement(800)
    assert exact is not None
    assert (exact.kv_bytes, exact.rounding) == (1 << 20, 0)


@pytest.mark.parametrize(
    ("lines", "planned", "verdict", "words"),
    [
        (["Maximum concurrency for 100 tokens per request: 4.10x"], 4.1, "ok", ""),
        (["Maximum concurrency for 100 tokens per request: 3.60x"], 4.1, "ok", ""),
        (["Maximum concurrency for 100 tokens per request: 3.40x"], 4.1, "short", "3.40 full-length requests fit, 4.10"),
        (["Available KV cache memory: -0.39 GiB"], 4.1, "negative", "-0.39 GiB were left"),
        (["No available memory for the cache blocks."], 4.1, "negative", "no memory for the cache"),
        (["Estimated CUDA graph memory: -4.74 GiB total", "Maximum concurrency for 100 tokens per request: 4.10x"],
         4.1, "negative", "-4.74 GiB"),
        (["CUDA graph pool memory: 0.03 GiB (actual), 2.44 GiB (estimated)",
          "Maximum concurrency for 100 tokens per request: 4.10x"], 4.1, "ok", "2.44 GiB and took 0.03 GiB"),
        (["GPU KV cache size: 100 tokens"], 4.1, "unmeasured", "did not say"),
        (["Available KV cache memory: 0 GiB"], 4.1, "negative", "0.00 GiB were left"),
    ],
)  # fmt: skip
def test_a_start_against_its_plan(lines: list[str], planned: float, verdict: str, words: str) -> None:
    outcome = compare.judge_start(planned, startup_log.read_start(lines))
    assert outcome.verdict == verdict
    assert words in " ".join(outcome.words)


def test_builds_are_compared_by_capacity() -> None:
    old = startup_log.read_start(
        ["GPU KV cache size: 585,168 tokens", "Maximum concurrency for 262,144 tokens per request: 4.73x"]
    )
    new = startup_log.read_start(
        ["GPU KV cache size: 1,241,920 tokens, Maximum concurrency for 262,144 tokens per request: 4.74x"]
    )
    half = startup_log.read_start(["Maximum concurrency for 262,144 tokens per request: 2.37x"])
    assert compare.same_capacity(old, new) is True
    assert compare.same_capacity(new, half) is False
    assert compare.same_capacity(new, startup_log.StartFigures()) is None


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], False),
        ([100.0], False),
        ([90.0, 100.0], False),
        ([90.0, 100.0, 100.05], True),
        ([100.0, 100.0, 90.0], False),
    ],
)
def test_memory_has_settled(samples: list[float], expected: bool) -> None:
    assert compare.settled([gib(sample) for sample in samples]) is expected
