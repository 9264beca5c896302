# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A release on the disk: written whole or not at all, once, and never changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.modules import release

OPTIONS: dict[str, Any] = {
    "topology": "replicated",
    "image": f"eugr/vllm@sha256:{'1' * 64}",
    "model": "m",
    "arguments": {"max-model-len": 2048, "removed": None},
    "expected_load_seconds": 60,
    "made_by": "ann@laptop",
    "mods_content": {
        "fix": {"run.sh": {"content": "echo\r\n", "executable": True}, "d/p": {"content": "p", "executable": False}}
    },
}


def stage(call: Any, base: Path, **changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = call(release, base_dir=str(base), **{**OPTIONS, **changes})
    return result


def test_written_once(call: Any, tmp_path: Path) -> None:
    first = stage(call, tmp_path)
    folder = Path(first["path"])
    assert first["changed"] is True
    assert folder == tmp_path / "releases" / first["id"]
    modes = {str(p.relative_to(folder)): oct(p.stat().st_mode & 0o777) for p in folder.rglob("*") if p.is_file()}
    assert modes == {
        "start": "0o755", "unit.conf": "0o644", "release.json": "0o644", "mods/fix/run.sh": "0o755", "mods/fix/d/p": "0o644",
    }  # fmt: skip
    assert (folder / "mods/fix/run.sh").read_bytes() == b"echo\r\n"
    assert (folder / "start").read_text() == first["start"]
    assert f"{tmp_path}/releases/{first['id']}/mods:" in first["start"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert first["diff"]["before_header"] == "no current release"
    assert first["diff"]["after"] == first["start"]

    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    second = stage(call, tmp_path)
    assert (second["changed"], second["id"], second["diff"]) == (False, first["id"], {"before": "", "after": ""})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_record(call: Any, tmp_path: Path) -> None:
    result = stage(call, tmp_path)
    record = json.loads((Path(result["path"]) / "release.json").read_text())
    assert (record["id"], record["made_by"]) == (result["id"], "ann@laptop")
    assert {name: record[name] for name in result["manifest"]} == result["manifest"]
    assert ["--max-model-len", "2048"] in record["command"]
    assert not any("removed" in word for line in record["command"] for word in line)


def test_who_and_when_are_not_in_the_id(call: Any, tmp_path: Path) -> None:
    assert stage(call, tmp_path, made_by="bob")["id"] == stage(call, tmp_path)["id"]


def test_check_mode_writes_nothing(call: Any, tmp_path: Path) -> None:
    result = stage(call, tmp_path, check_mode=True)
    assert result["changed"] is True
    assert result["start"]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda folder: (folder / "start").write_text("x"), "start"),
        (lambda folder: (folder / "start").chmod(0o644), "start"),
        (lambda folder: (folder / "start").write_bytes(b"\xff"), "start"),
        (lambda folder: (folder / "unit.conf").unlink(), "unit.conf"),
        (lambda folder: (folder / "mods/fix/d/p").write_text("q"), "mods/fix/d/p"),
        (lambda folder: (folder / "notes").write_text("q"), "notes"),
        (lambda folder: [(folder / name).write_text("q") for name in ("a", "unit.conf")], "a, unit.conf"),
    ],
    ids=["edited", "not executable", "binary", "removed", "mod", "added", "two"],
)
def test_edited_by_hand_is_refused(call: Any, tmp_path: Path, damage: Any, names: str) -> None:
    folder = Path(stage(call, tmp_path)["path"])
    damage(folder)
    result = stage(call, tmp_path)
    assert result["failed"] is True
    assert f"release {folder.name} on this host was edited by hand ({names})" in result["msg"]


def test_a_failed_write_leaves_nothing(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not when the disk is full in the middle."""
    write = _host.write_atomically

    def full(path: str, content: str, mode: int = 0o644) -> None:
        if path.endswith("release.json"):
            raise OSError(28, "No space left on device")
        write(path, content, mode)

    monkeypatch.setattr(_host, "write_atomically", full)
    assert "No space left" in stage(call, tmp_path)["msg"]
    assert os.listdir(tmp_path / "releases") == []


def test_diff_and_ran(call: Any, tmp_path: Path) -> None:
    old = stage(call, tmp_path)
    assert old["ran"] is False
    (tmp_path / "current").symlink_to(f"releases/{old['id']}")
    new = stage(call, tmp_path, model="n")
    assert (new["ran"], new["diff"]["before"], new["diff"]["before_header"]) == (
        False,
        old["start"],
        f"start of {old['id']}",
    )
    assert stage(call, tmp_path)["ran"] is True
    (tmp_path / "previous").symlink_to(f"releases/{new['id']}")
    assert stage(call, tmp_path, model="n")["ran"] is True


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image": "x:latest"}, "image 'x:latest' is not pinned by digest"),
        ({"arguments": {"port": 1}}, "engine option 'port' is set by the collection"),
        ({"environment": {"A": None}}, "environment name A has the value None"),
        ({"expected_load_seconds": 0}, "expected load is 0, but must be at least 1"),
        ({"topology": "both"}, "value of topology must be one of"),
    ],
)
def test_refused(call: Any, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    result = stage(call, tmp_path, **changes)
    assert result["failed"] is True
    assert message in result["msg"]
    assert os.listdir(tmp_path) == []
