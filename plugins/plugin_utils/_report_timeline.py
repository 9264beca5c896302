# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeline of a rollout, from the events of its journal: spans per host, and the windows in which no copy was admitted.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

Events are taken in the order in which they were written; their times come from several clocks and may jump. A time that runs
backwards makes a span without length and a note, never a negative figure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

# In the order in which a host goes through them.
STEPS = ("drain", "stop", "memory", "load", "test", "gate", "admit", "soak", "failed")
# A clock that is off by less is as good as right.
TOLERATED_SECONDS = 1.0


@dataclass(frozen=True)
class Span:
    """What one host did from one moment to another. `open`: the journal ends before it did."""

    step: str
    start: float
    end: float
    result: str = "ok"
    open: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "from": round(self.start, 3),
            "to": round(self.end, 3),
            "seconds": round(self.end - self.start, 3),
            "result": self.result,
            "open": self.open,
        }


@dataclass
class Host:
    """What the journal says of one host."""

    name: str
    spans: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    reason: str = ""
    admitted: bool = False


def usable(events: Iterable[Any]) -> list[dict[str, Any]]:
    """The events that say what happened; one without a time gets that of the event before it."""
    found: list[dict[str, Any]] = []
    last = 0.0
    for event in events:
        if not isinstance(event, Mapping) or not event.get("step"):
            continue
        last = number(event.get("time")) or last
        found.append({**event, "time": last})
    return found


def number(value: Any) -> float:
    """A figure of the journal, 0 where there is none."""
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        return 0.0


def first(events: Sequence[Event], step: str) -> Event:
    return next((event for event in events if event["step"] == step), {})


def last(events: Sequence[Event], step: str) -> Event:
    return first(list(reversed(events)), step)


def names(event: Event) -> list[str]:
    """The hosts of an event; a withdrawal in one reload names several."""
    return [name for name in str(event.get("host") or "").split(",") if name]


def hosts(events: Sequence[Event]) -> list[str]:
    """The engine hosts of a rollout, as its plan has them, and then those that only an event names."""
    keepers = {name for event in events if event["step"] in ("begin", "settled", "end") for name in names(event)}
    planned = list((first(events, "begin").get("hosts") or {}).keys())
    steps = (
        "withdrawn",
        "drained",
        "stopped",
        "started",
        "evaluated",
        "loaded",
        "passed",
        "admitted",
        "soaked",
        "failed",
    )
    named = [name for event in events if event["step"] in steps for name in names(event)]
    return planned + [name for name in dict.fromkeys(named) if name not in planned and name not in keepers]


def follow(events: Sequence[Event], name: str) -> Host:
    """Everything that happened on one host."""
    host = Host(name)
    leaving: float | None = None
    loading: float | None = None
    done: float | None = None  # the end of the newest thing that is known to have ended
    passed: float | None = None
    tested: tuple[float, float, str] | None = (
        None  # a test of tool calls, which is written down before the load that it followed
    )

    def add(step: str, start: float | None, end: float, result: str = "ok", is_open: bool = False) -> None:
        nonlocal done
        if start is None:
            start = end
        if start - end > TOLERATED_SECONDS:
            host.notes.append(
                f"{name}: the step {step} ends {start - end:.1f} s before it begins: the clocks of the hosts differ, or one jumped"
            )
        host.spans.append(Span(step, min(start, end), end, result, is_open))
        done = end

    for event in events:
        if name not in names(event):
            continue
        step, time, seconds = event["step"], event["time"], number(event.get("seconds"))
        result = str(event.get("result") or "ok")
        if step == "withdrawn":
            leaving, done, host.admitted = time, time, False
        elif step == "drained":
            add("drain", leaving if leaving is not None else time - seconds, time, result)
            leaving = None
        elif step == "stopped":
            add("stop", time - seconds if seconds else done, time, result)
        elif step == "started":
            loading, passed, host.admitted = time, None, False
            host.starts.append(time)
        elif step == "evaluated":
            tested = (time - seconds, time, result) if seconds else None
        elif step == "loaded":
            # One that ran already was only looked at; when its wait began is not written down.
            done = None
            if loading is not None:
                add("load", loading, loading + seconds)
            if tested:
                add("test", *tested)
            loading = tested = None
        elif step == "passed":
            add("gate", done, time)
            passed = time
        elif step == "admitted":
            add("admit", passed, time)
            host.admitted = True
        elif step == "soaked":
            add("soak", time - seconds, time)
        elif step == "failed":
            if tested:
                add("load", loading, tested[0])
                add("test", *tested)
                loading = tested = None
            begun = loading if loading is not None else done
            add("failed", begun, time, "failed")
            loading, host.admitted = None, False
        if result == "failed" and event.get("reason"):
            host.reason = str(event["reason"])
    if loading is not None and events:
        add("load", loading, max(loading, events[-1]["time"]), "unknown", is_open=not first(events, "end"))
    return host


@dataclass(frozen=True)
class Window:
    """A time without an admitted copy. `open`: it was not over. `at_least`: it began before, or ended without a trace."""

    start: float
    end: float
    open: bool = False
    at_least: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {
            "from": round(self.start, 3),
            "to": round(self.end, 3),
            "seconds": round(max(0.0, self.end - self.start), 3),
            "open": self.open,
            "at_least": self.at_least,
        }


def windows(events: Sequence[Event]) -> list[Window]:
    """All times without an admitted copy, in the events of one rollout or of several that followed each other."""
    return walk(events)[0]


def walk(events: Sequence[Event]) -> tuple[list[Window], list[str]]:
    """All times without an admitted copy, and who is in front of clients when the events end."""
    found: list[Window] = []
    serving: set[str] = set()
    since: float | None = None
    before = vague = False

    def look(time: float, by_chance: bool = False) -> None:
        nonlocal since, vague
        if not serving and since is None and before:
            since, vague = time, by_chance
        elif serving and since is not None:
            found.append(Window(since, max(since, time), at_least=vague or by_chance))
            since = None

    for event in events:
        step, time, named = event["step"], event["time"], set(names(event))
        if step == "begin":
            plans = event.get("hosts") or {}
            serving = {name for name, plan in plans.items() if (plan or {}).get("serving")}
            # On a site where nothing ever ran, clients do not miss anything.
            before = before or bool(serving) or bool(event.get("before"))
            look(time, by_chance=True)
            continue
        if step in ("withdrawn", "stopped"):
            serving -= named
        elif step == "drained" and event.get("result") not in ("ok", "stop", None):
            # They outlasted the drain, so they were admitted again and nothing was stopped.
            serving |= named
        elif step == "admitted":
            serving |= named
            before = True
        elif step == "failed":
            serving -= named
        look(time)
    if since is not None and events:
        found.append(Window(since, max(since, events[-1]["time"]), open=True, at_least=vague))
    return found, sorted(serving)


def change(events: Sequence[Event]) -> tuple[float, float] | None:
    """From the first act that clients could feel to the last one; None when there was none."""
    steps = ("withdrawn", "stopped", "started", "admitted", "failed")
    times = [event["time"] for event in events if event["step"] in steps]
    return (min(times), max(times)) if times else None
