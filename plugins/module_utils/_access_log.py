# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts from the proxy's access log: requests by status and by copy, and how long they took, in named spans of time.

Private to this collection: may change at any time. Host-side, standard library only.

A request belongs to the second in which it ended, the only time that the log has. Durations are counted in classes that are
10 percent wide, so that those of several proxies can be added.
"""

from __future__ import annotations

import bisect
import datetime
import gzip
import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

CLASSES_PER_E = 1 / math.log(1.1)
MOST_STEPS = 120
# Who asks for health is no client of the model.
NOT_COUNTED = ("/health", "/metrics")


def moment(text: str) -> float:
    """Seconds since the epoch of nginx's time_iso8601."""
    return datetime.datetime.fromisoformat(text).timestamp()


def duration_class(seconds: float) -> int:
    return round(math.log(max(seconds, 0.001)) * CLASSES_PER_E)


def duration(number: int) -> float:
    """The middle of a class, in seconds."""
    return math.exp(number / CLASSES_PER_E)


def seconds_of(value: Any) -> float | None:
    """A duration as nginx writes it; of several attempts, "a, b : c", the last that has one; None without any."""
    for part in reversed(str(value).replace(":", ",").split(",")):
        try:
            return float(part)
        except ValueError:
            continue
    return None


class Tally:
    """What is counted of one span."""

    def __init__(self, begin: float, end: float) -> None:
        self.begin = begin
        self.end = end
        self.requests = 0
        self.statuses: dict[str, int] = {}
        self.copies: dict[str, int] = {}
        self.seconds: dict[str, int] = {}
        self.first_byte: dict[str, int] = {}

    def add(self, entry: Mapping[str, Any]) -> None:
        self.requests += 1
        _more(self.statuses, str(entry.get("status")))
        if entry.get("status") != 200:
            return
        _more(self.copies, str(entry.get("copy") or "?"))
        for counts, key in ((self.seconds, "seconds"), (self.first_byte, "first_byte_seconds")):
            seconds = seconds_of(entry.get(key))
            if seconds is not None:
                _more(counts, str(duration_class(seconds)))

    def as_dict(self) -> dict[str, Any]:
        return {
            "from": self.begin,
            "to": self.end,
            "requests": self.requests,
            "statuses": self.statuses,
            "copies": self.copies,
            "seconds_classes": self.seconds,
            "first_byte_classes": self.first_byte,
        }


def _more(counts: dict[str, int], key: str) -> None:
    counts[key] = counts.get(key, 0) + 1


def tally(lines: Iterable[bytes], spans: Sequence[tuple[str, float, float]], budget: float) -> dict[str, Any]:
    """Count the lines of an access log in the spans, and the answered and failed requests over the whole time in even steps.

    `budget` is the longest time to count, in seconds; `cut` says that it ended the count.
    """
    first, last = min(span[1] for span in spans), max(span[2] for span in spans)
    step = max(1, math.ceil((last - first) / MOST_STEPS))
    edges = [first + number * step for number in range(max(1, math.ceil((last - first) / step)))]
    good, bad = [0] * len(edges), [0] * len(edges)
    counts = [(name, Tally(begin, end)) for name, begin, end in spans]
    unreadable, cut, deadline = 0, False, time.monotonic() + budget
    for number, line in enumerate(lines):
        if number % 1000 == 999 and time.monotonic() > deadline:
            cut = True
            break
        try:
            entry = json.loads(line)
            at = moment(entry["time"])
        except (ValueError, KeyError, TypeError):
            unreadable += 1
            continue
        if not first <= at <= last or str(entry.get("path")) in NOT_COUNTED:
            continue
        (good if entry.get("status") == 200 else bad)[bisect.bisect_right(edges, at) - 1] += 1
        for _name, count in counts:
            if count.begin <= at <= count.end:
                count.add(entry)
    return {
        "spans": {name: count.as_dict() for name, count in counts},
        "series": {"from": first, "step_seconds": step, "answered": good, "failed": bad},
        "unreadable": unreadable,
        "cut": cut,
    }


def seek(stream: BinaryIO, wanted: float) -> None:
    """Go to a line that is not later than the moment, by halving; a log is in the order of time."""
    low, high = 0, stream.seek(0, os.SEEK_END)
    while high - low > 65536:
        middle = (low + high) // 2
        stream.seek(middle)
        stream.readline()
        try:
            at = moment(json.loads(stream.readline())["time"])
        except (ValueError, KeyError, TypeError):
            break
        if at < wanted:
            low = middle
        else:
            high = middle
    stream.seek(low)
    if low:
        stream.readline()


class Log:
    """The log's lines from a moment on: of the two files that were rotated away since then, oldest first, and of the log itself."""

    def __init__(self, path: str, wanted: float, most_bytes: int) -> None:
        self.path = path
        self.wanted = wanted
        self.left = most_bytes

    @property
    def cut(self) -> bool:
        """Whether there was more than may be read."""
        return self.left < 0

    def __iter__(self) -> Iterator[bytes]:
        for name in (f"{self.path}.2.gz", f"{self.path}.1.gz", f"{self.path}.1", self.path):
            try:
                if os.stat(name).st_mtime >= self.wanted:
                    yield from self._lines(name)
            except FileNotFoundError:
                continue

    def _lines(self, name: str) -> Iterator[bytes]:
        if name.endswith(".gz"):
            with gzip.open(name, "rb") as packed:
                yield from self._bounded(packed)
        else:
            with open(name, "rb") as stream:
                seek(stream, self.wanted)
                yield from self._bounded(stream)

    def _bounded(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        for line in stream:
            self.left -= len(line)
            if self.cut:
                return
            yield line
