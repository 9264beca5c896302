# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard does about scripted samples."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._guard import GIB, Act, Bounds, Guard

BOUNDS = Bounds(warn=10 * GIB, floor=6 * GIB, kill=3 * GIB)


class Story:
    """Feeds a guard with samples in GiB and remembers what it did, and when."""

    def __init__(self, running: bool = True) -> None:
        self.guard, self.now, self.running = Guard(BOUNDS), 0.0, running
        self.acts: list[tuple[float, Act]] = []

    def look(self, available: float, free: float = 20, after: float | None = None) -> list[Act]:
        self.now += self.guard.pace() if after is None else after
        acts = list(self.guard.sample(self.now, round(available * GIB), round(free * GIB), self.running))
        self.acts += [(self.now, act) for act in acts]
        return acts

    def stay(self, seconds: float, available: float, free: float = 20) -> list[Act]:
        """The same sample for so long; what was done."""
        end, done = self.now + seconds, []
        while self.now < end:
            done += self.look(available, free)
        return done

    def until(self, act: Act, available: Callable[[float], float], most: int = 1000) -> None:
        """Samples by the time, until it does that."""
        for _look in range(most):
            if act in self.did():
                return
            # What the next look sees is decided by its pace.
            self.look(available(self.now + self.guard.pace()))
        raise AssertionError(f"{act} was never done, only {self.did()}")

    def did(self) -> list[Act]:
        return [act for _when, act in self.acts if act not in (Act.WARN, Act.EASED)]


@pytest.mark.parametrize(
    ("samples", "fires_at"),
    [
        # A steady fall needs no confirmation, and is too fast for anything but a kill.
        ([30, 22, 9, 3], 4),
        ([9.9, 8.7, 7.4, 5.9], 4),
        # Noise: one sample, or one in between.
        ([30, 30, 30, 5, 30, 30], None),
        ([30, 30, 2, 30, 30, 2, 30], None),
        ([7, 5.9, 7, 5.9, 6.5, 5.9, 7], None),
        # The floor itself counts, but only when it stays.
        ([30, 6, 6, 6], 4),
        ([6.1] * 50, None),
        # So far below that a second look is enough.
        ([30, 30, 30, 2.5, 2.5], 5),
        # However fast it falls, nothing happens above the floor.
        ([110, 80, 50, 20, 10.5, 10.5, 10.5], None),
        ([110, 60, 8, 8, 8, 8], None),
    ],
)
def test_fires(samples: list[float], fires_at: int | None) -> None:
    story = Story()
    fired = None
    for number, available in enumerate(samples, 1):
        acts = [act for act in story.look(available, after=1) if act is not Act.WARN]
        if acts and fired is None:
            fired = number
    assert fired == fires_at


def test_a_fall_of_seven_gib_in_three_seconds_is_killed_above_the_kill_bound() -> None:
    story = Story()
    story.stay(10, 12)
    fell = story.now
    story.until(Act.KILL, lambda now: 12 - 7 / 3 * (now - fell))
    left = 12 - 7 / 3 * (story.now - fell)
    assert story.did() == [Act.KILL, Act.REFUSE]
    assert story.now - (story.guard.crossed or 0) <= 0.35
    assert left > BOUNDS.kill / GIB + 2


def test_the_order_when_there_is_time_for_it() -> None:
    story = Story()
    story.stay(5, 12)
    story.stay(60, 5.5)
    assert story.did()[:4] == [Act.DROP, Act.REFUSE, Act.STOP, Act.KILL]
    when = {act: at for at, act in reversed(story.acts)}
    assert when[Act.REFUSE] - when[Act.DROP] == pytest.approx(3, abs=0.2)
    assert when[Act.STOP] - when[Act.REFUSE] == pytest.approx(3, abs=0.2)
    assert when[Act.KILL] - when[Act.STOP] == pytest.approx(30, abs=0.2)
    # A kill is repeated until nothing is left.
    assert story.did().count(Act.KILL) > 20
    story.running = False
    assert Act.KILL not in story.stay(5, 5.5)


@pytest.mark.parametrize(
    ("helps_after", "did"), [(Act.DROP, [Act.DROP]), (Act.REFUSE, [Act.DROP, Act.REFUSE, Act.ALLOW])]
)
def test_what_helps_ends_it(helps_after: Act, did: list[Act]) -> None:
    story = Story()
    story.stay(5, 12)
    story.until(helps_after, lambda _now: 5.5)
    story.stay(120, 14)
    assert story.did() == did
    assert story.guard.stage is None


def test_what_did_not_help_for_long_is_not_tried_again() -> None:
    story = Story()
    story.stay(3, 5.5)
    assert story.did() == [Act.DROP]
    story.stay(10, 6.5)
    story.stay(2, 5.5)
    assert story.did() == [Act.DROP, Act.REFUSE]
    story.stay(90, 20)
    story.stay(2, 5.5)
    assert story.did() == [Act.DROP, Act.REFUSE, Act.ALLOW, Act.DROP]


def test_a_slow_fall_has_no_time_for_a_clean_stop() -> None:
    """0.2 GiB/s reach the kill bound in ten seconds, a clean stop may take thirty."""
    story = Story()
    story.until(Act.KILL, lambda now: 7 - 0.2 * now)
    assert story.did() == [Act.DROP, Act.REFUSE, Act.KILL]


def test_a_stop_that_the_memory_does_not_wait_for() -> None:
    story = Story()
    story.until(Act.STOP, lambda _now: 5.5)
    for available in (5.0, 4.4, 3.8):
        story.look(available)
    assert story.did() == [Act.DROP, Act.REFUSE, Act.STOP, Act.KILL]


def test_a_stop_that_works_is_left_alone() -> None:
    story = Story()
    story.until(Act.STOP, lambda _now: 5.5)
    story.stay(10, 5.5)
    story.running = False
    story.stay(60, 110)
    assert story.did() == [Act.DROP, Act.REFUSE, Act.STOP, Act.ALLOW]


def test_without_an_engine_nothing_is_stopped() -> None:
    story = Story(running=False)
    for available in (9, 7, 5, 3, 1):
        story.look(available, after=1)
    story.stay(60, 1)
    assert set(story.did()) == {Act.DROP, Act.REFUSE} or story.did() == [Act.REFUSE]


@pytest.mark.parametrize(
    ("available", "free", "drops"),
    [
        # Loading: MemFree is near zero for minutes, because the page cache holds the checkpoint.
        (40, 0.3, 0),
        (10.5, 0.0, 0),
        # Both are little: the driver refuses allocations that the page cache could serve.
        (9, 1.5, 1),
        (9, 3, 0),
    ],
)
def test_little_free_memory(available: float, free: float, drops: int) -> None:
    story = Story()
    story.stay(50, available, free)
    assert story.did() == [Act.DROP] * drops


def test_little_free_memory_for_a_moment_only() -> None:
    story = Story()
    for free in (1, 1, 1, 5, 1, 1, 1, 5):
        story.look(9, free, after=1)
    assert story.did() == []


def test_warnings_come_before_the_floor_and_not_all_the_time() -> None:
    story = Story()
    assert story.look(9.9, after=1) == []
    assert Act.WARN in story.stay(3, 9.9)
    assert story.stay(50, 9.9) == []
    assert story.stay(20, 9.9) == [Act.WARN]
    assert story.stay(5, 12) == []
    assert story.stay(10, 12) == [Act.EASED]


@pytest.mark.parametrize(("available", "pace"), [(30, 1.0), (14.1, 1.0), (10, 0.5), (8, 0.25), (6.2, 0.1), (2, 0.1)])
def test_the_nearer_the_floor_the_sooner_it_looks_again(available: float, pace: float) -> None:
    story = Story()
    story.look(available)
    assert story.guard.pace() == pytest.approx(pace)


@pytest.mark.parametrize("bounds", [(10, 6, 6), (5, 6, 3), (10, 6, 0)])
def test_bounds_that_cannot_be(bounds: tuple[int, int, int]) -> None:
    warn, floor, kill = bounds
    with pytest.raises(ValueError, match=f"kill is {kill} GiB, floor {floor} GiB and warn {warn} GiB"):
        Bounds(warn=warn * GIB, floor=floor * GIB, kill=kill * GIB)
