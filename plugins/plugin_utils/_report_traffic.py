# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxies' counts of a rollout, added up and turned into figures.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _access_log

NAMES = ("before", "during", "window", "after")


def added(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in counts:
        for key, value in (part or {}).items():
            found[key] = found.get(key, 0) + int(value)
    return dict(sorted(found.items()))


def quantile(classes: Mapping[str, int], share: float) -> float | None:
    """The duration that so large a share of the requests did not exceed, within 5 percent; None without requests."""
    left = share * sum(classes.values())
    for number in sorted(int(key) for key in classes):
        left -= classes[str(number)]
        if left <= 0:
            return round(_access_log.duration(number), 4)
    return None


def figures(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One span over all proxies."""
    begin, end = min(part["from"] for part in parts), max(part["to"] for part in parts)
    statuses = added([part["statuses"] for part in parts])
    durations = added([part["seconds_classes"] for part in parts])
    first_byte = added([part["first_byte_classes"] for part in parts])
    seconds, answered = end - begin, statuses.get("200", 0)
    return {
        "from": round(begin, 3),
        "to": round(end, 3),
        "seconds": round(seconds, 3),
        "requests": sum(int(part["requests"]) for part in parts),
        "answered": answered,
        "statuses": statuses,
        "copies": added([part["copies"] for part in parts]),
        # Of less than a few seconds there is no honest rate: the log's times are whole seconds.
        "answered_per_second": round(answered / seconds, 3) if seconds >= 5 else None,
        "seconds_median": quantile(durations, 0.5),
        "seconds_p95": quantile(durations, 0.95),
        "first_byte_median": quantile(first_byte, 0.5),
        "first_byte_p95": quantile(first_byte, 0.95),
    }


def summed(proxies: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """All proxies that have a log; None when none has counted anything."""
    read = {name: found for name, found in proxies.items() if (found or {}).get("found") and found.get("spans")}
    silent = [name for name in proxies if name not in read]
    if not read:
        return None
    spans = {
        name: figures([found["spans"][name] for found in read.values() if name in found["spans"]])
        for name in NAMES
        if any(name in found["spans"] for found in read.values())
    }
    if not any(span["requests"] for span in spans.values()):
        return None
    series = [found["series"] for found in read.values()]
    notes = [f"{name}: its access log could not be read, so its requests are missing" for name in silent]
    notes += [
        f"{name}: the access log was too long to be counted to its end"
        for name, found in read.items()
        if found.get("cut")
    ]
    return {
        "spans": spans,
        "series": {
            "from": series[0]["from"],
            "step_seconds": series[0]["step_seconds"],
            "answered": [sum(values) for values in zip(*(part["answered"] for part in series), strict=False)],
            "failed": [sum(values) for values in zip(*(part["failed"] for part in series), strict=False)],
        },
        "notes": notes,
    }
