# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copy cuts answers in the middle, from what nginx writes into its logs.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

nginx counts no failure once an answer has begun, and a copy that cuts its streams is idle soon: `least_conn` gives it more
than its share. The access log alone does not tell a copy that breaks off from a client that hangs up; the error log does.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

# What the copy did, before `, client: `: from there on a client's own words are in the line.
_CUT = re.compile(r"^\S+ \S+ \[error\] (?:(?!, client: ).)* while reading upstream, client: ")
_UPSTREAM = re.compile(r', upstream: "https?://([^/"]+)/[^"]*", host: "')


@dataclass(frozen=True)
class Rules:
    """`most`: so many cut answers within the window are too many (0: never), if they are `share` of the copy's answers too."""

    most: int = 3
    window_seconds: float = 60
    share: float = 0.2
    first_pause_seconds: float = 10
    longest_pause_seconds: float = 600
    # A copy that was well for so long begins with the first pause again.
    forget_seconds: float = 3600


def cut_by(line: str) -> str:
    """The server that broke off an answer, from a line of nginx's error log; empty for any other line."""
    if not _CUT.match(line):
        return ""
    # The last one: only the host and the referrer come after it, and a quote in those ends them.
    found = _UPSTREAM.findall(line)
    return str(found[-1]) if found else ""


def answered_by(line: str) -> str:
    """The name of the copy that began to answer a question, from a line of the access log; empty for any other line.

    Whoever only looks whether it is there (GET) says nothing about its answers.
    """
    try:
        entry = json.loads(line)
        counts = entry["method"] == "POST" and str(entry["upstream_status"]).endswith("200")
        return str(entry["copy"]) if counts else ""
    except (ValueError, TypeError, KeyError):
        return ""


class Cuts:
    """Cut and begun answers of each copy within the window, and how long a copy stays out. The time is always given."""

    def __init__(self, rules: Rules, names: Mapping[str, str]) -> None:
        """`names` of the copies by server."""
        self.rules, self.names = rules, names
        self._cut: dict[str, deque[float]] = {name: deque() for name in names.values()}
        self._answered: dict[str, deque[float]] = {name: deque() for name in names.values()}
        self._withdrawn: dict[str, list[float]] = {name: [] for name in names.values()}

    def error_line(self, line: str, now: float) -> None:
        name = self.names.get(cut_by(line))
        if name:
            self._cut[name].append(now)

    def access_line(self, line: str, now: float) -> None:
        name = answered_by(line)
        if name in self._answered:
            self._answered[name].append(now)

    def counts(self, name: str, now: float) -> tuple[int, int]:
        """Cut answers, and all that have ended, within the window."""
        for times in (self._cut[name], self._answered[name]):
            while times and times[0] <= now - self.rules.window_seconds:
                times.popleft()
        cut = len(self._cut[name])
        # The line of the access log may come a moment after that of the error log.
        return cut, max(cut, len(self._answered[name]))

    def forget(self, all_but: Collection[str]) -> None:
        """What those have cut who are not admitted does not count."""
        for name in self._cut.keys() - set(all_but):
            self._cut[name].clear()
            self._answered[name].clear()

    def suspects(self, admitted: Collection[str], now: float) -> list[str]:
        """Who cuts too much, the worst first. Only where another copy is known to do much better: else it is not the copy."""
        share = {}
        for name in sorted(set(admitted) & self._cut.keys()):
            cut, answered = self.counts(name, now)
            if answered:
                share[name] = cut / answered
        if not self.rules.most or len(share) < 2:
            return []
        best = min(share.values())
        bad = [name for name in share if self.counts(name, now)[0] >= self.rules.most]
        bad = [name for name in bad if share[name] >= max(self.rules.share, 2 * best)]
        return sorted(bad, key=lambda name: -share[name])

    def withdrawn(self, name: str, now: float) -> float:
        """It is taken out, or its gate failed again: until when it stays out. Each time within the hour doubles the pause."""
        times = [time for time in self._withdrawn[name] if time > now - self.rules.forget_seconds]
        self._withdrawn[name] = [*times, now][-64:]
        doubled = self.rules.first_pause_seconds * 2.0 ** len(times)
        return now + min(doubled, self.rules.longest_pause_seconds)
