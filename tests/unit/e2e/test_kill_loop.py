# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.e2e import kill_loop


@pytest.mark.parametrize(
    ("steps", "size", "turn", "expected"),
    [
        (12, 3, 0, [1, 5, 9]),
        (12, 3, 3, [4, 8, 12]),
        (12, 3, 4, [1, 5, 9]),
        (13, 3, 4, [1, 5, 13]),
        (2, 3, 7, [1, 2]),
        (5, 5, 9, [1, 2, 3, 4, 5]),
    ],
)
def test_sample(steps: int, size: int, turn: int, expected: list[int]) -> None:
    assert kill_loop.sample(steps, size, turn) == expected


@pytest.mark.parametrize("steps", range(1, 40))
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_step_has_its_turn(steps: int, size: int) -> None:
    turns = [kill_loop.sample(steps, size, turn) for turn in range(1000, 1000 + steps)]
    assert {number for chosen in turns for number in chosen} == set(range(1, steps + 1))
    assert all(chosen == sorted(set(chosen)) and len(chosen) == min(size, steps) for chosen in turns)


def test_all_steps_or_a_sample() -> None:
    assert list(itertools.islice(kill_loop.numbers("all", 4, 5), 4)) == [1, 2, 3, 4]
    assert list(kill_loop.numbers("2", 4, 1)) == [2, 4]


def events(path: str, *steps: str) -> list[dict[str, Any]]:
    return [{"step": "begin", "host": "proxy1", "path": path}, *({"step": step, "host": "spark1"} for step in steps)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ([], False),
        (events("switch"), False),
        (events("switch", "withdrawn"), True),
        (events("switch", "withdrawn", "drained", "stopped", "started", "loaded"), True),
        (events("switch", "withdrawn", "drained", "stopped", "started", "admitted"), False),
        (events("switch", "withdrawn", "admitted", "withdrawn"), True),
        (events("rolling", "withdrawn", "drained"), False),
    ],
)
def test_declared_window(seen: list[dict[str, Any]], expected: bool) -> None:
    assert kill_loop.declared_window(seen) is expected


def test_last_act() -> None:
    assert kill_loop.last_act(events("switch", "stopped")) == "stopped of spark1"
    assert kill_loop.last_act([]) == "none"


def test_table() -> None:
    shown = kill_loop.table([("switch", "resume", 3, "stopped of spark1", "in its window", "12.0 s")])
    assert shown.splitlines() == [
        "PATH    WAY OUT  KILLED AFTER WRITE  ITS LAST ACT       FOUND          WAY OUT TOOK",
        "switch  resume   3                   stopped of spark1  in its window  12.0 s",
    ]
