# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was measured as one page that needs nothing else, and its pictures as files.

Private to this collection: may change at any time. Reads only its own template and the style of the report of a rollout.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import (
    _measure_charts,
    _report_charts,
    _report_html,
    _report_pictures,
)
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

SCHEMA = 1
TEMPLATE = "_measure_page.html.j2"


def files(report: Mapping[str, Any]) -> tuple[dict[str, str], str]:
    """The files by the end of their names, and why there are no pictures, empty when there are.

    Args:
        report: `title`, `time`, `sweeps` (results of the module `sweep`, each with its `host`), `comparison` (of `_comparison`, or empty)
            and `scores` (each with `time`, `score`, `verdict` and `label`).
    """
    report = {**report, "schema": SCHEMA}
    charts = _measure_charts.charts(report)
    pictures, remark = _report_pictures.draw(charts)
    legends = {name: _report_charts.legend(chart) for name, chart in charts.items()}
    folder = Path(__file__).parent
    style = folder.joinpath(_report_html.STYLE).read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        seconds=_report_html.seconds, clock=_report_html.clock, figure=_report_html.figure, shorter=_report_html.shorter
    )
    page = environment.from_string(folder.joinpath(TEMPLATE).read_text(encoding="utf-8")).render(
        report=report,
        pictures={name: _report_html.picture(svg) for name, svg in pictures.items()},
        legends=legends,
        remark=remark,
        style=Markup(style),
    )
    found = {".html": page, ".json": json.dumps(report, indent=1, sort_keys=True) + "\n"}
    for name, svg in pictures.items():
        if name.endswith("-wide"):
            found[f"-{name.removesuffix('-wide')}.svg"] = alone(svg, style, legends[name])
    return found, remark


def alone(svg: str, style: str, legend: list[tuple[str, str]]) -> str:
    """A picture as a file of its own: with the colours of the page, light and dark, and with its legend above."""
    width, height = (float(found) for found in re.findall(r'<svg[^>]*? width="([\d.]+)" height="([\d.]+)"', svg)[0])
    colours = style[: style.index("* {")]
    room = 24.0
    entries, at = [], 8.0
    for words, colour in legend:
        entries.append(
            Markup('<rect x="{}" y="6" width="11" height="11" rx="2" fill="{}"/>').format(at, colour)
            + Markup(
                '<text x="{}" y="16" font-size="12" fill="var(--soft)" font-family="system-ui, sans-serif">{}</text>'
            ).format(at + 16, words)
        )
        at += 16 + 7.6 * len(words) + 20
    inner = svg[svg.index("<svg") :].replace("<svg", f'<svg y="{room:g}"', 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height + room:g}" width="{width:g}" height="{height + room:g}">\n'
        f"<style>{colours} svg {{ background: var(--paper); }}</style>\n{''.join(entries)}\n{inner}\n</svg>\n"
    )
