# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records of client.py say about a change of the service. Pure: records and moments in, figures out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
PHASES = ("before", "during", "after")


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """Records from the lines of a file; the last line may be half written while the client runs."""
    records = []
    for line in lines:
        if line.endswith("\n"):
            records.append(json.loads(line))
    return records


def phase(moment: float, marks: Mapping[str, float]) -> str:
    if moment < marks["start"]:
        return "before"
    return "during" if moment < marks["end"] else "after"


def first_success_after(records: Iterable[Record], moment: float, copy: str | None = None) -> float | None:
    """Seconds from the moment to the first answer (its headers) that became a complete one; of one copy if named."""
    times = [r["answered"] for r in records if r["complete"] and copy in (None, r["copy"]) and r["answered"] >= moment]
    return min(times) - moment if times else None


def longest_gap(records: Iterable[Record]) -> float | None:
    """The longest time without a complete answer, the time up to the first and from the last one included."""
    records = list(records)
    if not records:
        return None
    times = [min(r["start"] for r in records), max(r["end"] for r in records)]
    times = sorted(times + [r["end"] for r in records if r["complete"]])
    return max(later - earlier for earlier, later in zip(times, times[1:], strict=False))


def count(pairs: Iterable[tuple[str, Any]]) -> dict[str, dict[str, int]]:
    """Per phase, how often each value came."""
    found = Counter(pairs)
    return {
        phase: {str(value): n for (where, value), n in sorted(found.items(), key=str) if where == phase}
        for phase in PHASES
    }


def summarise(records: Iterable[Record], marks: Mapping[str, float]) -> dict[str, Any]:
    """Figures around the window from marks["start"] to marks["end"]; any further mark is a moment to look on from.

    A request belongs to the phase in which it was over, an HTTP attempt to the phase in which it was sent. A request
    with status 200 whose answer is not usable counts as "incomplete", not as 200.
    """
    records = list(records)
    return {
        "requests": count(
            (phase(r["end"], marks), "incomplete" if r["status"] == 200 and not r["complete"] else r["status"])
            for r in records
        ),
        "attempts": count((phase(at, marks), status or "no answer") for r in records for at, status in r["attempts"]),
        "copies": count((phase(r["end"], marks), r["copy"]) for r in records if r["complete"]),
        "retries": sum(r["retries"] for r in records),
        "first_success": {name: first_success_after(records, moment) for name, moment in marks.items()},
        "longest_gap": longest_gap(records),
    }
