# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a report as a browser reads it: valid, complete by itself, and deaf to what journals may hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import html5lib
import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _report, _report_charts, _report_html, _report_pictures
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import report_samples as samples

HOSTILE = "<script>alert(1)</script>\"'><img src=http://evil.example/x>{{ 7*7 }}"
TRACES = {"spark1": samples.traces("spark1", 21, 118), "spark2": samples.traces("spark2", 18, 131)}
MANY = [f"spark{number:02d}" for number in range(64)]
CASES: dict[str, dict[str, Any]] = {
    "switch": samples.history(samples.switch(), earlier=samples.earlier()),
    "rolling": samples.history(samples.rolling()),
    "failed": samples.history(samples.failed(), earlier=samples.earlier()),
    "killed": samples.history(samples.killed()),
    "many": samples.history(samples.rolling(MANY)),
    "empty": samples.history([]),
}


def page(history: dict[str, Any]) -> tuple[str, str]:
    report = _report.build(history, TRACES, {"proxy1": samples.counted()})
    charts = _report_charts.charts(report)
    pictures, remark = _report_pictures.draw(charts)
    return _report_html.page(
        report, pictures, {name: _report_charts.legend(c) for name, c in charts.items()}, remark
    ), remark


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    made = {name: page(history) for name, history in CASES.items()}
    assert {remark for _text, remark in made.values()} == {""}
    return {name: text for name, (text, _remark) in made.items()}


@pytest.mark.parametrize("name", CASES)
def test_valid_and_complete_by_itself(pages: dict[str, str], name: str) -> None:
    text = pages[name]
    html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    assert "<script" not in text
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=|url\(|@import""", text)
    # Names of formats, which nobody fetches.
    assert {
        url for url in re.findall(r"https?://[^\s\"'<)]+", text) if not url.startswith("http://www.w3.org/")
    } == set()
    assert "default-src 'none'" in text
    assert len(text) < 1_000_000


def test_pictures_follow_the_theme_of_the_page(pages: dict[str, str]) -> None:
    drawn = "".join(re.findall(r"<svg aria-hidden.*?</svg>", pages["switch"], re.DOTALL))
    assert drawn.count("<svg") == 8
    fixed = set(re.findall(r'(?:fill|stroke)="([^"]*)"', drawn)) - {"none", "transparent"}
    assert {colour for colour in fixed if not colour.startswith("var(--")} <= {"", "#000", "#ddd"}
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", pages["switch"]))
    for theme in re.split(
        r"@media \((?:prefers-color-scheme: dark|max-width)[^{]*",
        Path(_report_html.__file__).with_name(_report_html.STYLE).read_text(),
    )[:2]:
        assert used - set(re.findall(r"(--[a-z0-9]+):", theme)) == set()


def test_every_picture_has_its_figures_as_a_table(pages: dict[str, str]) -> None:
    document = html5lib.parse(pages["switch"], namespaceHTMLElements=False)
    for section in document.iter("section"):
        if section.find(".//figure") is not None:
            assert section.find(".//table") is not None
            assert section.find(".//figure/div").get("aria-label")


def test_words_of_a_journal_stay_words() -> None:
    events = [
        samples.begin([HOSTILE], verb=HOSTILE, topology=HOSTILE, words=HOSTILE, by=HOSTILE, serving=[HOSTILE]),
        samples.step(1, "withdrawn", HOSTILE),
        samples.step(2, "failed", HOSTILE, result="failed", reason=HOSTILE),
        samples.ended(3, "failed", reason=HOSTILE, serving=[HOSTILE]),
    ]
    text, remark = page(samples.history(events, rollout=HOSTILE, earlier=[{"rollout": HOSTILE, "events": events}]))
    assert remark == ""
    document = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    assert [element.tag for element in document.iter() if element.tag in ("script", "img")] == []
    assert "{{ 7*7 }}" in text


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("exit 3", "vl-convert-python is missing"),
        ("echo no >&2; exit 1", "could not be drawn: no"),
        ("exec sleep 60", "TimeoutExpired"),
        ("echo x", "JSONDecodeError"),
    ],
)
def test_without_pictures_the_tables_are_there(tmp_path: Path, program: str, why: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    report = _report.build(CASES["switch"], TRACES, {})
    pictures, remark = _report_pictures.draw(_report_charts.charts(report), python=str(python), seconds=0.5)
    assert pictures == {}
    assert why in remark
    text = _report_html.page(report, pictures, {}, remark)
    assert "<figure" not in text
    assert remark.split(":")[0] in text
    assert "memory back" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.25 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (119.4, "119 s"),
        (150, "2 min 30 s"),
        (7380, "2 h 03 min"),
    ],
)
def test_lengths_for_people(value: float | None, text: str) -> None:
    assert _report_html.seconds(value) == text
