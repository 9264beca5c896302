# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of panels that the dashboards are made of, in Grafana's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Colours by name: Grafana has a light and a dark one for each.
GOOD, WARN, BAD, PLAIN = "green", "orange", "red", "text"

Query = tuple[str, str]
Panel = dict[str, Any]


def targets(queries: Sequence[Query], **more: Any) -> list[dict[str, Any]]:
    return [
        {"refId": chr(ord("A") + place), "datasource": SOURCE, "expr": expression, "legendFormat": legend, **more}
        for place, (expression, legend) in enumerate(queries)
    ]


def steps(*colours: tuple[float | None, str]) -> dict[str, Any]:
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in colours]}


def stat(
    title: str, words: str, query: str, unit: str = "none", limits: Any = None, texts: dict[str, str] | None = None
) -> Panel:
    """One number. `texts` are words in the place of values."""
    defaults: dict[str, Any] = {"unit": unit, "thresholds": limits or steps((None, PLAIN)), "noValue": "unknown"}
    if texts:
        defaults["mappings"] = [{"type": "value", "options": {value: {"text": text} for value, text in texts.items()}}]
    return {
        "type": "stat",
        "title": title,
        "description": words,
        "targets": targets([(query, "")]),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "colorMode": "value",
            "graphMode": "area",
            "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
        },
    }


def lines(
    title: str, words: str, queries: Sequence[Query], unit: str, stacked: bool = False, most: float | None = None
) -> Panel:
    """Curves over time. A gap stays a gap: a copy that is missing is not at 0."""
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "spanNulls": False, "showPoints": "never"}
    custom["stacking"] = {"mode": "normal" if stacked else "none", "group": "A"}
    defaults: dict[str, Any] = {"unit": unit, "min": 0, "custom": custom}
    if most is not None:
        defaults["max"] = most
    return {
        "type": "timeseries",
        "title": title,
        "description": words,
        "targets": targets(queries),
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    }


def table(title: str, words: str, query: str, hidden: Sequence[str]) -> Panel:
    return {
        "type": "table",
        "title": title,
        "description": words,
        "targets": targets([(query, "")], format="table", instant=True),
        "transformations": [{"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True)}}],
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {"showHeader": True},
    }


SHOWN = ("Time", "Value", "__name__", "instance", "job", "site")


def placed(rows: Sequence[tuple[int, Sequence[Panel]]]) -> Iterator[Panel]:
    """Panels side by side, each row with its height on Grafana's grid of 24 columns."""
    number, top = 1, 0
    for height, panels in rows:
        width = 24 // len(panels)
        for place, panel in enumerate(panels):
            where = {"h": height, "w": width, "x": place * width, "y": top}
            yield {"id": number, "datasource": SOURCE, "gridPos": where, **panel}
            number += 1
        top += height


def variable(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": False,
        "includeAll": False,
    }
