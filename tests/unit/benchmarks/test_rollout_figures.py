# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "benchmarks" / "bench_rollout.py"
EVENTS: list[dict[str, Any]] = [
    {"time": 100.0, "step": "withdrawn", "host": "spark1"},
    {"time": 101.0, "step": "drained", "host": "spark1", "seconds": 1.0},
    {"time": 103.0, "step": "stopped", "host": "spark1", "seconds": 2.0},
    {"time": 103.5, "step": "started", "host": "spark1"},
    {"time": 103.5, "step": "started", "host": "spark2"},
    {"time": 128.2, "step": "loaded", "host": "spark2", "seconds": 24.0},
    {"time": 128.1, "step": "passed", "host": "spark2"},
    {"time": 128.2, "step": "admitted", "host": "spark2"},
    {"time": 133.3, "step": "loaded", "host": "spark1", "seconds": 29.0},
    {"time": 133.2, "step": "passed", "host": "spark1"},
    {"time": 133.3, "step": "admitted", "host": "spark1"},
]


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_rollout", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_rollout"] = module
    spec.loader.exec_module(module)
    return module


def record(start: float, status: int = 200) -> dict[str, Any]:
    end = start + 0.1
    return {"start": start, "end": end, "answered": end, "status": status, "complete": status == 200, "copy": "spark2"}


def test_the_window_is_judged_by_the_copy_that_served_first(bench: ModuleType) -> None:
    found = bench.from_journal(EVENTS)
    assert {name: round(value, 3) for name, value in found.items()} == {
        "window_seconds": 28.2,
        "engine_start_seconds": 24.0,
        "ours_seconds": 4.2,
        "began": 100.0,
        "ready": 128.1,
    }


def test_figures_of_clients(bench: ModuleType) -> None:
    records = [record(90), record(99.95), record(110, 503), record(120, 503), record(128.15, 503), record(128.3)]
    found = bench.figures(bench.from_journal(EVENTS), records)
    assert (found["requests"], found["failed"], found["failed_after_ready"]) == (5, 3, 1)
    assert found["how"] == "503: 3"
    assert found["gate_to_first_200_seconds"] == pytest.approx(0.3)
    assert found.keys() == bench.WORDS.keys()


def test_a_service_that_never_answered_has_no_figures(bench: ModuleType) -> None:
    with pytest.raises(ValueError, match="no request was answered"):
        bench.figures(bench.from_journal(EVENTS), [record(110, 503)])


@pytest.mark.parametrize(
    ("ours", "first", "expected"), [(4.9, 0.4, (True, True)), (5.0, 0.4, (False, True)), (1.0, 0.5, (True, False))]
)
def test_goals(bench: ModuleType, ours: float, first: float, expected: tuple[bool, bool]) -> None:
    met = bench.goals_met({"ours_seconds": ours, "gate_to_first_200_seconds": first})
    assert tuple(met.values()) == expected
