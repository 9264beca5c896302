# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Knees and proposals, with the curves that were published for two machines, and with noise on them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _sweep

# Tokens per second of one copy by the number of requests at once.
SHORT = {1: 36.0, 4: 82.0, 8: 109.0, 16: 150.0}
LONG = {4: 81.0, 8: 113.0, 16: 87.0}
# One afternoon, one copy with at most 8 and the other with at most 12: 81 to 83 and 91 to 93.
MIX = {8: 82.0, 12: 92.0}
CURVES = {"short": (SHORT, 16, _sweep.RISING), "long": (LONG, 8, _sweep.FALLS), "mix": (MIX, 12, _sweep.RISING)}
SEEDS = 400


def run(shape: str, concurrency: int, speed: float, repeat: int = 1, **more: Any) -> dict[str, Any]:
    figures = {"output_per_second": speed, "requests_per_second": speed / 100, "ttft_p50": 20.0 * concurrency,
               "ttft_p99": 40.0 * concurrency, "itl_p50": 30.0, "itl_p99": 60.0}  # fmt: skip
    counts = {"completed": 40, "failed": 0, "input_tokens": 4000, "output_tokens": 4000}
    return {"shape": shape, "concurrency": concurrency, "repeat": repeat, "error": "", "acceptance": None,
            **figures, **counts, **more}  # fmt: skip


def noisy(shape: str, curve: dict[int, float], dice: random.Random, repeats: int, kind: str) -> list[dict[str, Any]]:
    """Each run is off by up to 5 percent, or nineteen of twenty are."""
    found = []
    for repeat in range(1, repeats + 1):
        for concurrency, speed in curve.items():
            off = dice.uniform(-0.05, 0.05) if kind == "uniform" else dice.gauss(0, 0.025)
            found.append(run(shape, concurrency, speed * (1 + off), repeat))
    return found


@pytest.mark.parametrize("shape", CURVES)
def test_the_published_curves(shape: str) -> None:
    curve, concurrency, kind = CURVES[shape]
    found = _sweep.knee(_sweep.rows(run(shape, at, speed) for at, speed in curve.items()))
    assert (found["concurrency"], found["kind"]) == (concurrency, kind)
    assert kind in found["words"]


@pytest.mark.parametrize("kind", ["uniform", "gauss"])
@pytest.mark.parametrize("shape", CURVES)
def test_noise_of_five_percent_flips_nothing(shape: str, kind: str) -> None:
    curve, concurrency, word = CURVES[shape]
    for seed in range(SEEDS):
        runs = noisy(shape, curve, random.Random(f"{shape}{kind}{seed}"), 3, kind)
        found = _sweep.knee(_sweep.rows(runs))
        assert (found["concurrency"], found["kind"]) == (concurrency, word), f"seed {seed}"


@pytest.mark.parametrize("shape", CURVES)
def test_the_worst_that_five_percent_can_do(shape: str) -> None:
    """One run each, every error in the worst direction."""
    curve, concurrency, kind = CURVES[shape]
    worst = {at: speed * (0.95 if at == concurrency else 1.05) for at, speed in curve.items()}
    found = _sweep.knee(_sweep.rows(run(shape, at, speed) for at, speed in worst.items()))
    assert (found["concurrency"], found["kind"]) == (concurrency, kind)


@pytest.mark.parametrize(
    ("curve", "concurrency", "kind"),
    [
        ({1: 30, 2: 60, 4: 100, 8: 100.5, 16: 101}, 4, _sweep.LEVEL),
        ({1: 30, 2: 60, 4: 100, 8: 103, 16: 103}, 8, _sweep.LEVEL),
        ({4: 100, 8: 99.5, 16: 99.2}, 4, _sweep.LEVEL),
        ({4: 100, 8: 80, 16: 120}, 16, _sweep.RISING),
        ({4: 100, 8: 100.9, 16: 90}, 4, _sweep.FALLS),
        ({1: 30}, 1, _sweep.RISING),
    ],
)
def test_other_curves(curve: dict[int, float], concurrency: int, kind: str) -> None:
    found = _sweep.knee(_sweep.rows(run("s", at, speed) for at, speed in curve.items()))
    assert (found["concurrency"], found["kind"]) == (concurrency, kind)


def test_the_median_counts_and_one_slow_run_does_not() -> None:
    runs = [run("s", 8, speed, repeat) for repeat, speed in enumerate((100, 101, 20), 1)]
    (row,) = _sweep.rows(runs)
    assert (row["output_per_second"], row["lowest"], row["highest"], row["runs"]) == (100, 20, 101, 3)


def test_a_point_with_failures_is_no_candidate() -> None:
    runs = [run("s", 4, 80), run("s", 8, 110), run("s", 16, 150, failed=3, completed=37)]
    found = _sweep.knee(_sweep.rows(runs))
    assert found["concurrency"] == 8
    assert "3 of 40 requests failed (at 16)" in found["words"]


def test_one_failed_repeat_spoils_the_point() -> None:
    runs = [run("s", 4, 80), run("s", 8, 150, 1), run("s", 8, 150, 2, failed=1), run("s", 8, 150, 3)]
    assert _sweep.knee(_sweep.rows(runs))["concurrency"] == 4


def test_a_point_that_did_not_end_is_no_candidate() -> None:
    runs = [run("s", 4, 80), {"shape": "s", "concurrency": 8, "repeat": 1, "error": "it did not end within 900 s"}]
    found = _sweep.knee(_sweep.rows(runs))
    assert found["concurrency"] == 4
    assert "did not end within 900 s" in found["words"]


def test_a_limit_on_waiting_takes_the_fastest_point_away() -> None:
    table = _sweep.rows(run("s", at, speed) for at, speed in SHORT.items())
    found = _sweep.knee(table, {"ttft_p99": 400.0, "itl_p99": 0})
    assert found["concurrency"] == 8
    assert "ttft_p99 is 640 ms, at most 400 ms are allowed (at 16)" in found["words"]


def test_nothing_can_be_judged() -> None:
    found = _sweep.knee(_sweep.rows([run("s", 4, 80, failed=1)]))
    assert found["concurrency"] is None
    proposal = _sweep.propose({"s": found}, "")
    assert proposal["max_num_seqs"] is None
    assert "1 of 41 requests failed" in proposal["reason"]


def judged(shapes: list[str], **options: Any) -> dict[str, Any]:
    runs = [run(shape, at, speed) for shape in shapes for at, speed in CURVES[shape][0].items()]
    named = [{"name": shape, "words": f"{shape} prompts", "own": shape == "mix"} for shape in shapes]
    return _sweep.judge(runs, named, **options)


def test_the_owners_mix_decides() -> None:
    found = judged(["short", "long", "mix"])
    assert {shape["name"]: shape["knee"]["concurrency"] for shape in found["shapes"]} == {
        "short": 16,
        "long": 8,
        "mix": 12,
    }
    assert found["proposal"]["max_num_seqs"] == 12
    assert "your own mix decides" in found["proposal"]["reason"]


def test_without_a_mix_the_most_careful_shape_decides() -> None:
    proposal = judged(["short", "long"])["proposal"]
    assert (proposal["max_num_seqs"], proposal["by"]) == (8, "long")
    assert "113 tokens/s at 8, 87 at 16" in proposal["reason"]


def test_a_mix_that_could_not_be_judged_is_not_replaced_by_another_shape() -> None:
    runs = [run("short", 8, 100), run("mix", 8, 100, failed=2)]
    shapes = [{"name": "short", "words": "", "own": False}, {"name": "mix", "words": "", "own": True}]
    proposal = _sweep.judge(runs, shapes)["proposal"]
    assert proposal["max_num_seqs"] is None
    assert "2 of 42 requests failed" in proposal["reason"]


def test_never_above_the_memory_plan() -> None:
    proposal = judged(["short"], bound=10)["proposal"]
    assert proposal["max_num_seqs"] == 10
    assert "lowered from 16 to 10, the most that the memory plan allows" in proposal["reason"]


def test_an_engine_whose_own_bound_was_in_the_way_is_said() -> None:
    runs = [run("short", at, SHORT[at]) for at in (1, 4, 8)]
    shapes = [{"name": "short", "words": "", "own": False}]
    proposal = _sweep.judge(runs, shapes, current=8, measured=16)["proposal"]
    assert proposal["max_num_seqs"] == 8
    assert "this engine takes 8 at once" in proposal["reason"]


RESULT = {
    "output_throughput": 109.2, "request_throughput": 0.85, "median_ttft_ms": 210.0, "p99_ttft_ms": 900.5,
    "median_itl_ms": 70.1, "p99_itl_ms": 140.0, "completed": 40, "failed": 0, "total_input_tokens": 5120,
    "total_output_tokens": 5120, "duration": 46.9, "spec_decode_acceptance_length": 2.9,
}  # fmt: skip


def test_a_result_of_the_client() -> None:
    found = _sweep.read_result(RESULT)
    assert (found["output_per_second"], found["ttft_p99"], found["completed"], found["acceptance"]) == (
        109.2,
        900.5,
        40,
        2.9,
    )
    assert _sweep.read_result({**RESULT, "spec_decode_acceptance_length": None})["acceptance"] is None


@pytest.mark.parametrize("broken", [{"output_throughput": None}, {"failed": "0"}, {"p99_itl_ms": float("nan")}])
def test_a_result_that_is_none(broken: dict[str, Any]) -> None:
    (name,) = [_sweep.FIGURES.get(key, key) for key in broken]
    with pytest.raises(_sweep.SweepError, match=name):
        _sweep.read_result({**RESULT, **broken})


def test_the_table_for_people() -> None:
    text = _sweep.lines(judged(["long"]))
    assert text[2].split() == ["long", "8", "113.0", "0", "160", "320", "30.0", "60.0", "0", "knee"]
    assert max(len(line) for line in text[:-1]) <= 74, "Ansible breaks longer lines"
    assert text[-1] == "long (long prompts): falls after 8: 113 tokens/s at 8, 87 at 16"
