# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of what was measured: sweeps with their knees, split against copies, scores over time.

Private to this collection: may change at any time. Pure: no Ansible, no I/O. Colours, sizes and the frame are those of the report of a rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils._report_charts import NARROW, WIDE, _chart, _colour

HEIGHT = 230
COLOURS = [f"var(--phase{place})" for place in (0, 4, 2, 3, 1, 5, 6, 8)]
COPIES, PAIR = "copies, in all", "the pair"
AT_ONCE = "requests at once"
FIRST, NEXT = "ms to the first token, logarithmic", "ms between tokens, logarithmic"
VERDICTS = {
    "accepted": "var(--gate)",
    "rejected": "var(--failed)",
    "not comparable": "var(--drain)",
    "error": "var(--soak)",
}


def _x(values: Sequence[int]) -> dict[str, Any]:
    ticks = sorted(set(values))
    scale = {"domain": [0, max(ticks)], "nice": False}
    axis = {"title": AT_ONCE, "values": ticks, "format": "d", "grid": False, "labelOverlap": True}
    return {"field": "at", "type": "quantitative", "scale": scale, "axis": axis}


def _lines(
    rows: Sequence[Mapping[str, Any]], width: int, title: str, names: Sequence[str], logarithmic: bool = False
) -> dict[str, Any] | None:
    """One line per name, a bar from the lowest to the highest run, a ring around each knee. `dashed` rows are a second line."""
    if not rows:
        return None
    colour = _colour("name", names, COLOURS[: len(names)])
    scale = {"type": "log"} if logarithmic else {"zero": True}
    y = {"field": "value", "type": "quantitative", "scale": scale, "axis": {"title": title, "tickCount": 5}}
    x = _x([row["at"] for row in rows])
    knees = [row for row in rows if row.get("knee")]
    spread = [row for row in rows if row.get("low") is not None]
    layers: list[dict[str, Any]] = []
    if spread:
        layers.append(
            {
                "data": {"values": spread},
                "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            }
        )
    if knees:
        layers += [
            {
                "data": {"values": knees},
                "mark": {"type": "point", "size": 260, "strokeWidth": 2.5, "filled": False},
                "encoding": {"x": x, "y": y, "color": colour},
            },
            {
                "data": {"values": knees},
                "mark": {"type": "text", "dy": -18, "fontSize": 12, "fontWeight": "bold", "fill": "var(--ink)"},
                "encoding": {"x": x, "y": y, "text": {"field": "knee", "type": "nominal"}},
            },
        ]
    for dashed in (True, False):
        part = [row for row in rows if bool(row.get("dashed")) == dashed]
        if part:
            layers.append(
                {
                    "data": {"values": part},
                    "mark": {
                        "type": "line",
                        "strokeWidth": 2,
                        "strokeDash": [5, 4] if dashed else [1, 0],
                        "point": {"size": 40},
                    },
                    "encoding": {"x": x, "y": y, "color": colour},
                }
            )
    return _chart(width, HEIGHT, rows, layer=layers)


def speed(measurement: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    """Throughput of every shape over concurrency, with the knees."""
    rows = []
    for shape in measurement["shapes"]:
        knee = shape["knee"]["concurrency"]
        for row in shape["rows"]:
            if row["output_per_second"] is not None:
                at = row["concurrency"]
                rows.append(
                    {"name": shape["name"], "at": at, "value": row["output_per_second"], "low": row["lowest"],
                     "high": row["highest"], "knee": f"{at}" if at == knee else ""}
                )  # fmt: skip
    return _lines(rows, width, "tokens per second", _names(measurement))


def _names(measurement: Mapping[str, Any]) -> list[str]:
    return [shape["name"] for shape in measurement["shapes"]]


def _waits(measurement: Mapping[str, Any], width: int, key: str, title: str) -> dict[str, Any] | None:
    rows = [
        {"name": shape["name"], "at": row["concurrency"], "value": row[f"{key}_{part}"], "dashed": part == "p99"}
        for shape in measurement["shapes"]
        for row in shape["rows"]
        for part in ("p50", "p99")
        if (row[f"{key}_{part}"] or 0) > 0
    ]
    return _lines(rows, width, title, _names(measurement), logarithmic=True)


def first(measurement: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    return _waits(measurement, width, "ttft", FIRST)


def after(measurement: Mapping[str, Any], width: int) -> dict[str, Any] | None:
    return _waits(measurement, width, "itl", NEXT)


def versus(found: Mapping[str, Any], name: str, width: int, key: str, title: str) -> dict[str, Any] | None:
    """Both sides over the number of requests in all, for one shape."""
    rows = [
        {"name": words, "at": point["concurrency"], "value": point[side][key]}
        for point in found["points"]
        if point["shape"] == name
        for side, words in (("replicated", COPIES), ("split", PAIR))
    ]
    return _lines(rows, width, title, [COPIES, PAIR])


def scores(history: Sequence[Mapping[str, Any]], width: int) -> dict[str, Any] | None:
    """Scores over time, each with its verdict."""
    rows = [
        {"time": entry["time"] * 1000, "score": entry["score"], "what": entry["verdict"]}
        for entry in history
        if entry.get("score") is not None
    ]
    if not rows:
        return None
    used = [name for name in VERDICTS if any(row["what"] == name for row in rows)]
    used += sorted({row["what"] for row in rows} - set(VERDICTS))
    x = {"field": "time", "type": "temporal", "scale": {"type": "utc"},
         "axis": {"title": None, "format": "%d %b %Y", "tickCount": max(2, width // 160), "labelOverlap": True}}  # fmt: skip
    low = min(row["score"] for row in rows)
    y = {"field": "score", "type": "quantitative", "axis": {"title": "score", "tickCount": 5},
         "scale": {"domain": [max(0, 10 * (low // 10) - 10), 100]}}  # fmt: skip
    line = {"mark": {"type": "line", "stroke": "var(--line)", "strokeWidth": 2}, "encoding": {"x": x, "y": y}}
    colours = [VERDICTS.get(name, "var(--away)") for name in used]
    dots = {"mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
            "encoding": {"x": x, "y": y, "color": _colour("what", used, colours)}}  # fmt: skip
    return _chart(width, 180, rows, layer=[line, dots])


def charts(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Every chart that has something to show, by `name-wide` and `name-narrow`."""
    makers: dict[str, Any] = {}
    for place, measurement in enumerate(found["sweeps"]):
        for name, make in (("speed", speed), ("first", first), ("next", after)):
            makers[f"{name}{place}"] = (make, measurement)
    comparison = found["comparison"]
    for name in dict.fromkeys(point["shape"] for point in comparison["points"]) if comparison else ():
        for short, key, title in (
            ("versus", "output_per_second", "tokens per second"),
            ("waits", "itl_p50", "ms between tokens"),
        ):
            makers[f"{short}-{name}"] = (_versus(name, key, title), comparison)
    makers["scores"] = (scores, found["scores"])
    drawn = {}
    for name, (make, about) in makers.items():
        for size, width in (("wide", WIDE), ("narrow", NARROW)):
            chart = make(about, width)
            if chart is not None:
                drawn[f"{name}-{size}"] = chart
    return drawn


def _versus(name: str, key: str, title: str) -> Any:
    def make(found: Mapping[str, Any], width: int) -> dict[str, Any] | None:
        return versus(found, name, width, key, title)

    return make
