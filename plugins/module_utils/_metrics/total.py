# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All copies of a site together. A missing copy is missing, and not 0; shares are never added.

Private to this collection: may change at any time. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .span import added, histograms_added
from .text import MetricsError

# A copy here: ``now``, its reading or None; ``span``, what it did, or None; ``reason``, why there is no reading.
Copies = Mapping[str, Mapping[str, Any]]


def total(copies: Copies) -> dict[str, Any]:
    """The sum over the copies that could be read, and which of them do not say what.

    Raises:
        MetricsError: two of them are the same process.
    """
    refuse_twins(copies)
    read = {name: copy["now"] for name, copy in copies.items() if copy.get("now")}
    spans = {name: copies[name]["span"] for name in read if copies[name].get("span")}
    kv_use = [share for reading in read.values() for share in reading["kv_use"] or ()]
    gauges = added(reading["gauges"] for reading in read.values())
    return {
        "copies": len(copies),
        "read": len(read),
        "missing": {name: copy.get("reason") or "not read" for name, copy in copies.items() if name not in read},
        "builds": sorted({reading["version"] for reading in read.values() if reading.get("version")}),
        "gauges": {key: gauges.get(key) for key in ("running", "waiting")},
        "kv_use": {"max": max(kv_use), "mean": sum(kv_use) / len(kv_use)} if kv_use else None,
        # Since the start of each copy; only good for shares and quantiles, a counter of two lives has no meaning of its own.
        "lives": {
            "counters": added(reading["counters"] for reading in read.values()),
            "histograms": histograms_added([reading["histograms"] for reading in read.values()]),
        },
        "span": {
            "of": sorted(spans),
            "counters": added(part["counters"] for part in spans.values()),
            "requests": added(part["requests"] for part in spans.values()) or None,
            "histograms": histograms_added([part["histograms"] for part in spans.values()]),
            "per_second": added(per_second(part) for part in spans.values()),
            "restarted": sorted(name for name, part in spans.items() if part["restarts"]),
        },
        "unknown": _unknown(read, spans),
    }


def per_second(span: Mapping[str, Any]) -> dict[str, float | None]:
    """Each counter's rate; the time of a copy is its own, two hosts are never read at the same moment."""
    return {key: None if value is None else value / span["seconds"] for key, value in span["counters"].items()}


def refuse_twins(copies: Copies) -> None:
    """Two names for one process would count everything twice.

    Raises:
        MetricsError: names the two, and how one knows.
    """
    seen: dict[tuple[str, Any], str] = {}
    for name, copy in copies.items():
        reading = copy.get("now") or {}
        for kind, what in (
            ("instance", "listens at the same place of the same machine"),
            ("born", "began in the same instant"),
        ):
            mark = reading.get(kind)
            other = seen.setdefault((kind, mark), name) if mark else name
            if other != name:
                raise MetricsError(
                    f"{other} and {name} are the same process (it {what}): look at their vllm_address, ansible_host and vllm_port"
                )


def _unknown(read: Mapping[str, Mapping[str, Any]], spans: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """For each figure that some copies have: those that do not have it, or not for the whole time."""
    lacking: dict[str, set[str]] = {}
    having: set[str] = set()

    def look(name: str, figures: Iterable[tuple[str, Any]], partial: Iterable[str] = ()) -> None:
        for key, value in figures:
            (lacking.setdefault(key, set()).add(name) if value is None else having.add(key))
        for key in partial:
            lacking.setdefault(key, set()).add(name)

    for name, reading in read.items():
        figures = {**reading["gauges"], **reading["counters"], **reading["histograms"]}
        look(name, [*figures.items(), ("kv_use", reading["kv_use"]), ("requests", reading["requests"])])
    for name, part in spans.items():
        look(name, [*part["counters"].items(), *part["histograms"].items()], part["partial"])
    return {key: sorted(names) for key, names in sorted(lacking.items()) if key in having}
