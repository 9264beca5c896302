# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of stable releases: what becomes one, and what the list keeps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _stable
from ansible_collections.gb10.vllm.plugins.modules import stable_release


def run(call: Any, base: Path, release: str, rollout: str, **more: Any) -> dict[str, Any]:
    """Make the release current, then note it."""
    if os.path.islink(base / "current"):
        os.unlink(base / "current")
    os.symlink(f"releases/{release}", base / "current")
    result: dict[str, Any] = call(stable_release, base_dir=str(base), release=release, rollout=rollout, **more)
    return result


def noted(base: Path) -> list[tuple[str, str]]:
    return [(entry["rollout"], entry["release"]) for entry in _stable.read(str(base))]


def test_notes(call: Any, tmp_path: Path) -> None:
    assert noted(tmp_path) == []
    assert run(call, tmp_path, "a", "1-cutover", check_mode=True)["changed"] is True
    assert noted(tmp_path) == []
    assert run(call, tmp_path, "a", "1-cutover")["changed"] is True
    assert run(call, tmp_path, "a", "1-cutover")["changed"] is False
    result = run(call, tmp_path, "b", "2-cutover")
    assert [entry["release"] for entry in result["stable"]] == ["a", "b"]
    assert run(call, tmp_path, "a", "3-rollback")["changed"] is True
    assert noted(tmp_path) == [("1-cutover", "a"), ("2-cutover", "b"), ("3-rollback", "a")]


def test_check_mode_before_anybody_has_switched_to_it(call: Any, tmp_path: Path) -> None:
    result = call(stable_release, check_mode=True, base_dir=str(tmp_path), release="a", rollout="1-cutover")
    assert result["changed"] is True
    assert noted(tmp_path) == []


def test_the_oldest_are_left_out(call: Any, tmp_path: Path) -> None:
    for number in range(5):
        run(call, tmp_path, f"r{number}", f"{number}-cutover", keep=3)
    assert [release for _rollout, release in noted(tmp_path)] == ["r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"release": "b", "rollout": "2"},
            "release b is not the current one of this host, that is a; nothing was noted",
        ),
        ({"release": "a", "rollout": "2", "keep": 1}, "keep is 1, must be 2 or more"),
    ],
)
def test_refused(call: Any, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    run(call, tmp_path, "a", "1-cutover")
    result = call(stable_release, base_dir=str(tmp_path), **options)
    assert result["failed"] is True
    assert message in result["msg"]
    assert noted(tmp_path) == [("1-cutover", "a")]


def test_a_damaged_list_is_not_an_empty_one(call: Any, tmp_path: Path) -> None:
    (tmp_path / "stable.json").write_text("{")
    assert "is not JSON" in run(call, tmp_path, "a", "1-cutover")["msg"]
