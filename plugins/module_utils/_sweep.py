# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep over concurrency says: points, medians, the knee of each shape of prompts, and a max_num_seqs.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A run is one measurement (a shape, a concurrency, a repeat), as `read_result` takes it from the file that `vllm bench serve` writes.
A row is the median of all runs of one shape at one concurrency. Times are in milliseconds.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

# Our name of a figure, and the client's.
FIGURES = {
    "output_per_second": "output_throughput",
    "requests_per_second": "request_throughput",
    "ttft_p50": "median_ttft_ms",
    "ttft_p99": "p99_ttft_ms",
    "itl_p50": "median_itl_ms",
    "itl_p99": "p99_itl_ms",
}
COUNTS = {
    "completed": "completed",
    "failed": "failed",
    "input_tokens": "total_input_tokens",
    "output_tokens": "total_output_tokens",
}
ACCEPTANCE = "spec_decode_acceptance_length"
LIMITS = ("ttft_p50", "ttft_p99", "itl_p50", "itl_p99")
# Of two concurrencies whose throughput differs by no more than this, in percent, the lower one is better: the same for less waiting.
TOLERANCE = 1.0
RISING, FALLS, LEVEL, NONE = "still rising", "falls after", "levels off", "none"


class SweepError(ValueError):
    """A result that is none, or a wish that cannot be measured; the message says what to do."""


def read_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one run.

    Raises:
        SweepError: a figure is missing, so this is no result of the client, or of another version of it.
    """
    found: dict[str, Any] = {}
    for name, theirs in {**FIGURES, **COUNTS}.items():
        value = result.get(theirs)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise SweepError(f"the result of the bench client has no {theirs} that can be used, but {value!r}")
        found[name] = value if name in FIGURES else int(value)
    acceptance = result.get(ACCEPTANCE)
    found["acceptance"] = acceptance if isinstance(acceptance, int | float) and math.isfinite(acceptance) else None
    return found


def rows(runs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row per concurrency, rising; `why` says why a row is no candidate, empty when it is one."""
    by_concurrency: dict[int, list[Mapping[str, Any]]] = {}
    for run in runs:
        by_concurrency.setdefault(int(run["concurrency"]), []).append(run)
    return [_row(concurrency, found) for concurrency, found in sorted(by_concurrency.items())]


def _row(concurrency: int, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    errors = [str(run["error"]) for run in runs if run.get("error")]
    good = [run for run in runs if not run.get("error")]
    row: dict[str, Any] = {"concurrency": concurrency, "runs": len(runs)}
    for name in (*FIGURES, "acceptance"):
        values = [run[name] for run in good if run.get(name) is not None]
        row[name] = statistics.median(values) if values else None
    speeds = [run["output_per_second"] for run in good]
    row["lowest"], row["highest"] = min(speeds, default=None), max(speeds, default=None)
    for name in COUNTS:
        row[name] = sum(run[name] for run in good)
    if errors:
        row["why"] = errors[0]
    elif row["failed"]:
        row["why"] = f"{row['failed']} of {row['failed'] + row['completed']} requests failed"
    elif not row["completed"] or not row["output_per_second"]:
        row["why"] = "nothing was generated"
    else:
        row["why"] = ""
    return row


def over_limits(row: Mapping[str, Any], limits: Mapping[str, float]) -> str:
    """Which of the owner's limits a row breaks, in words; empty when none. A limit of 0 is none."""
    broken = [
        f"{name} is {row[name]:.0f} ms, at most {limit:g} ms are allowed"
        for name, limit in limits.items()
        if limit and row.get(name) is not None and row[name] > limit
    ]
    return "; ".join(broken)


def knee(
    table: Sequence[Mapping[str, Any]], limits: Mapping[str, float] | None = None, tolerance: float = TOLERANCE
) -> dict[str, Any]:
    """The concurrency from which on more brings nothing.

    Returns:
        `concurrency` (None when nothing could be judged), `kind` (one of RISING, FALLS, LEVEL, NONE), `output_per_second` and `words`.
    """
    refused = {row["concurrency"]: row["why"] or over_limits(row, limits or {}) for row in table}
    good = [row for row in table if not refused[row["concurrency"]]]
    if not good:
        words = "; ".join(f"at {concurrency}: {why}" for concurrency, why in refused.items()) or "nothing was measured"
        return {"concurrency": None, "kind": NONE, "output_per_second": None, "words": words}
    best = max(row["output_per_second"] for row in good)
    enough = (1 - tolerance / 100) * best
    chosen = next(row for row in good if row["output_per_second"] >= enough)
    at, speed = chosen["concurrency"], chosen["output_per_second"]
    above = [row for row in table if row["concurrency"] > at]
    lost = [row for row in above if not refused[row["concurrency"]] and row["output_per_second"] < enough]
    said = f"{speed:.0f} tokens/s at {at}"
    if lost:
        kind, worst = FALLS, lost[-1]
        words = f"falls after {at}: {said}, {worst['output_per_second']:.0f} at {worst['concurrency']}"
    elif not above:
        kind, words = RISING, f"still rising at {at}, the highest that was measured: {said}"
    elif all(refused[row["concurrency"]] for row in above):
        kind = FALLS
        words = f"{said}; after that {refused[above[0]['concurrency']]} (at {above[0]['concurrency']})"
    else:
        kind, words = (
            LEVEL,
            f"levels off at {at}: {said}, {above[-1]['output_per_second']:.0f} at {above[-1]['concurrency']}",
        )
    return {"concurrency": at, "kind": kind, "output_per_second": speed, "words": words}


def propose(
    knees: Mapping[str, Mapping[str, Any]], mix: str, current: int = 0, bound: int = 0, measured: int = 0
) -> dict[str, Any]:
    """A max_num_seqs for the host, with its reason.

    Args:
        knees: by shape.
        mix: name of the shape that is the owner's own; it decides alone. Empty when there is none.
        current: max_num_seqs of the engine that was measured, 0 when it sets none.
        bound: the most that the memory plan allows, 0 when it is not known.
        measured: the highest concurrency that was asked for, for the words when the engine's own bound was in the way.
    """
    judged = {name: found for name, found in knees.items() if found["concurrency"]}
    if not judged:
        reason = "nothing could be judged: " + "; ".join(f"{name}: {found['words']}" for name, found in knees.items())
        return {"max_num_seqs": None, "kind": NONE, "by": "", "reason": reason, "current": current, "bound": bound}
    if mix in judged:
        by, why = mix, "your own mix decides"
    elif mix:
        reason = (
            f"your own mix {mix} could not be judged: {knees[mix]['words'] if mix in knees else 'it was not measured'}"
        )
        return {"max_num_seqs": None, "kind": NONE, "by": "", "reason": reason, "current": current, "bound": bound}
    else:
        by = min(judged, key=lambda name: judged[name]["concurrency"])
        why = (
            "without your own mix the most careful shape decides"
            if len(judged) > 1
            else "the only shape that could be judged"
        )
    found = judged[by]
    wanted = int(found["concurrency"])
    value = min(wanted, bound) if bound else wanted
    reasons = [f"{by} {found['words']}", why]
    if value < wanted:
        reasons.append(f"lowered from {wanted} to {value}, the most that the memory plan allows")
    if found["kind"] == RISING and current and wanted >= current and measured > current:
        reasons.append(
            f"{measured} was asked for, but this engine takes {current} at once (max-num-seqs) and more would only have queued: "
            "raise it, bring that with cutover.yml and tune again to see further"
        )
    return {
        "max_num_seqs": value,
        "kind": found["kind"],
        "by": by,
        "reason": "; ".join(reasons),
        "current": current,
        "bound": bound,
    }


def judge(
    runs: Sequence[Mapping[str, Any]],
    shapes: Sequence[Mapping[str, Any]],
    limits: Mapping[str, float] | None = None,
    tolerance: float = TOLERANCE,
    current: int = 0,
    bound: int = 0,
    measured: int = 0,
) -> dict[str, Any]:
    """Rows and knee of every shape, and the proposal."""
    found = []
    for shape in shapes:
        table = rows(run for run in runs if run["shape"] == shape["name"])
        found.append({"name": shape["name"], "words": shape["words"], "own": shape["own"], "rows": table,
                      "knee": knee(table, limits, tolerance)})  # fmt: skip
    mix = next((shape["name"] for shape in shapes if shape["own"]), "")
    knees = {shape["name"]: shape["knee"] for shape in found if shape["rows"]}
    return {"shapes": found, "proposal": propose(knees, mix, current, bound, measured)}


def lines(judged: Mapping[str, Any]) -> list[str]:
    """The table for a person: medians, and by how many percent the runs differ. Narrow enough for Ansible's own output."""
    text = ["shape    at once   tok/s   +-%  1st ms  p99 ms next ms  p99 ms failed"]
    for shape in judged["shapes"]:
        for row in shape["rows"]:
            mark = " knee" if row["concurrency"] == shape["knee"]["concurrency"] else ""
            speed, spread = row["output_per_second"], None
            if speed:
                spread = 50 * (row["highest"] - row["lowest"]) / speed
            figures = [(speed, 1, 8), (spread, 0, 6), (row["ttft_p50"], 0, 8), (row["ttft_p99"], 0, 8)]
            figures += [(row["itl_p50"], 1, 8), (row["itl_p99"], 1, 8)]
            cells = "".join(
                f"{'-' if value is None else format(value, f'.{digits}f'):>{width}}" for value, digits, width in figures
            )
            text.append(f"{shape['name']:<8}{row['concurrency']:>8}{cells}{row['failed']:>7}{mark}")
        text.append(f"{shape['name']} ({shape['words']}): {shape['knee']['words']}")
    return text
