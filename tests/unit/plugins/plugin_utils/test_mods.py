# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mods as folders on the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _mods


def mod(folder: Path, **files: str) -> str:
    folder.mkdir(parents=True)
    (folder / "run.sh").write_text("echo\n")
    for name, text in files.items():
        (folder / name).write_text(text)
    return str(folder)


def test_read_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    mod(tmp_path / "b", patch="p")
    mod(tmp_path / "a")
    (tmp_path / "b" / "sub").mkdir()
    (tmp_path / "b" / "sub" / "tool").write_text("t")
    (tmp_path / "b" / "sub" / "tool").chmod(0o755)
    found = _mods.read_all(["~/b/", str(tmp_path / "a")])
    assert list(found) == ["b", "a"], "the order is the order in which they are run"
    assert found["b"] == {
        "patch": {"content": "p", "executable": False},
        "run.sh": {"content": "echo\n", "executable": False},
        "sub/tool": {"content": "t", "executable": True},
    }
    assert _mods.read_all([]) == {}


def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        with pytest.raises(_mods.ModError, match=f"{name} on the controller has no run.sh"):
            _mods.read_all([str(tmp_path / name)])
    with pytest.raises(_mods.ModError, match="two mod folders are called same"):
        _mods.read_all([mod(tmp_path / "x" / "same"), mod(tmp_path / "y" / "same")])
    binary = Path(mod(tmp_path / "binary"), "data")
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(_mods.ModError, match="binary/data of the mod is not a text file"):
        _mods.read_all([str(binary.parent)])
    monkeypatch.setattr(_mods, "MOST_BYTES", 1024 * 1024)
    with pytest.raises(_mods.ModError, match="holds more than 1 MiB; is it the right folder"):
        _mods.read_all([mod(tmp_path / "large", weights="x" * (1024 * 1024 + 1))])
