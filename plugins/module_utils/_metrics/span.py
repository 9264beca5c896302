# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one copy did between two readings, and its state over many: differences first, sums later.

Private to this collection: may change at any time. Pure.

A span is plain data: ``seconds``, ``counters``, ``requests``, ``histograms``, ``restarts`` and ``partial``, the figures that do not
cover all of it. A restart belongs to one copy: what its new process counted is added; what the old one did after its last
reading nobody knows, so with a restart every figure is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import histogram
from .text import MetricsError

Reading = Mapping[str, Any]
Span = dict[str, Any]
MORE_THAN_ONE = "more than one process answers under this address (a proxy?)"
_MOST_ENDED = 32


def restarted(before: Reading, after: Reading) -> bool:
    """Whether another process answers now.

    Raises:
        MetricsError: the same process counts less than before, so the two readings are not of one.
    """
    names = _known(before, after, ("started", "born")) or _known(before, after, ("listener",))
    if any(then != now for then, now in names):
        return True
    fell = _fell(before, after)
    if fell and names:
        raise MetricsError(f"counters went back although the process did not end: {MORE_THAN_ONE}")
    return fell


def span(before: Reading, after: Reading) -> Span:
    """What the copy did from one reading to the next.

    Raises:
        MetricsError: the readings are not of one copy, or not in this order.
    """
    seconds = after["at"] - before["at"]
    if seconds <= 0:
        raise MetricsError("the later reading is not later: the clock was set back")
    again = restarted(before, after)
    partial: list[str] = []

    def difference(key: str, then: Any, now: Any) -> Any:
        if then is None and now is not None:
            partial.append(key)
        if now is None or (then is None and not again):
            return None
        if again:
            return now
        if not isinstance(now, Mapping):
            return now - then
        made = histogram.minus(dict(now), dict(then))
        if made is None:
            partial.append(key)
        return made

    def differences(kind: str) -> dict[str, Any]:
        return {key: difference(key, before[kind].get(key), now) for key, now in after[kind].items()}

    counters, histograms = differences("counters"), differences("histograms")
    then, now, requests = before["requests"], after["requests"], None
    if then is None and now is not None:
        partial.append("requests")
    if now is not None and (again or then is not None):
        # Only the reasons that occurred are there: one that is new was at 0.
        requests = {reason: count - (0 if again else then.get(reason, 0)) for reason, count in now.items()}
    return {
        "seconds": seconds,
        "counters": counters,
        "requests": requests,
        "histograms": histograms,
        "restarts": int(again),
        "partial": sorted(partial),
    }


def joined(first: Span, second: Span) -> Span:
    """Two spans of one copy, one after the other."""
    return {
        "seconds": first["seconds"] + second["seconds"],
        "counters": added([first["counters"], second["counters"]]),
        "requests": added([first["requests"], second["requests"]]) or None,
        "histograms": histograms_added([first["histograms"], second["histograms"]]),
        "restarts": first["restarts"] + second["restarts"],
        "partial": sorted({*first["partial"], *second["partial"]}),
    }


def advance(state: Mapping[str, Any] | None, reading: Reading | None) -> dict[str, Any]:
    """A copy's state with one more look at it, which found a reading or nothing.

    The state is plain data: ``now`` is the reading of this look, None for a copy that is missing; ``base`` is the newest reading,
    from which the next difference is taken; ``span`` is all that is known since the first one.

    Raises:
        MetricsError: another process than the one that was replaced answers, or the readings contradict each other.
    """
    if state is None:
        state = {"now": None, "base": None, "before": None, "span": None, "missed": 0, "ended": []}
    if reading is None:
        return {**state, "now": None, "missed": state["missed"] + 1}
    base = state["base"]
    if base is None:
        return {**state, "now": reading, "base": reading}
    if _name(reading) and _name(reading) in state["ended"]:
        raise MetricsError(f"a process that had been replaced answers again: {MORE_THAN_ONE}")
    step = span(base, reading)
    ended = state["ended"]
    if step["restarts"]:
        if not _name(reading) and state["before"] and _comes_back(state["before"], reading):
            raise MetricsError(f"counters go up and down by turns: {MORE_THAN_ONE}")
        ended = [*ended, *([_name(base)] if _name(base) else [])][-_MOST_ENDED:]
    return {
        **state,
        "now": reading,
        "base": reading if step["restarts"] else _carried(base, reading),
        "before": base,
        "span": joined(state["span"], step) if state["span"] else step,
        "ended": ended,
    }


def added(parts: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Numbers by their keys; None where nobody has one."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in (part or {}).items():
            result[key] = result.get(key) if value is None else (result.get(key) or 0) + value
    return result


def histograms_added(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Histograms by their keys; None where nobody has one."""
    keys = {key: [part[key] for part in parts if part.get(key)] for whole in parts for key in whole}
    return {key: histogram.merged(found) if found else None for key, found in keys.items()}


def _known(before: Reading, after: Reading, keys: Sequence[str]) -> list[tuple[Any, Any]]:
    return [(before[key], after[key]) for key in keys if before.get(key) and after.get(key)]


def _name(reading: Reading) -> list[Any]:
    """What tells this process from all others; empty when nothing does."""
    names = [reading.get("started"), reading.get("born")]
    return names if any(names) else [reading["listener"]] if reading.get("listener") else []


def _fell(before: Reading, after: Reading) -> bool:
    for kind in ("counters", "requests"):
        then, now = before[kind] or {}, after[kind] or {}
        if any(then.get(key) is not None and value is not None and value < then[key] for key, value in now.items()):
            return True
    then, now = before["histograms"], after["histograms"]
    return any(then.get(key) and value and value["count"] < then[key]["count"] for key, value in now.items())


def _comes_back(earlier: Reading, reading: Reading) -> bool:
    """A, B, A: a new process begins near 0, not where the one before the last had been, in everything that moves."""
    then, now = earlier["counters"], reading["counters"]
    moving = [(then[key], value) for key, value in now.items() if value and then.get(key)]
    return bool(moving) and all(value >= earlier_value for earlier_value, value in moving)


def _carried(base: Reading, reading: Reading) -> Reading:
    """The reading, with the older figure where it has none: what cannot be read once is whole again the next time."""
    kept = {
        kind: {key: base[kind].get(key) if value is None else value for key, value in reading[kind].items()}
        for kind in ("counters", "histograms")
    }
    return {**reading, **kept, "requests": reading["requests"] or base["requests"]}
