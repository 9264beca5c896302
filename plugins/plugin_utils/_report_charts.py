# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pictures of a report as Vega-Lite charts.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

Colours are names of the page's own (`var(--...)`), so that one picture is right in light, in dark and on paper. Each chart is made
for a width, because one that is shrunk to a telephone cannot be read there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _phase

WIDE, NARROW = 880, 350
# In the order in which a host goes through them, with the words of the legend.
STEPS = {
    "drain": "drain",
    "stop": "stop",
    "memory": "memory back",
    "load": "load",
    "test": "tool-call test",
    "gate": "gate",
    "admit": "admit",
    "soak": "soak",
    "failed": "failed",
    "away": "no copy admitted",
}
# A phase has the same colour in every report.
PHASES = {name: f"var(--phase{place})" for place, name in enumerate(_phase.NAMES)}
TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
SITE = "the model"
ANSWERED, OTHER = "answered with 200", "any other answer"
SINCE = "minutes:seconds since the rollout began"
# A step of milliseconds is drawn this wide, as a part of the whole, so that it can be seen at all.
LEAST_SHARE = 0.004
MOST_HOSTS = 64
CLOCK = (
    "(datum.value < 0 ? '−' : '') + (abs(datum.value) >= 3600 ? floor(abs(datum.value) / 3600) + ':' : '')"
    " + (abs(datum.value) >= 3600 ? pad(floor(abs(datum.value) % 3600 / 60), 2, '0', 'left') : floor(abs(datum.value) / 60))"
    " + ':' + pad(floor(abs(datum.value) % 60), 2, '0', 'left')"
)


def _chart(width: int, height: Any, values: Sequence[Mapping[str, Any]], **rest: Any) -> dict[str, Any]:
    ink = {"labelColor": "var(--soft)", "titleColor": "var(--soft)", "labelFontSize": 12, "titleFontSize": 12}
    axis = {
        **ink,
        "gridColor": "var(--line)",
        "domainColor": "var(--line)",
        "tickColor": "var(--line)",
        "titleFontWeight": "normal",
    }
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": None,
        "padding": 2,
        "data": {"values": list(values)},
        "config": {
            "aria": False,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": axis,
        },
        **rest,
    }


def _labels(names: Sequence[str], width: int) -> dict[str, Any]:
    """The axis of names; the room is reckoned with a wide font, because nobody knows the reader's."""
    room = min(max(len(name) for name in names) * 7.6 + 6, width * 0.42)
    return {"title": None, "labelLimit": room, "minExtent": room + 4, "ticks": False}


def _time_axis(first: float, last: float, width: int, **more: Any) -> dict[str, Any]:
    """An axis of time with marks where people look for them: at whole seconds, minutes, quarters of an hour."""
    step = next((step for step in TICKS if (last - first) / step <= width / 80), TICKS[-1])
    values = [number * step for number in range(math.ceil(first / step), math.floor(last / step) + 1)]
    return {"title": SINCE, "labelExpr": CLOCK, "values": values, **more}


def _colour(field: str, names: Sequence[str], colours: Sequence[str]) -> dict[str, Any]:
    return {
        "field": field,
        "type": "nominal",
        "scale": {"domain": list(names), "range": list(colours)},
        "legend": None,
    }


def timeline(report: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    """What every host did when, with the times without an admitted copy above."""
    began = report["began"]
    rows = [
        {"row": host["name"], "step": STEPS[span["step"]], "from": span["from"] - began, "to": span["to"] - began}
        for host in report["hosts"][:MOST_HOSTS]
        for span in host["spans"]
    ]
    away = [
        {"row": SITE, "step": STEPS["away"], "from": window["from"] - began, "to": window["to"] - began}
        for window in report["windows"]
    ]
    if not rows:
        return None
    order = ([SITE] if away else []) + [host["name"] for host in report["hosts"][:MOST_HOSTS]]
    bars = away + rows
    first, last = min(span["from"] for span in bars), max(span["to"] for span in bars)
    least = LEAST_SHARE * (last - first)
    bars = [{**span, "to": max(span["to"], span["from"] + least)} for span in bars]
    used = [key for key, words in STEPS.items() if any(span["step"] == words for span in bars)]
    return _chart(
        width,
        {"step": 30 if len(order) <= 16 else 16},
        bars,
        mark={"type": "bar", "height": {"band": 0.72}},
        encoding={
            "y": {
                "field": "row",
                "type": "nominal",
                "sort": order,
                "axis": _labels(order, width),
            },
            "x": {
                "field": "from",
                "type": "quantitative",
                "scale": {"domain": [min(0.0, first), last]},
                "axis": _time_axis(min(0.0, first), last, width),
            },
            "x2": {"field": "to"},
            "color": _colour("step", [STEPS[key] for key in used], [f"var(--{key})" for key in used]),
        },
    )


def phases(report: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    """The phases of each host's last start, from its engine's own log."""
    rows = [
        {"row": host["name"], "phase": phase["phase"], "seconds": phase["seconds"], "order": place}
        for host in report["hosts"][:MOST_HOSTS]
        for place, phase in enumerate(host["phases"])
    ]
    if not rows:
        return None
    order = [host["name"] for host in report["hosts"][:MOST_HOSTS] if host["phases"]]
    used = list(dict.fromkeys(row["phase"] for row in sorted(rows, key=lambda row: row["order"])))
    return _chart(
        width,
        {"step": 30 if len(order) <= 16 else 16},
        rows,
        mark={"type": "bar", "height": {"band": 0.72}},
        encoding={
            "y": {
                "field": "row",
                "type": "nominal",
                "sort": order,
                "axis": _labels(order, width),
            },
            "x": {
                "field": "seconds",
                "type": "quantitative",
                "stack": "zero",
                "axis": {"title": "seconds", "tickCount": width // 90},
            },
            "order": {"field": "order", "type": "quantitative"},
            "color": _colour("phase", used, [PHASES[name] for name in used]),
        },
    )


def traffic(report: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    """Requests per second, answered and not, with the times without an admitted copy behind them."""
    if not report["traffic"]:
        return None
    series, began = report["traffic"]["series"], report["began"]
    step = series["step_seconds"]
    # Of the time before no more than is long beside the change; the table has the rest.
    change = report["traffic"]["spans"].get("during") or {"seconds": 0}
    earliest = -max(60.0, change["seconds"])
    rows = []
    for place, (answered, failed) in enumerate(zip(series["answered"], series["failed"], strict=True)):
        at = series["from"] + place * step - began
        for what, low, high in ((ANSWERED, 0, answered), (OTHER, answered, answered + failed)):
            if at >= earliest:
                rows.append({"at": at, "next": at + step, "what": what, "low": low / step, "high": high / step})
    if not rows:
        return None
    away = [{"from": window["from"] - began, "to": window["to"] - began} for window in report["windows"]]
    shade = {
        "data": {"values": away},
        "mark": {"type": "rect", "color": "var(--away)", "opacity": 0.25},
        "encoding": {"x": {"field": "from", "type": "quantitative"}, "x2": {"field": "to"}},
    }
    bars = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": {
                "field": "at",
                "type": "quantitative",
                "scale": {"nice": False},
                "axis": _time_axis(rows[0]["at"], rows[-1]["next"], width, grid=False),
            },
            "x2": {"field": "next"},
            "y": {"field": "low", "type": "quantitative", "axis": {"title": "requests per second", "tickCount": 4}},
            "y2": {"field": "high"},
            "color": _colour("what", [ANSWERED, OTHER], ["var(--gate)", "var(--failed)"]),
        },
    }
    return _chart(width, 150, rows, layer=([shade] if away else []) + [bars])


def earlier(report: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    """How long the model was away and the longest load, beside those of the rollouts before."""
    if not report["earlier"]:
        return None
    own = {
        "rollout": report["rollout"],
        "window_seconds": report["window_seconds"],
        "load_seconds": _longest_load(report),
    }
    shown = [*report["earlier"], own]
    order = [entry["rollout"] for entry in shown]
    rows = [
        {"rollout": entry["rollout"], "what": words, "seconds": entry[key] or 0}
        for entry in shown
        for key, words in (("window_seconds", "without an admitted copy"), ("load_seconds", "longest load"))
    ]
    return _chart(
        width,
        {"step": 12},
        rows,
        mark={"type": "bar"},
        encoding={
            "y": {
                "field": "rollout",
                "type": "nominal",
                "sort": order,
                "axis": _labels(order, width),
            },
            "yOffset": {"field": "what", "type": "nominal", "sort": None},
            "x": {"field": "seconds", "type": "quantitative", "axis": {"title": "seconds", "tickCount": width // 110}},
            "color": _colour("what", ["without an admitted copy", "longest load"], ["var(--away)", "var(--load)"]),
        },
    )


def _longest_load(report: Mapping[str, Any]) -> float | None:
    loads = [
        span["seconds"]
        for host in report["hosts"]
        for span in host["spans"]
        if span["step"] == "load" and not span["open"]
    ]
    return max(loads, default=None)


CHARTS = {"timeline": timeline, "phases": phases, "traffic": traffic, "earlier": earlier}


def legend(chart: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Words and colours of a chart: the page writes its legend, because only there the text has the reader's font."""
    encoding = chart["layer"][-1]["encoding"] if "layer" in chart else chart["encoding"]
    scale = encoding["color"]["scale"]
    return list(zip(scale["domain"], scale["range"], strict=True))


def charts(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every chart that has something to show, by `name-wide` and `name-narrow`."""
    found = {}
    for name, make in CHARTS.items():
        for size, width in (("wide", WIDE), ("narrow", NARROW)):
            chart = make(report, width) if report["began"] else None
            if chart is not None:
                found[f"{name}-{size}"] = chart
    return found
