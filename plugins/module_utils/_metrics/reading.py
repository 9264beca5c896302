# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of one copy as one reading, in the same words for every version.

Private to this collection: may change at any time. Pure.

A reading is plain data: ``counters`` and ``requests`` (by the reason for which they ended), ``gauges``, ``kv_use`` (a share per
engine), ``histograms``, ``engines``, ``started`` and ``born`` of the process, and ``problems``: why a figure is None although the
page has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import histogram, names
from .text import MetricsError, Sample, parse

Samples = Mapping[str, Sequence[Sample]]
# Above it a float does not tell one from the next, and a difference would be invented.
LARGEST_EXACT = 2**53


class _Doubt(ValueError):
    """A figure that is there and cannot be trusted."""


def read(page: str) -> dict[str, Any] | None:
    """The reading; None when the page has no figure of an engine at all.

    Raises:
        MetricsError: the page is cut off, is no metrics page, or says something twice.
    """
    samples = parse(page, names.WANTED)
    if not any(name.startswith("vllm:") for name in samples):
        return None
    problems: list[str] = []

    def trusted(ask: Callable[..., Any], *about: Any) -> Any:
        try:
            return ask(samples, *about)
        except _Doubt as doubt:
            problems.append(str(doubt))
            return None

    return {
        "counters": {key: trusted(_counter, of) for key, of in names.COUNTERS.items()},
        "requests": trusted(_requests),
        "gauges": {key: trusted(_level, of) for key, of in names.GAUGES.items()},
        "kv_use": trusted(_shares, names.KV_USE),
        "histograms": {key: trusted(_histogram, of) for key, of in names.HISTOGRAMS.items()},
        "engines": len({sample.labels.get("engine", "0") for sample in samples.get(names.GAUGES["running"][0], ())})
        or 1,
        "started": _time(samples, names.STARTED),
        "born": min((time for time in (_time(samples, name) for name in names.BORN) if time), default=None),
        "problems": problems,
    }


def histogram_of(page: str, name: str) -> histogram.Histogram | None:
    """One histogram of the page, summed over its engines; None when the page does not have it.

    Raises:
        MetricsError: the page or the histogram cannot be right.
    """
    samples = parse(page, [f"{name}_{part}" for part in ("bucket", "count", "sum")])
    try:
        return _histogram(samples, (name,))
    except _Doubt as doubt:
        raise MetricsError(str(doubt)) from None


def _first(samples: Samples, choice: Sequence[str], suffix: str = "") -> str | None:
    """The newest of these names that the page has."""
    return next((name for name in choice if f"{name}{suffix}" in samples), None)


def _time(samples: Samples, name: str) -> float | None:
    found = [sample.value for sample in samples.get(name, ()) if math.isfinite(sample.value) and sample.value > 0]
    return min(found, default=None)


def _count(name: str, value: float) -> int:
    if not (math.isfinite(value) and value >= 0 and value == int(value)):
        raise _Doubt(f"{name} is {value}, which no counter can be")
    if value > LARGEST_EXACT:
        raise _Doubt(f"{name} is {value:.3g}, too large to be exact")
    return int(value)


def _counter(samples: Samples, choice: Sequence[str]) -> int | None:
    name = _first(samples, choice)
    return None if name is None else sum(_count(name, sample.value) for sample in samples[name])


def _requests(samples: Samples) -> dict[str, int] | None:
    found: dict[str, int] = {}
    for sample in samples.get(names.REQUESTS, ()):
        reason = sample.labels.get("finished_reason", "")
        found[reason] = found.get(reason, 0) + _count(names.REQUESTS, sample.value)
    return found or None


def _per_engine(samples: Samples, choice: Sequence[str]) -> tuple[str, list[float]] | None:
    """A gauge's value for each engine of the process."""
    by_name: dict[str, list[str]] = {
        name: [sample.labels.get("engine", "0") for sample in samples[name]] for name in choice if name in samples
    }
    if not by_name:
        return None
    # Some builds print a gauge once per API server, and do not tell which one is the newest.
    name = next((name for name, engines in by_name.items() if len(set(engines)) == len(engines)), None)
    if name is None:
        raise _Doubt(f"{next(iter(by_name))} is there several times for one engine")
    values = [sample.value for sample in samples[name]]
    for value in values:
        if not (math.isfinite(value) and value >= 0):
            raise _Doubt(f"{name} is {value}")
    return name, values


def _level(samples: Samples, choice: Sequence[str]) -> int | None:
    found = _per_engine(samples, choice)
    return None if found is None else sum(_count(found[0], value) for value in found[1])


def _shares(samples: Samples, choice: Sequence[str]) -> list[float] | None:
    found = _per_engine(samples, choice)
    if found is None:
        return None
    name, values = found
    if max(values) > 1 + 1e-6:
        raise _Doubt(f"{name} is {max(values)}, more than all")
    return [min(1.0, value) for value in values]


def _histogram(samples: Samples, choice: Sequence[str]) -> histogram.Histogram | None:
    name = _first(samples, choice, "_bucket")
    if name is None:
        return None
    parts: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for part in ("bucket", "count", "sum"):
        for sample in samples.get(f"{name}_{part}", ()):
            rest = {key: value for key, value in sample.labels.items() if key != "le"}
            places = parts.setdefault(tuple(sorted(rest.items())), {"bucket": {}})
            if part == "bucket":
                places["bucket"][_bound(name, sample)] = _count(f"{name}_bucket", sample.value)
            else:
                places[part] = sample.value
    return histogram.merged([_whole(name, places) for places in parts.values()])


def _bound(name: str, sample: Sample) -> float:
    try:
        bound = float(sample.labels["le"])
    except (KeyError, ValueError):
        raise _Doubt(f"{name} has a bucket without a bound") from None
    if math.isnan(bound):
        raise _Doubt(f"{name} has a bucket without a bound")
    return bound


def _whole(name: str, places: dict[str, Any]) -> histogram.Histogram:
    """One engine's histogram, if nothing of it is missing."""
    buckets = dict(sorted(places["bucket"].items()))
    count = buckets.pop(math.inf, None)
    total = places.get("sum", math.nan)
    counts = list(buckets.values())
    if count is None or places.get("count") != count or counts != sorted(counts) or (counts and counts[-1] > count):
        raise _Doubt(f"{name} does not add up")
    if not math.isfinite(total):
        raise _Doubt(f"{name} has the sum {total}")
    return {"bounds": list(buckets), "counts": counts, "count": count, "sum": total}
