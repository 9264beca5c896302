# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of what was measured: valid, complete by itself, with its knees, and deaf to what names may hold."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import html5lib
import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _measure_charts, _measure_page
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import measure_samples as samples

HOSTILE = "<script>alert(1)</script>\"'><img src=http://evil.example/x>{{ 7*7 }}"
CASES = {"tuned": samples.tuned, "compared": samples.compared, "scored": samples.scored}


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, str]]:
    found = {}
    for name, make in CASES.items():
        found[name], remark = _measure_page.files(make())
        assert remark == ""
    return found


@pytest.mark.parametrize("name", CASES)
def test_valid_and_complete_by_itself(made: dict[str, dict[str, str]], name: str) -> None:
    text = made[name][".html"]
    html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)
    assert "<script" not in text
    assert not re.findall(r"""(?:src|href|srcset|action)\s*=|url\(|@import""", text)
    assert {
        url for url in re.findall(r"https?://[^\s\"'<)]+", text) if not url.startswith("http://www.w3.org/")
    } == set()
    assert "default-src 'none'" in text
    assert len(text) < 1_000_000


def test_every_picture_is_a_file_with_colours_of_its_own(made: dict[str, dict[str, str]]) -> None:
    names = {end for files in made.values() for end in files if end.endswith(".svg")}
    assert names == {
        *(f"-{name}0.svg" for name in ("speed", "first", "next")),
        *(f"-{name}{place}.svg" for name in ("speed", "first", "next") for place in (1, 2)),
        "-versus-mix.svg",
        "-waits-mix.svg",
        "-scores.svg",
    }
    for files in made.values():
        for end, text in files.items():
            if end.endswith(".svg"):
                ET.fromstring(text)
                used = set(re.findall(r"var\((--\w+)\)", text))
                assert used <= set(re.findall(r"(--\w+):", text)), "light and dark are in the file"
                assert "prefers-color-scheme: dark" in text


def test_the_knees_are_marked() -> None:
    (report,) = [samples.tuned()]
    chart = _measure_charts.speed(report["sweeps"][0], 880)
    assert chart is not None
    (rings,) = [layer for layer in chart["layer"] if layer["mark"].get("size") == 260]
    assert {(row["name"], row["at"]) for row in rings["data"]["values"]} == {("short", 16), ("long", 8), ("mix", 12)}


def test_the_tables_have_every_point_and_the_reason(made: dict[str, dict[str, str]]) -> None:
    text = made["tuned"][".html"]
    assert text.count('<td data-l="remark">knee</td>') == 3
    assert "your own mix decides" in text
    both = made["compared"][".html"]
    assert "either machine can be restarted" in both
    assert "3.00 M tokens" in both
    assert made["scored"][".html"].count('data-l="verdict"') == 6


def test_names_are_text_and_nothing_else() -> None:
    report = samples.tuned()
    report["title"] = report["sweeps"][0]["host"] = report["sweeps"][0]["shapes"][0]["name"] = HOSTILE
    files, _remark = _measure_page.files(report)
    assert "<script" not in files[".html"]
    assert "<img" not in files[".html"]
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", files[".html"])[0]
    for end, text in files.items():
        if end.endswith(".svg"):
            ET.fromstring(text)


def test_a_sweep_of_which_nothing_can_be_judged_has_a_page_all_the_same() -> None:
    report = samples.tuned()
    sweep = report["sweeps"][0]
    for shape in sweep["shapes"]:
        for row in shape["rows"]:
            row.update(
                dict.fromkeys(("output_per_second", "lowest", "highest", "ttft_p50", "ttft_p99", "itl_p50", "itl_p99"))
            )
            row["why"] = "it did not end within 900 s"
        shape["knee"] = {"concurrency": None, "kind": "none", "output_per_second": None, "words": "at 4: too slow"}
    sweep["proposal"].update(max_num_seqs=None, reason="nothing could be judged", kind="none")
    files, _remark = _measure_page.files(report)
    assert "nothing could be judged" in files[".html"]
    assert not [end for end in files if end.endswith(".svg")]
