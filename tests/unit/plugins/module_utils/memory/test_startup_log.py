# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's own lines, in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import startup_log, units

LOGS = Path(__file__).resolve().parents[3] / "fixtures" / "memory"
gib = units.from_gib


def read(name: str) -> startup_log.StartFigures:
    return startup_log.read_start((LOGS / name).read_text(encoding="utf-8").splitlines())


WHOLE: list[tuple[str, dict[str, Any]]] = [
    ("start-0.10.2.log", {
        "version": "0.10.2", "available": (gib(6.51),), "kv_tokens": 42656, "concurrency": 1.3, "max_model_len": 32768,
        "device": "GPU", "weights": gib(27.5185), "load_seconds": 71.402311}),
    ("start-0.33.0.log", {
        "version": "0.33.0", "available": (gib(18.6),), "kv_tokens": 1075525, "concurrency": 4.1, "max_model_len": 262144,
        "device": "GPU", "weights": gib(71.02), "load_seconds": 312.501, "graph_estimate": gib(2.44),
        "graph_actual": gib(0.03), "equivalent_utilization": (0.8, 0.7799)}),
    ("start-cpu.log", {
        "version": "0.32.0", "available": (gib(0.99),), "kv_tokens": 664444, "concurrency": 324.44, "max_model_len": 2048,
        "device": "CPU"}),
    ("start-v0.log", {
        "version": "0.6.3.post1", "blocks": 1478, "kv_tokens": 23648, "too_long": startup_log.TooLong(29000)}),
    ("start-pair.log", {
        "version": "0.29.0", "available": (gib(28.74), gib(28.48)), "kv_tokens": 240816, "concurrency": 1.22,
        "max_model_len": 196608, "device": "GPU", "weights": gib(41.6), "load_seconds": 140.5}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), WHOLE)
def test_whole_logs(name: str, expected: dict[str, Any]) -> None:
    assert read(name) == startup_log.StartFigures(**expected)


LINES: list[tuple[str, dict[str, Any]]] = [
    ("Free memory on device (38.74/121.63 GiB) on startup is less than desired GPU memory utilization (0.35, 42.57 GiB).",
     {"refusal": startup_log.Refusal(gib(38.74), gib(121.63), 0.35, gib(42.57))}),
    ("ValueError: Free memory on device cuda:0 (55.87/119.56 GiB) on startup is less than desired GPU memory utilization "
     "(0.5, 59.78 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
     {"refusal": startup_log.Refusal(gib(55.87), gib(119.56), 0.5, gib(59.78))}),
    ("Available memory on node 0 (13.52/15.96 GiB) on startup is less than desired CPU memory utilization (0.99, 15.8 GiB)",
     {"refusal": startup_log.Refusal(gib(13.52), gib(15.96), 0.99, gib(15.8))}),
    ("Available KV cache memory: -0.39 GiB", {"available": (gib(-0.39),)}),
    ("Available KV cache memory: 12 GiB", {"available": (gib(12),)}),
    ("Explicitly set (0.06/14.84) GiB for KV cache on node 0.", {"available": (gib(0.06),)}),
    ("To serve at least one request with the models's max seq len (221000), (10.12 GiB KV cache is needed, which is larger "
     "than the available KV cache memory (5.59 GiB). Based on the available memory, the estimated maximum model length is "
     "122080. Try", {"too_long": startup_log.TooLong(221000, gib(10.12), gib(5.59), 122080)}),
    ("To serve at least one request with the model's max seq len (196608), 23.25 GiB KV cache is needed, which is larger "
     "than the available KV cache memory (22.5 GiB). Based on the available memory, the estimated maximum model length is "
     "190272.", {"too_long": startup_log.TooLong(196608, gib(23.25), gib(22.5), 190272)}),
    ("the model's max seq len (4096), (1.0 GiB KV cache is needed, which is larger than the available KV cache memory "
     "(0.5 GiB).", {"too_long": startup_log.TooLong(4096, gib(1), gib(0.5), None)}),
    ("Estimated CUDA graph memory: -4.74 GiB total", {"graph_estimate": gib(-4.74)}),
    ("CUDA graph pool memory: -0.19 GiB (actual), 2.43 GiB (estimated)",
     {"graph_actual": gib(-0.19), "graph_estimate": gib(2.43)}),
    ("max_num_seqs (256) exceeds available Mamba cache blocks (184). Each", {"state_blocks": (256, 184)}),
    ("No available memory for the cache blocks. Try increasing", {"no_blocks": True}),
    ("Error in memory profiling. Initial free memory 95.5 GiB, current free memory 96.25 GiB. This happens when",
     {"released_meanwhile": (gib(95.5), gib(96.25))}),
    ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
     {"engine_failed": True}),
    ("XPU KV cache size: 1,024 tokens", {"device": "XPU", "kv_tokens": 1024}),
    ("nothing to see here", {}),
    ('{"message": 3, "levels": ["a"]}', {}),
    ("{not json}", {}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES)
@pytest.mark.parametrize(
    "prefix",
    ["", "(EngineCore pid=1) ERROR 11-20 08:06:31 [core.py:1] ", "Nov 20 08:00:00 spark1 vllm[9]: ", "vllm | "],
)
def test_single_lines(prefix: str, line: str, expected: dict[str, Any]) -> None:
    assert startup_log.read_start([prefix + line]) == startup_log.StartFigures(**expected)


def test_only_the_last_start_counts() -> None:
    both = [name.read_text(encoding="utf-8") for name in (LOGS / "start-v0.log", LOGS / "start-0.10.2.log")]
    assert startup_log.read_start("".join(both).splitlines()) == read("start-0.10.2.log")
    again = (LOGS / "start-0.33.0.log").read_text(encoding="utf-8").splitlines()
    assert startup_log.read_start([*again, *again]) == read("start-0.33.0.log")


def test_the_smallest_rank_decides() -> None:
    assert read("start-pair.log").kv_bytes == gib(28.48)


@pytest.mark.parametrize(
    ("lines", "meaning", "capacity"),
    [
        (["GPU KV cache size: 200,000 tokens", "Maximum concurrency for 100,000 tokens per request: 12.00x"],
         "blocks", 1_200_000),
        (["GPU KV cache size: 1,200,000 tokens, Maximum concurrency for 100,000 tokens per request: 12.00x"],
         "concurrency", 1_200_000),
        (["GPU KV cache size: 5,000 tokens"], "unknown", None),
        (["Maximum concurrency for 100 tokens per request: 2.00x"], "unknown", 200),
        ([], "unknown", None),
    ],
)  # fmt: skip
def test_capacity_is_comparable_over_builds(lines: list[str], meaning: str, capacity: int | None) -> None:
    figures = startup_log.read_start(lines)
    assert figures.capacity == capacity
    assert figures.meaning == meaning


def test_figures_for_the_next_plan() -> None:
    start = read("start-0.33.0.log").measurement(requested=gib(94.92))
    assert start is not None
    assert (start.kv_bytes, start.tokens, start.max_model_len, start.requested) == (
        gib(18.6),
        1075525,
        262144,
        gib(94.92),
    )
    assert start.overhead == gib(94.92) - gib(18.6)
    assert startup_log.read_start(["Available KV cache memory: -0.39 GiB"]).measurement() is None
    assert read("start-v0.log").measurement() is None
