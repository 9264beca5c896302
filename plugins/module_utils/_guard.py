# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When memory runs out on a host: what is done, and in which order.

Private to this collection: may change at any time. Pure: samples and the clock are handed in.

On a GB10 an over-committed box does not kill a process, it freezes. It takes a few seconds from "enough" to "nothing", so the
order is kept as long as there is time for it, and skipped when the measured fall says that there is none:

* below `warn`: say who holds the most;
* at `floor`, in this order and each only if the one before did not help: drop the page cache, refuse new builds, stop the
  engine cleanly, kill it;
* at `kill`, or when the fall would reach it before the next step can work: kill the engine at once.

Little MemFree alone is normal, above all while weights load. Together with little MemAvailable for a while it makes the driver
refuse allocations although the page cache could be given back, so then the page cache is dropped, and nothing else is done.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

GIB = 1 << 30
NEVER = float("inf")


class Act(Enum):
    """What is to be done now. The first four are the order at the floor."""

    DROP = "drop the page cache"
    REFUSE = "refuse new builds"
    STOP = "stop the engine"
    KILL = "kill the engine"
    ALLOW = "allow builds again"
    WARN = "warn"
    EASED = "say that there is enough again"


ORDER = (Act.DROP, Act.REFUSE, Act.STOP, Act.KILL)


@dataclass(frozen=True)
class Bounds:
    """Sizes are bytes, times are seconds.

    Attributes:
        warn: MemAvailable at and below which it warns.
        floor: MemAvailable at and below which it acts.
        kill: MemAvailable at and below which nothing but a kill is left.
        free: MemFree that is little.
        free_seconds: for how long MemFree and MemAvailable must both be little before the page cache is dropped for it.
        step_seconds: how long a step other than the clean stop has to help.
        stop_seconds: how long the clean stop has.
    """

    warn: int
    floor: int
    kill: int
    free: int = 2 * GIB
    free_seconds: float = 5
    step_seconds: float = 3
    stop_seconds: float = 30

    def __post_init__(self) -> None:
        if not 0 < self.kill < self.floor <= self.warn:
            raise ValueError(
                f"the bounds must be 0 < kill < floor <= warn, but kill is {self.kill / GIB:g} GiB, floor {self.floor / GIB:g} GiB "
                f"and warn {self.warn / GIB:g} GiB"
            )


# A value that one sample shows is noise; so many in a row are not, and neither is a steady fall.
CONFIRM = 3
FALL_STEP = GIB // 8
# The slope is that of this time: long enough for two samples at the slowest pace.
SLOPE_SECONDS = 1.5
# Memory that was seen to vanish at 2.5 GiB/s is looked at often enough for three times that.
FASTEST_FALL = 8 * GIB
SLOWEST_PACE, FASTEST_PACE = 1.0, 0.1
# A step that had to be taken again so soon did not help.
REPEAT_SECONDS = 60.0
REMIND_SECONDS = 60.0
EASED_SECONDS = 10.0
RELIEF_SECONDS = 2.0
KILL_AGAIN_SECONDS = 1.0


class Guard:
    """Samples in, acts out. `running` says whether there is an engine that could be stopped."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.stage: Act | None = None
        self.warned = False
        self.refused = False
        self.crossed: float | None = None
        self._samples: deque[tuple[float, int]] = deque(maxlen=3 * round(SLOPE_SECONDS / FASTEST_PACE))
        self._below = self._deep = self._low = 0
        self._stage_since = self._last_below = self._last_warning = self._above_since = -NEVER
        self._little_since = NEVER
        self._last_step: Act | None = None
        self._last_drop = -NEVER

    def pace(self) -> float:
        """Seconds until the next look: the nearer the floor, the sooner."""
        if self.stage is not None or not self._samples:
            return FASTEST_PACE
        room = (self._samples[-1][1] - self.bounds.floor) / FASTEST_FALL
        return min(SLOWEST_PACE, max(FASTEST_PACE, room))

    def sample(self, now: float, available: int, free: int, running: bool) -> tuple[Act, ...]:
        """What to do at `now` (any clock that only goes forward), with so many bytes available and free."""
        self._samples.append((now, available))
        fires = self._count(now, available)
        acts = self._at_the_floor(now, available, fires, running)
        if not acts and self.stage is None and self._starved(now, available, free):
            acts = (self._take(Act.DROP, now, stage=False),)
        if self.refused and available > self.bounds.warn and now - self._above_since >= EASED_SECONDS:
            self.refused = False
            acts += (Act.ALLOW,)
        return acts + self._warning(now, available)

    def fall(self) -> float:
        """Bytes per second by which the available memory falls, 0 when it does not.

        One large allocation is no fall: it must also show between the last samples, and these may be too near each other alone.
        """
        now = self._samples[-1][0]
        first = next((then for then in self._samples if now - then[0] <= SLOPE_SECONDS), self._samples[-1])
        return max(0.0, min(self._slope(first), self._slope(self._samples[-min(CONFIRM, len(self._samples))])))

    def _slope(self, before: tuple[float, int]) -> float:
        now, available = self._samples[-1]
        return (before[1] - available) / (now - before[0]) if now > before[0] else 0.0

    def seconds_left(self) -> float:
        """Until `kill` is reached, if it goes on like this."""
        fall = self.fall()
        return (self._samples[-1][1] - self.bounds.kill) / fall if fall else NEVER

    def _count(self, now: float, available: int) -> bool:
        """Whether the floor is crossed, and not only for one sample."""
        bounds = self.bounds
        self._low = self._low + 1 if available <= bounds.warn else 0
        self._deep = self._deep + 1 if available <= bounds.kill else 0
        if available > bounds.warn:
            if self._above_since == -NEVER:
                self._above_since = now
        else:
            self._above_since = -NEVER
        if available > bounds.floor:
            self._below, self.crossed = 0, None if self.stage is None else self.crossed
            return False
        self._below += 1
        self._last_below = now
        if self.crossed is None:
            self.crossed = now
        return self._below >= CONFIRM or self._deep >= 2 or self._falls()

    def _falls(self) -> bool:
        if len(self._samples) < 3:
            return False
        first, second, third = (self._samples[index][1] for index in (-3, -2, -1))
        return first - second >= FALL_STEP and second - third >= FALL_STEP

    def _urgent(self, patience: float) -> bool:
        return self._deep >= 2 or self.seconds_left() < patience

    def _patience(self, act: Act) -> float:
        return self.bounds.stop_seconds if act is Act.STOP else self.bounds.step_seconds

    def _at_the_floor(self, now: float, available: int, fires: bool, running: bool) -> tuple[Act, ...]:
        stage = self.stage
        if stage in (Act.STOP, Act.KILL):
            return self._ending(now, available, running)
        if stage is None:
            if not fires:
                return ()
            wanted = self._first(now)
        elif available > self.bounds.floor:
            if now - self._last_below >= RELIEF_SECONDS:
                self.stage = None
            return ()
        elif now - self._stage_since < self.bounds.step_seconds and not (
            running and self._urgent(self._patience(stage))
        ):
            return ()
        else:
            wanted = ORDER[ORDER.index(stage) + 1]
        if running and self._urgent(self._patience(wanted)):
            wanted = Act.KILL
        if wanted in (Act.STOP, Act.KILL):
            if not running:
                # Everything that can be done is done: what is left is to say who holds the memory.
                self.stage, self._stage_since = Act.REFUSE, now
                return self._refuse()
            return self._take(wanted, now), *self._refuse()
        self._take(wanted, now)
        return self._refuse() if wanted is Act.REFUSE else (wanted,)

    def _ending(self, now: float, available: int, running: bool) -> tuple[Act, ...]:
        """A stop is under way: it has its time, unless the memory has not; a kill is repeated until nothing is left."""
        if not running:
            self.stage = None
            return ()
        waited = now - self._stage_since
        if self.stage is Act.KILL:
            return (self._take(Act.KILL, now),) if waited >= KILL_AGAIN_SECONDS else ()
        short = available <= self.bounds.floor and self._urgent(KILL_AGAIN_SECONDS)
        return (self._take(Act.KILL, now),) if short or waited >= self.bounds.stop_seconds else ()

    def _first(self, now: float) -> Act:
        """Where to begin: after what was done only just now and has not helped for long."""
        if now - self._stage_since <= REPEAT_SECONDS and self._last_step in (Act.DROP, Act.REFUSE):
            return ORDER[ORDER.index(self._last_step) + 1]
        return Act.REFUSE if now - self._last_drop <= REPEAT_SECONDS else Act.DROP

    def _take(self, act: Act, now: float, stage: bool = True) -> Act:
        if act is Act.DROP:
            self._last_drop = now
        if stage:
            self.stage = self._last_step = act
            self._stage_since = now
        return act

    def _refuse(self) -> tuple[Act, ...]:
        if self.refused:
            return ()
        self.refused = True
        return (Act.REFUSE,)

    def _starved(self, now: float, available: int, free: int) -> bool:
        if free > self.bounds.free or available > self.bounds.warn:
            self._little_since = NEVER
            return False
        self._little_since = min(self._little_since, now)
        return now - self._little_since >= self.bounds.free_seconds and now - self._last_drop > REPEAT_SECONDS

    def _warning(self, now: float, available: int) -> tuple[Act, ...]:
        if (
            self._low
            and (self._low >= CONFIRM or self.stage is not None)
            and now - self._last_warning >= REMIND_SECONDS
        ):
            self.warned, self._last_warning = True, now
            return (Act.WARN,)
        if self.warned and self._above_since != -NEVER and now - self._above_since >= EASED_SECONDS:
            self.warned, self._last_warning = False, -NEVER
            return (Act.EASED,)
        return ()
