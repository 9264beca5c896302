# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of a rollout as one page that needs nothing else: no network, no script, no second file.

Private to this collection: may change at any time. Reads only its own template beside this file.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

TEMPLATE, STYLE = "_report_page.html.j2", "_report_page.css"
NONE = "–"
TITLES = {"cutover": "Cutover to", "rollback": "Rollback to", "restart": "Restart as", "resume": "Resumed rollout to"}
STATES = {"ok": "ended well", "failed": "failed", "unfinished": "has not ended"}
PATHS = {"rolling": "one copy after the other", "switch": "all hosts at once", "none": "nothing to do"}


def seconds(value: Any) -> str:
    """A length of time for a person."""
    if value is None:
        return NONE
    value = float(value)
    if value == 0:
        return "0 s"
    if value < 10:
        return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def clock(value: Any, day: bool = False) -> str:
    """A moment, in UTC."""
    if value is None:
        return NONE
    moment = datetime.datetime.fromtimestamp(float(value), datetime.UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC" if day else "%H:%M:%S.%f")[: None if day else -3]


def gib(value: Any) -> str:
    return NONE if not value else f"{float(value) / 2**30:.2f} GiB"


def figure(value: Any, digits: int = 0) -> str:
    return NONE if value is None else f"{float(value):,.{digits}f}"


def counts(values: Mapping[str, int] | None) -> str:
    """`200: 41, 503: 2`"""
    return ", ".join(f"{name}: {count}" for name, count in sorted((values or {}).items())) or NONE


def shorter(text: str) -> Markup:
    """A digest by its first twelve digits, as people compare them; the whole of it is the title."""
    digest = re.fullmatch(r"(.*@sha256:[0-9a-f]{12})[0-9a-f]{52}", text)
    return (
        Markup('<code title="{}">{}…</code>').format(text, digest[1])
        if digest
        else Markup("<code>{}</code>").format(text)
    )


def picture(svg: str) -> Markup:
    """An SVG that fills what the page gives it and is one picture for a reader of the screen; the tables say what it shows."""
    svg = svg[svg.index("<svg") :]
    width = re.search(r'width="([\d.]+)"', svg)
    head = f'<svg aria-hidden="true" focusable="false" style="max-width:{width[1] if width else 880}px"'
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", svg, count=1)
    return Markup(head + svg[len("<svg") :])


def page(
    report: Mapping[str, Any],
    pictures: Mapping[str, str],
    legends: Mapping[str, Sequence[tuple[str, str]]],
    remark: str = "",
) -> str:
    """The whole page. `pictures` are SVGs by name, with their `legends`; `remark` says why there are none."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(seconds=seconds, clock=clock, gib=gib, figure=figure, counts=counts, shorter=shorter)
    folder = Path(__file__).parent
    drawn = {name: picture(svg) for name, svg in pictures.items()}
    return environment.from_string(folder.joinpath(TEMPLATE).read_text(encoding="utf-8")).render(
        report=report,
        pictures=drawn,
        legends=legends,
        remark=remark,
        style=Markup(folder.joinpath(STYLE).read_text(encoding="utf-8")),
        title=f"{TITLES.get(str(report['verb']), 'Rollout to')} {report['topology']}"
        if report["topology"]
        else "Rollout",
        state=STATES[str(report["state"])],
        how=PATHS.get(str(report["path"]), ""),
    )
