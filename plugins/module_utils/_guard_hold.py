# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of an engine that was stopped because the memory ran out.

Private to this collection: may change at any time. Pure: everything that is seen and the clock are handed in.

It stays down until there is as much memory as it needs for a while, and is then started again, but only so often in a window:
a box that runs out of memory at each start is not helped by another one, and each start leaves less than the one before. Who
starts it by hand meanwhile, or disables it, has decided: then nothing is held any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

# The order to stop may get lost on a box that has no memory to carry it out.
STOP_AGAIN_SECONDS = 5.0


class Next(Enum):
    """What to do with the engine that is held."""

    WAIT = "wait"
    STOP = "stop the engine again"
    START = "start the engine"
    RELEASED = "hold the engine no longer"
    GIVE_UP = "GIVE UP"


@dataclass(frozen=True)
class Rules:
    """When it may come back.

    Attributes:
        seconds: for how long there must be enough memory without a break.
        starts: how often it is started in a window at most.
        window: seconds after which a start no longer counts.
    """

    seconds: float
    starts: int
    window: float


@dataclass
class Hold:
    """One host's engine. `since` is None while nothing is held. Times are seconds since the epoch: they outlive this process."""

    rules: Rules
    since: float | None = None
    why: str = ""
    down: bool = False
    gave_up: bool = False
    starts: list[float] = field(default_factory=list)
    words: str = ""
    _enough_since: float | None = None
    _stopped: float = 0.0

    def begin(self, now: float, why: str) -> None:
        """The engine was told to stop, or was killed."""
        if self.since is None:
            self.since, self.down, self.gave_up = now, False, False
        self.why, self._enough_since, self._stopped = why, None, now

    def look(self, now: float, available: int, resume: int, unit: str, enabled: bool, paused: str) -> Next:
        """What to do now.

        Args:
            now: seconds since the epoch.
            available: bytes of MemAvailable.
            resume: bytes that must be available for a start.
            unit: ActiveState of the engine's unit.
            enabled: whether the unit is enabled.
            paused: why nothing may act, empty when it may. Protecting the host never waits for that, a start does.
        """
        if self.since is None:
            return Next.WAIT
        stopped = unit in ("inactive", "failed")
        if not stopped and not self.down:
            if now - self._stopped < STOP_AGAIN_SECONDS:
                return self._wait("it is being stopped")
            self._stopped = now
            return Next.STOP
        self.down = True
        if not stopped:
            return self._release("somebody started it")
        if not enabled:
            return self._release("somebody disabled it")
        if self.gave_up:
            return self._wait(self.words)
        if available < resume:
            self._enough_since = None
            return self._wait(f"{available / 2**30:.1f} GiB are available, a start needs {resume / 2**30:.1f} GiB")
        self._enough_since = min(self._enough_since or now, now)
        if now - self._enough_since < self.rules.seconds:
            return self._wait(
                f"there is enough memory for {now - self._enough_since:.0f} s of {self.rules.seconds:g} s"
            )
        if paused:
            return self._wait(f"paused by {paused}")
        self.starts = [start for start in self.starts if now - start < self.rules.window]
        if len(self.starts) >= self.rules.starts:
            self.gave_up = True
            self._wait(
                f"it was started {len(self.starts)} times within {self.rules.window:g} s and ran out of memory each time"
            )
            return Next.GIVE_UP
        self.starts.append(now)
        self.since = None
        return Next.START

    def _wait(self, words: str) -> Next:
        self.words = words
        return Next.WAIT

    def _release(self, words: str) -> Next:
        self.since, self.words, self.gave_up = None, words, False
        return Next.RELEASED

    def as_dict(self) -> dict[str, Any]:
        """What must outlive this process."""
        return {
            "since": self.since,
            "why": self.why,
            "words": self.words,
            "down": self.down,
            "gave_up": self.gave_up,
            "starts": self.starts,
        }

    @classmethod
    def restored(cls, rules: Rules, kept: dict[str, Any]) -> Hold:
        """From what an earlier process kept; anything that it does not say is as at the beginning."""
        since = kept.get("since")
        starts = kept.get("starts")
        return cls(
            rules,
            since=float(since) if isinstance(since, (int, float)) else None,
            why=str(kept.get("why", "")),
            words=str(kept.get("words", "")),
            down=bool(kept.get("down")),
            gave_up=bool(kept.get("gave_up")),
            starts=[float(start) for start in starts] if isinstance(starts, list) else [],
        )
