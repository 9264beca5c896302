# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module that pauses: a file of its own, written when it has to be, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import watch_pause


def run(call: Any, folder: Path, state: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = call(watch_pause, state=state, folder=str(folder), **more)
    return result


def test_pauses_and_resumes(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "pause"
    assert run(call, folder, "seen") == {**run(call, folder, "seen"), "changed": False, "paused": "", "files": {}}
    assert run(call, folder, "paused", why="x", check_mode=True)["paused"] == "operator.json (an operator, x)"
    assert not folder.exists()
    assert run(call, folder, "paused", why="x")["changed"] is True
    assert json.loads((folder / "operator.json").read_text())["until"] is None
    assert run(call, folder, "paused", why="x")["changed"] is False
    assert run(call, folder, "paused", why="y")["changed"] is True
    assert run(call, folder, "paused", why="y", seconds=60)["changed"] is True
    assert run(call, folder, "paused", why="y", seconds=60)["changed"] is False
    assert run(call, folder, "seen")["paused"].startswith("operator.json for another ")
    (folder / "mine").touch()
    assert run(call, folder, "resumed", check_mode=True)["changed"] is True
    assert run(call, folder, "resumed")["paused"] == "mine (an operator's file)"
    assert run(call, folder, "resumed")["changed"] is False
    assert [path.name for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("until", "seconds", "enough"),
    [
        (None, None, True),
        (None, 100, False),
        (1100.0, None, False),
        (1100.0, 100, True),
        (1051.0, 100, True),
        (1050.0, 100, False),
        (1300.0, 100, False),
        ("x", 100, False),
    ],
)
def test_when_it_is_written_again(until: Any, seconds: int | None, enough: bool) -> None:
    there = {"until": until, "who": "w", "why": ""}
    assert watch_pause.is_enough(there, {"who": "w", "why": ""}, seconds, 1000.0) is enough


@pytest.mark.parametrize(("more", "text"), [({"name": "../x"}, "name is '../x'"), ({"seconds": 0}, "seconds is 0")])
def test_refuses(call: Any, tmp_path: Path, more: dict[str, Any], text: str) -> None:
    result = run(call, tmp_path, "paused", **more)
    assert result["failed"] is True
    assert text in result["msg"]


def test_an_operators_file_of_the_same_name_is_replaced(call: Any, tmp_path: Path) -> None:
    (tmp_path / "operator.json").touch()
    assert run(call, tmp_path, "paused", seconds=10)["changed"] is True
    assert json.loads((tmp_path / "operator.json").read_text())["who"] == "an operator"
