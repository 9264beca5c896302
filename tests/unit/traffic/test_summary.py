# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.e2e.traffic import summary

MARKS = {"start": 100.0, "end": 160.0}


def record(start: float, end: float, status: Any = 200, copy: str | None = "a", **more: Any) -> dict[str, Any]:
    """A request of one attempt, complete if its status says so."""
    good = status == 200
    http = status if isinstance(status, int) else None
    return {
        "start": start,
        "end": end,
        "answered": end if http else None,
        "status": status,
        "copy": copy if good else None,
        "streamed": False,
        "complete": good,
        "retries": 0,
        "attempts": [[start, http]],
        **more,
    }


@pytest.mark.parametrize(
    ("moment", "expected"),
    [(99.9, "before"), (100.0, "during"), (159.9, "during"), (160.0, "after")],
)
def test_phase(moment: float, expected: str) -> None:
    assert summary.phase(moment, MARKS) == expected


def test_requests_count_where_they_end() -> None:
    records = [record(98, 99), record(99, 101), record(130, 131, 503), record(140, 141, "timeout"), record(155, 161)]
    assert summary.summarise(records, MARKS)["requests"] == {
        "before": {"200": 1},
        "during": {"200": 1, "503": 1, "timeout": 1},
        "after": {"200": 1},
    }


def test_incomplete_answer_is_no_200() -> None:
    records = [record(1, 2, complete=False)]
    result = summary.summarise(records, MARKS)
    assert result["requests"]["before"] == {"incomplete": 1}
    assert result["copies"]["before"] == {}


def test_what_a_retry_hides_is_counted() -> None:
    hidden = record(150, 161, retries=2, attempts=[[150, 503], [155, None], [160.5, 200]])
    result = summary.summarise([hidden], MARKS)
    assert result["requests"]["after"] == {"200": 1}
    assert result["attempts"] == {"before": {}, "during": {"503": 1, "no answer": 1}, "after": {"200": 1}}
    assert result["retries"] == 2


def test_copies_count_complete_answers() -> None:
    records = [record(1, 2), record(161, 162, copy="a"), record(161, 163, copy="b"), record(161, 163, 500, copy="b")]
    assert summary.summarise(records, MARKS)["copies"] == {"before": {"a": 1}, "during": {}, "after": {"a": 1, "b": 1}}


@pytest.mark.parametrize(
    ("moment", "copy", "expected"),
    [
        (0.0, None, 5.0),
        (5.0, None, 0.0),
        (6.0, None, 2.0),
        (6.0, "b", 3.0),
        (10.0, None, None),
        (0.0, "c", None),
    ],
)
def test_first_success_after(moment: float, copy: str | None, expected: float | None) -> None:
    records = [
        record(1, 5),
        record(4, 6.5, 503),
        record(7, 8),
        record(7, 9, copy="b"),
        record(9, 11, "broken", copy="b", answered=10.5),
    ]
    assert summary.first_success_after(records, moment, copy) == expected


def test_first_success_is_given_for_every_mark() -> None:
    result = summary.summarise([record(1, 2), record(150, 162)], {**MARKS, "gate": 158.0})
    assert result["first_success"] == {"start": 62.0, "end": 2.0, "gate": 4.0}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], None),
        ([record(0, 4, 503)], 4.0),
        ([record(0, 1), record(1, 2), record(2, 9)], 7.0),
        ([record(0, 5), record(5, 6)], 5.0),
        ([record(0, 1), record(1, 8, "timeout")], 7.0),
        ([record(3, 9), record(0, 1), record(2, 4, 503)], 8.0),
    ],
)
def test_longest_gap(records: list[dict[str, Any]], expected: float | None) -> None:
    assert summary.longest_gap(records) == expected


def test_read_leaves_out_a_half_written_line() -> None:
    assert summary.read(['{"a": 1}\n', '{"a": 2}\n', '{"a"']) == [{"a": 1}, {"a": 2}]
