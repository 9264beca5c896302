# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When nothing may act by itself: files that pause, and files that do so no longer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _pause

NOW = 1000.0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "f (an operator's file)"),
        ("{", "f (an operator's file)"),
        ("[1]", "f (an operator's file)"),
        ("{}", "f"),
        ('{"until": null, "who": "ops", "why": "a test"}', "f (ops, a test)"),
        ('{"until": 1010, "who": "ops"}', "f for another 10 s (ops)"),
        ('{"until": 1000, "why": "to the second"}', "f for another 0 s (to the second)"),
        ('{"until": 999.9, "who": "ops"}', ""),
        ('{"until": "tomorrow"}', "f"),
        ('{"until": true}', "f"),
    ],
)
def test_one_file(tmp_path: Path, content: str, expected: str) -> None:
    (tmp_path / "f").write_text(content)
    assert _pause.paused(str(tmp_path), NOW) == expected


def test_each_file_pauses_by_itself(tmp_path: Path) -> None:
    (tmp_path / "rollout.json").write_text(json.dumps({"until": 900, "who": "a rollout"}))
    assert _pause.paused(str(tmp_path), NOW) == ""
    (tmp_path / "mine").touch()
    (tmp_path / "other").write_text(json.dumps({"until": 1100}))
    assert _pause.paused(str(tmp_path), NOW) == "mine (an operator's file); other for another 100 s"


def test_half_written_files_and_a_missing_folder_say_nothing(tmp_path: Path) -> None:
    (tmp_path / ".rollout.json.x1").write_text("{")
    assert _pause.paused(str(tmp_path), NOW) == ""
    assert _pause.paused(str(tmp_path / "none"), NOW) == ""


def test_what_cannot_be_read_pauses(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert _pause.paused(str(tmp_path), NOW) == "folder (an operator's file)"
    (tmp_path / "file").touch()
    assert "cannot be read" in _pause.paused(str(tmp_path / "file"), NOW)


@pytest.mark.parametrize(
    ("name", "good"), [("rollout.json", True), ("a", True), (".a", False), ("a/b", False), ("", False)]
)
def test_names(name: str, good: bool) -> None:
    assert bool(_pause.NAME.fullmatch(name)) is good
