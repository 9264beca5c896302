# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as data: from the journals and what the hosts know, to one document that says all of it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O. The document is described in docs of the module
`rollout_report`; its `schema` grows by one when a reader of the old one would misunderstand it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import (
    _report_changes,
    _report_timeline,
    _report_traffic,
)
from ansible_collections.gb10.vllm.plugins.plugin_utils._report_timeline import Event, first, last, number

SCHEMA = 1
# Longer texts are of logs; the journal has them in full.
LONGEST = 2000


def build(
    history: Mapping[str, Any], traces: Mapping[str, Mapping[str, Any]], proxies: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The report.

    Args:
        history: result of `rollout_history`.
        traces: by engine host the result of `rollout_traces`; a host that could not be asked is missing or empty.
        proxies: by proxy the result of `access_log_info`.
    """
    events = _report_timeline.usable(history["events"])
    begin, end = first(events, "begin"), last(events, "end")
    began = events[0]["time"] if events else None
    ended = end.get("time")
    newest = events[-1]["time"] if events else None
    hosts = [_host(events, name, traces.get(name) or {}) for name in _report_timeline.hosts(events)]
    chain = _chain(history, events)
    away, serving = _report_timeline.walk(chain)
    windows = [window.as_dict() for window in away]
    report = {
        "schema": SCHEMA,
        "rollout": history["rollout"],
        "verb": begin.get("verb") or str(history["rollout"]).rpartition("-")[2],
        "path": begin.get("path", ""),
        "topology": begin.get("topology", ""),
        "words": begin.get("words", ""),
        "by": begin.get("by") or "",
        "resumes": begin.get("resumes") or "",
        "state": {"ok": "ok", "failed": "failed"}.get(str(end.get("result")), "unfinished"),
        "reason": _short(end.get("reason")),
        "serving": list(end["serving"]) if end.get("serving") is not None else serving,
        "began": began,
        "ended": ended,
        "seconds": round(max(0.0, (ended or newest) - began), 3) if began and newest else None,
        "windows": windows,
        "window_seconds": round(sum(window["seconds"] for window in windows), 3),
        "first_start": _is_first_start(begin),
        "requests": end.get("requests") or None,
        "hosts": hosts,
        "changes": _changes(events, hosts, traces),
        "traffic": _report_traffic.summed(proxies) if proxies else None,
        "memory": [row for host in hosts for row in _memory(events, host, traces.get(host["name"]) or {})],
        "earlier": [_figures(entry["rollout"], entry["events"]) for entry in history.get("earlier") or []],
        "notes": [note for host in hosts for note in host.pop("notes")],
        "events": events,
    }
    return kept(report, history.get("kept"))


def kept(report: dict[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The report with what an earlier one of the same rollout knew and this one does not any more: logs are not kept for ever."""
    if not before or before.get("schema") != SCHEMA or before.get("rollout") != report["rollout"]:
        return report
    report = dict(report)
    for key in ("traffic", "memory"):
        report[key] = report[key] or before.get(key) or report[key]
    if report["traffic"] and before.get("traffic"):
        old, new = (
            part["spans"].get("before", {}).get("requests", 0) for part in (before["traffic"], report["traffic"])
        )
        if old > new:
            report["traffic"] = before["traffic"]
    if not any(change["items"] for change in report["changes"]) and any(
        c["items"] for c in before.get("changes") or []
    ):
        report["changes"] = before["changes"]
    phases = {host["name"]: host.get("phases") for host in before.get("hosts") or []}
    report["hosts"] = [{**host, "phases": host["phases"] or phases.get(host["name"]) or []} for host in report["hosts"]]
    return report


def _is_first_start(begin: Event) -> bool:
    """Whether nothing ever ran on the site, so that nobody could miss it."""
    serving = [plan for plan in (begin.get("hosts") or {}).values() if (plan or {}).get("serving")]
    return bool(begin) and not serving and not begin.get("before")


def _short(text: Any) -> str:
    words = str(text or "").strip()
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def _host(events: Sequence[Event], name: str, traces: Mapping[str, Any]) -> dict[str, Any]:
    followed = _report_timeline.follow(events, name)
    begin = first(events, "begin")
    spans = _with_memory(followed.spans, traces.get("stops") or [])
    failed = (last(events, "settled").get("failed") or {}).get(name)
    return {
        "name": name,
        "before": (begin.get("before") or {}).get(name) or "",
        "target": (begin.get("targets") or {}).get(name) or "",
        "admitted": followed.admitted,
        "result": "failed" if failed or followed.reason else "ok",
        "reason": _short(failed or followed.reason),
        "spans": [span.as_dict() for span in spans],
        "phases": _phases(followed, traces.get("starts") or [], events),
        "notes": followed.notes,
    }


def _with_memory(spans: Sequence[_report_timeline.Span], stops: Sequence[float | None]) -> list[_report_timeline.Span]:
    """The stops divided into the engine's end and the wait for its memory, where the host's log tells them apart."""
    found: list[_report_timeline.Span] = []
    moments = list(stops)
    for span in spans:
        down = moments.pop(0) if span.step == "stop" and span.result != "failed" and moments else None
        if down is None or not span.start < down < span.end:
            found.append(span)
            continue
        found.append(_report_timeline.Span("stop", span.start, down, span.result))
        found.append(_report_timeline.Span("memory", down, span.end, span.result))
    return found


def _phases(
    host: _report_timeline.Host, starts: Sequence[Mapping[str, Any]], events: Sequence[Event]
) -> list[dict[str, Any]]:
    """The phases of the host's last start, each with its length; the last one ends with the load."""
    if not starts or not starts[-1].get("phases"):
        return []
    marks = starts[-1]["phases"]
    loads = [span for span in host.spans if span.step in ("load", "failed") and span.start >= starts[-1]["began"] - 1]
    end = loads[0].end if loads else events[-1]["time"]
    edges = [float(mark["at"]) for mark in marks] + [max(end, float(marks[-1]["at"]))]
    return [
        {"phase": mark["phase"], "from": round(begin, 3), "seconds": round(max(0.0, finish - begin), 3)}
        for mark, begin, finish in zip(marks, edges, edges[1:], strict=False)
        if mark["phase"] != "ready"
    ]


def _changes(
    events: Sequence[Event], hosts: Sequence[Mapping[str, Any]], traces: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    touched = first(events, "begin").get("hosts") or {}
    entries = []
    for host in hosts:
        if touched and not (touched.get(host["name"]) or {}).get("start", True):
            entries.append(
                (
                    host["name"],
                    {"before": host["before"], "after": host["target"], "items": [], "words": "Not started anew."},
                )
            )
            continue
        records = (traces.get(host["name"]) or {}).get("records") or {}
        entries.append((host["name"], _report_changes.of_host(host["before"], host["target"], records)))
    return _report_changes.grouped(entries)


def _memory(events: Sequence[Event], host: Mapping[str, Any], traces: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The memory of each release that was started here in this rollout, and of the one before."""
    begun = [event for event in events if event["step"] == "started" and host["name"] in _report_timeline.names(event)]
    rows, starts = [], traces.get("memory") or []
    end = events[-1]["time"] + 60 if events else 0
    if begun:
        earlier = [s for s in starts if s["release"] == host["before"] and number(s.get("began")) < begun[0]["time"]]
        rows += [{"host": host["name"], "when": "before", **earlier[-1]}] if earlier else []
    for release in dict.fromkeys(str(event.get("to") or "") for event in begun):
        first_start = min(event["time"] for event in begun if event.get("to") == release) - 60
        found = [s for s in starts if s["release"] == release and first_start <= number(s.get("began")) <= end]
        rows += [{"host": host["name"], "when": "now", **found[-1]}] if found else []
    return rows


def _chain(history: Mapping[str, Any], events: Sequence[Event]) -> list[Event]:
    """The events of this rollout after those of the unfinished ones that it took over: their window is one."""
    chain = list(events)
    for entry in reversed(history.get("earlier") or []):
        before = _report_timeline.usable(entry["events"])
        if first(before, "end") or not first(before, "begin"):
            break
        chain = before + chain
    return chain


def _figures(rollout: str, journal: Sequence[Any]) -> dict[str, Any]:
    """One earlier rollout in a line."""
    events = _report_timeline.usable(journal)
    begin, end = first(events, "begin"), last(events, "end")
    loads = [number(event.get("seconds")) for event in events if event["step"] == "loaded"]
    requests = end.get("requests") or {}
    return {
        "rollout": rollout,
        "verb": begin.get("verb") or rollout.rpartition("-")[2],
        "path": begin.get("path", ""),
        "topology": begin.get("topology", ""),
        "state": {"ok": "ok", "failed": "failed"}.get(str(end.get("result")), "unfinished"),
        "seconds": round(max(0.0, events[-1]["time"] - events[0]["time"]), 3) if events else None,
        "window_seconds": round(sum(max(0.0, w.end - w.start) for w in _report_timeline.windows(events)), 3),
        "load_seconds": round(max(loads), 3) if loads else None,
        "held": requests.get("held"),
        "turned_away": requests.get("turned_away"),
    }
