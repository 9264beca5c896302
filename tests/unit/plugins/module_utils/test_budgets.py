# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of the time budgets, over the whole range of what they are derived from."""

from __future__ import annotations

import itertools

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _budgets

LOADS = [*range(1, 400), 599, 600, 900, 1199, 1200, 3600, 86400]
SHUTDOWNS = [0, 1, 20, 60, 3600]


@pytest.mark.parametrize(("shutdown", "burst"), list(itertools.product(SHUTDOWNS, (1, 3, 10))))
def test_order(shutdown: int, burst: int) -> None:
    for load in LOADS:
        b = _budgets.derive(load, shutdown, restart_burst=burst)
        assert load < b.engine_ready < b.gate_deadline < b.unit_start
        assert shutdown < b.container_stop < b.unit_stop
        assert b.restart_window > burst * (b.unit_start + b.restart_delay)
        assert b.expected_load == load
        assert b.shutdown == shutdown


@pytest.mark.parametrize(
    ("load", "gate", "ready"),
    [(900, 1800, 1350), (1200, 2400, 1800), (60, 120, 90), (1, 120, 90)],
    ids=["copy: half an hour is safe", "pair: forty minutes are safe", "tiny model", "stand-in"],
)
def test_figures(load: int, gate: int, ready: int) -> None:
    budgets = _budgets.derive(load)
    assert (budgets.gate_deadline, budgets.engine_ready) == (gate, ready)


def test_values_are_whole_seconds() -> None:
    assert all(isinstance(value, int) for value in _budgets.derive(901).as_dict().values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"expected_load": 0}, "expected load is 0, but must be at least 1"),
        ({"expected_load": -5}, "expected load is -5"),
        ({"expected_load": 1, "shutdown": -1}, "shutdown is -1, but must be at least 0"),
        ({"expected_load": 1, "restart_delay": 0}, "restart delay is 0"),
        ({"expected_load": 1, "restart_burst": 0}, "restart burst is 0"),
    ],
)
def test_out_of_range(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _budgets.derive(**arguments)


@pytest.mark.parametrize(
    ("given", "longest", "deadline"),
    [
        (1800, None, 1800),
        (1800, 300, 960),
        (1800, 900, 1800),
        (1800, 5000, 1800),
        (1800, 20, 450),
        (120, 2, 66),
        (120, 0.4, 61),
        (120, 30, 120),
        (60, 1, 60),
        (1, 1, 1),
        (86400, 3, 21600),
    ],
    ids=["never loaded here", "three times as slow is waited for", "nearly the budget", "over the budget", "a quarter stays", "tiny model",
         "stand-in", "half the budget", "no more than the budget", "shortest", "longest"],
)  # fmt: skip
def test_learned_deadline(given: int, longest: float | None, deadline: int) -> None:
    assert _budgets.learned_deadline(given, longest) == deadline


def test_a_start_as_slow_as_the_slowest_known_one_always_passes() -> None:
    for load in LOADS:
        given = _budgets.derive(load).gate_deadline
        for share in (0.01, 0.1, 0.5, 1, 1.9):
            deadline = _budgets.learned_deadline(given, load * share)
            assert load * share < deadline <= given
            assert deadline >= min(given, 3 * load * share)
