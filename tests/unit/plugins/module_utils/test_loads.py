# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is learned from starts, and what is expected of the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _loads


def entry(boot: str = "b1", **seconds: Any) -> dict[str, Any]:
    return {"r": {"boot": boot, "invocation": "i", "at": 1, **seconds}}


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, ("cold", None, None)),
        (entry("b0", cold=600.0, warm=90.0), ("cold", 600.0, 600.0)),
        (entry("b0", cold=80.0, warm=90.0), ("cold", 80.0, 90.0)),
        (entry("b0", warm=90.0), ("cold", None, None)),
        (entry("b1", cold=600.0, warm=90.0), ("warm", 90.0, 600.0)),
        (entry("b1", cold=600.0), ("warm", 600.0, 600.0)),
        (entry("b1", warm=90.0), ("warm", 90.0, 90.0)),
        (entry("b1"), ("warm", None, None)),
        (entry("b1", cold="slow", warm=True), ("warm", None, None)),
        (entry("b1", cold=-1), ("warm", None, None)),
        ({"r": "odd"}, ("cold", None, None)),
        ({"r": None, "other": {"cold": 5}}, ("cold", None, None)),
    ],
)
def test_expectation(known: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert _loads.expectation(known, "r", "b1") == expected


def test_a_life_of_starts() -> None:
    known: dict[str, Any] = {}
    for number, (seconds, boot, cold, warm) in enumerate(
        [
            (600.04, "b1", 600.0, None),
            (90, "b1", 600.0, 90),
            (95, "b1", 600.0, 95),
            (700, "b2", 700, 95),
            (80, "b2", 700, 80),
        ]
    ):
        known = _loads.learn(known, "r", seconds, boot, f"i{number}", 1000 + number)
        assert (known["r"].get("cold"), known["r"].get("warm")) == (cold, warm)
        assert (known["r"]["at"], known["r"]["boot"]) == (1000 + number, boot)


def test_the_same_start_counts_once() -> None:
    known = _loads.learn({}, "r", 600, "b1", "i1", 1)
    assert _loads.learn(known, "r", 900, "b1", "i1", 2) == known


def test_releases_are_kept_apart_and_the_oldest_go() -> None:
    known: dict[str, Any] = {"odd": None}
    for number in range(_loads.MOST_RELEASES + 5):
        known = _loads.learn(known, f"r{number:02}", 1 + number, "b1", "i", 1000 + number)
    assert len(known) == _loads.MOST_RELEASES
    assert {"odd", "r04"}.isdisjoint(known)
    assert (known["r05"]["cold"], known["r54"]["cold"]) == (6, 55)


def test_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "loads.json"
    assert _loads.read(str(path)) == {}
    known = _loads.learn({}, "r", 6, _loads.boot_id(), "i", 1)
    _loads.write(str(path), known)
    assert _loads.read(str(path)) == known
    assert path.stat().st_mode & 0o777 == 0o644
    assert _loads.expectation(known, "r", _loads.boot_id()).kind == "warm"


@pytest.mark.parametrize("content", ["", "{half", "[]", "null", '"x"'])
def test_a_damaged_file_is_an_empty_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "loads.json").write_text(content)
    assert _loads.read(str(tmp_path / "loads.json")) == {}
