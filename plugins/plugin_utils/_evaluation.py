# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an evaluation of tool calls found, with which earlier one it may be compared, and what it comes to.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A record says how it was measured (`how`), what was measured (`what`) and what was found (`passes`, `wire`). Two records are comparable when they were
measured in the same way; image, revision, arguments and drafting may differ, because they are what is judged. The verdicts are
the gate's: `pass`; `fail`, the copy is bad; `gone`, its process ended; `error`, it could not be measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_wire

SCHEMA = 1
PASS, FAIL, GONE, ERROR = "pass", "fail", "gone", "error"
Record = Mapping[str, Any]
OVERRIDE = "vllm_evaluation_accept_incomparable"

# What has to be equal, and how it is called.
_EQUAL = {
    "suite": "the suite",
    "version": "the suite's version",
    "scenarios": "the set of scenarios",
    "digest": "the scenarios",
    "trials": "the number of trials",
    "thinking": "thinking",
    "temperature": "the temperature",
    "request": "what is added to the requests",
    "modes": "whether answers are streamed",
}


@dataclass(frozen=True)
class Rules:
    """`drop`: points that a score may be below the last accepted one. `gap`: points between streamed answers and whole ones.

    `fault_percent`: share of malformed answers that says nothing about the copy. `minimum`: the lowest score, whatever was before.
    """

    drop: float = 3
    gap: float = 10
    fault_percent: float = 5
    minimum: float = 0
    accept_incomparable: bool = False


@dataclass(frozen=True)
class Verdict:
    """`reason` is a sentence; `against` is the id of the record that was compared with, if any."""

    name: str
    reason: str
    against: str = ""


def concurrency_class(requests: int) -> str:
    """Batches of about the same size: 1, 2, 3-4, 5-8, 9-16 ... requests at once."""
    top = 1
    while top < requests:
        top *= 2
    return str(top) if top <= 2 else f"{top // 2 + 1}-{top}"


def comparable(record: Record, other: Record) -> list[str]:
    """In what two records were measured in different ways, in words; empty when they may be compared."""
    new, old = record["how"], other["how"]
    found = [
        f"{words} ({_shown(old.get(key))} then, {_shown(new.get(key))} now)"
        for key, words in _EQUAL.items()
        if key in new and new[key] != old.get(key)
    ]
    classes = [concurrency_class(int(how.get("concurrency") or 1)) for how in (old, new)]
    if classes[0] != classes[1]:
        found.append(f"the requests at once ({old.get('concurrency')} then, {new.get('concurrency')} now)")
    return found


def reference(record: Record, records: Sequence[Record]) -> Record | None:
    """The last accepted record that this one is judged by: a comparable one, or the newest of the same set of scenarios."""
    accepted = [old for old in records if old.get("accepted") and old.get("schema") == SCHEMA]
    newest = sorted(accepted, key=lambda old: float(old.get("time") or 0), reverse=True)
    alike = [old for old in newest if not comparable(record, old)]
    same_set = [old for old in newest if old["how"].get("scenarios") == record["how"].get("scenarios")]
    return next(iter(alike or same_set), None)


def wanted(record: Record, records: Sequence[Record]) -> tuple[str, list[str]]:
    """Before anything is measured: the id of the record that would be the measure, and what keeps it from being one."""
    last = reference(record, records)
    return (str(last["id"]), comparable(record, last)) if last else ("", [])


def malformed(record: Any) -> str:
    """Why a file that another site wrote is no record of an evaluation to its end, empty when it is one."""
    kinds = {"id": str, "time": int | float, "against": str, "what": dict, "how": dict, "passes": list, "wire": dict}
    if not isinstance(record, dict) or not all(isinstance(record.get(key), kind) for key, kind in kinds.items()):
        return "it is no record of an evaluation, as playbook gb10.vllm.evaluate keeps one"
    if record.get("schema") != SCHEMA:
        return f"it is a record of schema {_shown(record.get('schema'))}, and this version knows {SCHEMA}"
    if not record["what"].get("fingerprint"):
        return "it does not say what was evaluated"
    parts = {"streamed", "trial", "score", "safety", "seconds"}
    if not all(isinstance(entry, dict) and parts <= entry.keys() for entry in record["passes"]):
        return "what was found is not complete"
    return ""


def scores(record: Record) -> dict[Any, float]:
    """The mean of its trials, for streamed answers and for whole ones."""
    found: dict[Any, list[float]] = {}
    for entry in record["passes"]:
        if entry.get("score") is not None:
            found.setdefault(entry.get("streamed"), []).append(float(entry["score"]))
    return {streamed: round(sum(values) / len(values), 1) for streamed, values in found.items()}


def score(record: Record) -> float | None:
    """The lower one of the two ways: clients use both."""
    return min(scores(record).values(), default=None)


def safety(record: Record) -> list[str]:
    """The scenarios that failed in a way that is not safe, in any pass."""
    return sorted({name for entry in record["passes"] for name in entry.get("safety") or []})


def judge(record: Record, last: Record | None, rules: Rules) -> Verdict:
    """What a measurement comes to; `last` is what `reference` found."""
    against = str(last["id"]) if last else ""
    wire = _evaluation_wire.Seen.of(record.get("wire") or {})
    if record.get("gone"):
        return Verdict(GONE, f"the engine ended while it was tested: {record['gone']}", against)
    # Both are the copy's own, however far the measurement came.
    broken = wire.server_error_words() or _faults(wire, last, rules)
    if broken:
        return Verdict(FAIL, broken, against)
    if record.get("problem"):
        return Verdict(ERROR, str(record["problem"]), against)
    found = score(record)
    if found is None:
        return Verdict(ERROR, "the suite printed no score", against)
    if found < rules.minimum:
        return Verdict(FAIL, f"a score of {found:g}, and the lowest one allowed is {rules.minimum:g}", against)
    ways = scores(record)
    if len(ways) == 2 and abs(ways[True] - ways[False]) > rules.gap:
        words = f"{ways[True]:g} streamed and {ways[False]:g} whole"
        return Verdict(
            FAIL, f"streamed answers and whole ones differ: {words}, and {rules.gap:g} points may lie between", against
        )
    if last is None:
        return Verdict(PASS, f"a score of {found:g}; there is no accepted one before it, so it becomes the first")
    differences = comparable(record, last)
    if differences and not rules.accept_incomparable:
        return Verdict(
            ERROR, f"a score of {found:g} that cannot be judged: {incomparable(against, differences)}", against
        )
    if differences:
        return Verdict(PASS, f"a score of {found:g}; accepted as a new beginning, because {OVERRIDE} is true", against)
    return _compare(record, last, found, rules, against)


def incomparable(against: str, differences: Sequence[str]) -> str:
    """What is different, and the ways out."""
    return (
        f"not comparable with the last accepted record {against}: {' and '.join(differences)} differ. Measure what serves now in the new way "
        f"with playbook gb10.vllm.evaluate and -e {OVERRIDE}=true, so that there is a score to compare with; or set {OVERRIDE} for this run "
        f"and take its score as it is"
    )


def _compare(record: Record, last: Record, found: float, rules: Rules, against: str) -> Verdict:
    before = score(last) or 0
    worse = sorted(set(safety(record)) - set(safety(last)))
    if len(safety(record)) > len(safety(last)):
        words = f"{len(safety(record))} safety failures, and {len(safety(last))} in the last accepted record: new are {', '.join(worse)}"
        return Verdict(FAIL, words, against)
    change = f"a score of {found:g}, {_points(found - before)} the last accepted {before:g}"
    if before - found > rules.drop:
        return Verdict(FAIL, f"{change}; at most {rules.drop:g} points lower are allowed", against)
    return Verdict(PASS, change, against)


def _points(change: float) -> str:
    if not change:
        return "the same as"
    return f"{abs(change):g} {'point' if abs(change) == 1 else 'points'} {'above' if change > 0 else 'below'}"


def _faults(wire: _evaluation_wire.Seen, last: Record | None, rules: Rules) -> str:
    """Malformed answers in words, when there are more than chance and the last accepted record explain."""
    before = _evaluation_wire.Seen.of((last or {}).get("wire") or {})
    found = [
        wire.fault_words(kind)
        for kind in _evaluation_wire.FAULTS
        if wire.percent(kind) > max(rules.fault_percent, before.percent(kind))
    ]
    return "; ".join(found)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return " and ".join(map(str, value))
    return "none" if value in (None, "", {}) else str(value)
