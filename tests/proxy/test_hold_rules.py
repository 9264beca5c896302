# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may wait and who is let go when, without any I/O."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import ROLE

sys.path.insert(0, str(ROLE / "files"))
from gb10_vllm_hold import GOOD_LOOKS, POLL_SECONDS, Bounds, Hold, declaration  # type: ignore[import-not-found]


def hold(waiting: int = 0, **bounds: float) -> Hold:
    made = Hold(Bounds(**{"requests": 10, "body_bytes": 1000, "seconds": 60, "first_releases": 4, **bounds}))
    for number in range(waiting):
        made.enter(number, waited=0, now=0)
    return made


@pytest.mark.parametrize(
    ("waiting", "armed", "size", "waited", "why"),
    [
        (0, True, 1000, 0, None),
        (9, True, 0, 59.9, None),
        (0, False, 0, 0, "not_declared"),
        (10, True, 0, 0, "full"),
        (0, True, 1001, 0, "too_large"),
        (0, True, 0, 60, "too_long"),
    ],
)
def test_who_may_wait(waiting: int, armed: bool, size: int, waited: float, why: str | None) -> None:
    assert hold(waiting).refuses(armed, size, waited) == why


def test_the_time_counts_from_where_nginx_got_the_request() -> None:
    made = hold()
    made.enter(1, waited=50, now=100)
    made.enter(2, waited=0, now=100)
    assert made.overdue(109.9) == []
    assert made.overdue(110) == [1]
    made.leave(1, "too_long", 110)
    assert (made.counts["too_long"], made.longest, list(made.waiting)) == (1, 10, [2])
    made.leave(1, "released", 111)
    assert made.counts["released"] == 0, "who has left does not leave again"


def test_nobody_is_let_go_before_so_many_good_looks_in_a_row() -> None:
    made = hold(3)
    nearly = [True] * (GOOD_LOOKS - 1)
    looks = [*nearly, False, *nearly]
    assert [made.look(serving, 0.1 * number) for number, serving in enumerate(looks)] == [[]] * len(looks)
    assert made.look(True, 0.1 * len(looks)) == [0]


def test_the_looks_last_longer_than_the_old_workers() -> None:
    assert (GOOD_LOOKS - 1) * POLL_SECONDS >= 2 * 0.1


def test_oldest_first_and_twice_as_many_each_second() -> None:
    made = hold(10)
    gone = []
    # Eighths of a second, which are exact.
    for eighth in range(32):
        now = eighth / 8
        batch = made.look(True, now)
        gone += [(number, now) for number in batch]
        for number in batch:
            made.leave(number, "released", now)
    assert [number for number, _now in gone] == list(range(10))
    # Sure after so many looks; then one at once and 4 * (2^t - 1) more.
    sure = (GOOD_LOOKS - 1) / 8
    assert [sum(now - sure < seconds for _number, now in gone) for seconds in (0.05, 1.05, 2.05)] == [1, 5, 10]


def test_a_copy_that_goes_again_stops_the_release() -> None:
    made = hold(10, first_releases=100)
    until_sure: list[list[int]] = [[]] * (GOOD_LOOKS - 1) + [[0]]
    assert [made.look(True, 0.1 * number) for number in range(GOOD_LOOKS)] == until_sure
    assert made.look(False, 1) == []
    assert [made.look(True, 1 + 0.1 * number) for number in range(1, GOOD_LOOKS + 1)] == until_sure


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ('{"until": 12.5, "why": "x"}', (12.5, "x")),
        ("", (0, "")),
        ("[]", (0, "")),
        ('{"until": "soon", "why": "x"}', (0, "")),
        ('{"until": 12.5}', (0, "")),
    ],
)
def test_a_declaration_that_cannot_be_read_is_none(tmp_path: Path, text: str, declared: tuple[float, str]) -> None:
    file = tmp_path / "hold.json"
    assert declaration(file) == (0, "")
    file.write_text(text)
    assert declaration(file) == declared
