# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of an engine that was stopped for want of memory."""

from __future__ import annotations

import json

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._guard_hold import Hold, Next, Rules

RULES = Rules(seconds=60, starts=2, window=7200)
GIB = 1 << 30


def look(
    hold: Hold, now: float, available: float = 100, unit: str = "inactive", enabled: bool = True, paused: str = ""
) -> Next:
    return hold.look(now, round(available * GIB), 90 * GIB, unit, enabled, paused)


def held(now: float = 1000) -> Hold:
    hold = Hold(RULES)
    hold.begin(now, "5.5 GiB available")
    return hold


def test_nothing_is_held_at_first() -> None:
    assert look(Hold(RULES), 0) is Next.WAIT


@pytest.mark.parametrize(
    ("what", "after", "expected", "words"),
    [
        ({"unit": "deactivating"}, 2, Next.WAIT, "is being stopped"),
        # systemd's own restart was quicker than the order to stop.
        ({"unit": "activating"}, 6, Next.STOP, ""),
        ({"available": 50}, 600, Next.WAIT, "50.0 GiB are available, a start needs 90.0 GiB"),
        ({}, 30, Next.WAIT, "for 0 s of 60 s"),
        ({"enabled": False}, 600, Next.RELEASED, "disabled"),
    ],
)
def test_one_look(what: dict[str, object], after: float, expected: Next, words: str) -> None:
    hold = held()
    assert look(hold, 1000 + after, **what) is expected  # type: ignore[arg-type]
    assert words in hold.words


def test_enough_memory_must_last() -> None:
    hold = held()
    assert look(hold, 1010) is Next.WAIT
    assert look(hold, 1060, available=89) is Next.WAIT
    assert look(hold, 1071) is Next.WAIT
    assert look(hold, 1130) is Next.WAIT
    assert look(hold, 1131) is Next.START
    assert hold.since is None


def test_a_pause_keeps_it_from_being_started_and_from_nothing_else() -> None:
    hold = held()
    assert look(hold, 1006, unit="active", paused="rollout") is Next.STOP
    assert look(hold, 1010, paused="rollout") is Next.WAIT
    assert look(hold, 1100, paused="rollout") is Next.WAIT
    assert hold.words == "paused by rollout"
    assert look(hold, 1101) is Next.START


def test_who_starts_it_by_hand_has_decided() -> None:
    hold = held()
    look(hold, 1010)
    assert look(hold, 1020, unit="activating") is Next.RELEASED
    assert look(hold, 1030, unit="active") is Next.WAIT


def test_it_gives_up_and_says_so_once() -> None:
    hold, now = held(), 1000.0
    for _start in range(RULES.starts):
        look(hold, now + 10)
        assert look(hold, now + 70) is Next.START
        now += 500
        hold.begin(now, "again")
    look(hold, now + 10)
    assert look(hold, now + 70) is Next.GIVE_UP
    assert look(hold, now + 80) is Next.WAIT
    assert "2 times within 7200 s" in hold.words
    # Time alone changes nothing; a person does.
    assert look(hold, now + 9000) is Next.WAIT
    assert look(hold, now + 9010, unit="active") is Next.RELEASED
    assert not hold.gave_up


def test_starts_of_long_ago_do_not_count() -> None:
    hold = held()
    hold.starts = [1000 - 7200, 1000 - 7190]
    look(hold, 1000)
    assert look(hold, 1070) is Next.START
    assert hold.starts == [1070]


def test_it_outlives_the_process() -> None:
    hold = held()
    look(hold, 1010)
    again = Hold.restored(RULES, json.loads(json.dumps(hold.as_dict())))
    assert (again.since, again.why, again.down) == (1000, "5.5 GiB available", True)
    look(again, 1020)
    assert look(again, 1080) is Next.START


@pytest.mark.parametrize("kept", [{}, {"since": "yesterday", "starts": 3}])
def test_nothing_that_was_kept(kept: dict[str, object]) -> None:
    assert Hold.restored(RULES, kept) == Hold(RULES)
