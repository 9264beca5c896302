# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine whose memory comes only when it is wanted."""

from __future__ import annotations

import contextlib
from pathlib import Path

import machine_memory
import pytest
from machine_memory import GIB, STEP, WANTED


def node(total: int) -> str:
    return f"Node 0 MemTotal:       {total // 1024} kB\nNode 0 MemFree:        1024 kB\n"


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("MemTotal:       24684092 kB\nMemAvailable:   23836340 kB\n", "MemAvailable", 23836340 * 1024),
        (node(8 * GIB), "MemTotal", 8 * GIB),
        ("", "MemTotal", 0),
    ],
)
def test_figures(text: str, name: str, expected: int) -> None:
    assert machine_memory.figure(text, name) == expected


class Machine:
    """Shows more of its memory with each piece that is touched, up to a limit."""

    def __init__(self, path: Path, shown: int, limit: int) -> None:
        self.path, self.shown, self.limit, self.touched = path, shown, limit, 0
        path.write_text(node(shown))

    def mmap(self, _file: int, size: int, flags: int) -> contextlib.AbstractContextManager[None]:
        assert flags & machine_memory.mmap.MAP_POPULATE, "memory that nobody has touched does not come"
        self.touched += size
        assert self.touched <= 64 * GIB, "it never ends"
        self.shown = min(self.shown + size, self.limit)
        self.path.write_text(node(self.shown))
        return contextlib.nullcontext()


@pytest.mark.parametrize(
    ("shown", "limit", "touched"),
    [
        pytest.param(8 * GIB, 23 * GIB, WANTED - 8 * GIB, id="as much as is wanted, no more"),
        pytest.param(23 * GIB, 23 * GIB, 0, id="all is there"),
    ],
)
def test_it_is_touched_until_it_is_there(
    shown: int, limit: int, touched: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path / "meminfo", shown, limit)
    monkeypatch.setattr(machine_memory, "NODE", machine.path)
    monkeypatch.setattr(machine_memory.mmap, "mmap", machine.mmap)
    # However little this machine has at the moment.
    monkeypatch.setattr(machine_memory, "LEFT", -STEP)
    machine_memory.bring_online()
    assert machine.touched == touched


def test_what_others_need_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path / "meminfo", 8 * GIB, 8 * GIB)
    monkeypatch.setattr(machine_memory, "NODE", machine.path)
    monkeypatch.setattr(machine_memory.mmap, "mmap", machine.mmap)
    monkeypatch.setattr(machine_memory, "LEFT", 1 << 50)
    machine_memory.bring_online()
    assert machine.touched == 0
