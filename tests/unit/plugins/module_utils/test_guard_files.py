# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard keeps open: meters and groups, on files that stand for those of a host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._guard_files import Group, Meter, group_path, number_after

MEMINFO = """MemTotal:       127535308 kB
MemFree:         1048576 kB
MemAvailable:    9437184 kB
Buffers:          123456 kB
"""
GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        (b"MemFree: 12 kB\n", b"MemFree:", 12),
        (b"a 1\nMemFree:\t 0 kB\n", b"MemFree:", 0),
        (b"123\n", b"", 123),
        (b"MemFree: kB", b"MemFree:", -1),
        (b"MemTotal: 1", b"MemFree:", -1),
        (b"", b"", -1),
    ],
)
def test_number_after(text: bytes, key: bytes, expected: int) -> None:
    buffer = bytearray(text.ljust(64, b"9"))
    assert number_after(buffer, key, len(text)) == expected


def test_the_memory_of_a_host_is_read_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "meminfo"
    path.write_text(MEMINFO)
    meter = Meter(str(path))
    assert (meter.available, meter.free) == (9 * GIB, GIB)
    path.write_text(MEMINFO.replace("9437184", "   1024"))
    assert meter.read() == 1 << 20


def test_a_file_that_says_nothing_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "meminfo"
    path.write_text("MemTotal: 1 kB\n")
    with pytest.raises(OSError, match="no MemAvailable"):
        Meter(str(path))


@pytest.mark.parametrize(
    ("limit", "usage"), [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")]
)
def test_the_memory_of_a_group(tmp_path: Path, limit: str, usage: str) -> None:
    (tmp_path / limit).write_text(f"{3 * GIB}\n")
    (tmp_path / usage).write_text(f"{GIB}\n")
    meter = Meter(cgroup=str(tmp_path))
    assert (meter.available, meter.free) == (2 * GIB, 2 * GIB)
    (tmp_path / usage).write_text(f"{4 * GIB}\n")
    assert meter.read() == 0


def test_processes_are_killed_one_by_one(tmp_path: Path) -> None:
    """Control groups of version 1 have no cgroup.kill."""
    sleepers = [subprocess.Popen(["sleep", "60"]) for _each in range(3)]
    (tmp_path / "cgroup.procs").write_text("".join(f"{sleeper.pid}\n" for sleeper in sleepers))
    group = Group(str(tmp_path))
    assert group.populated()
    group.kill()
    assert [sleeper.wait(10) for sleeper in sleepers] == [-9, -9, -9]
    (tmp_path / "cgroup.procs").write_text("")
    assert not group.populated()
    group.kill()
    group.close()


def test_all_are_killed_at_once(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "cgroup.kill").write_text("")
    group = Group(str(tmp_path))
    group.kill()
    assert (tmp_path / "cgroup.kill").read_text() == "1"


ID = "e4397ce28fc3"


@pytest.mark.parametrize(
    ("cgroup", "folders", "expected"),
    [
        # Version 2.
        (
            f"0::/system.slice/docker-{ID}.scope\n",
            [f"system.slice/docker-{ID}.scope"],
            f"system.slice/docker-{ID}.scope",
        ),
        # A process of a nested group: all of the container is meant.
        (f"0::/docker-{ID}.scope/init\n", [f"docker-{ID}.scope/init", f"docker-{ID}.scope"], f"docker-{ID}.scope"),
        # Version 1 beside an empty version 2.
        (f"4:memory:/docker/{ID}\n0::/system.slice/docker.service\n", [f"memory/docker/{ID}"], f"memory/docker/{ID}"),
        (f"9:name=systemd:/docker/{ID}\n0::/\n", [f"systemd/docker/{ID}"], f"systemd/docker/{ID}"),
        # Both: the one that can be killed at once.
        (f"4:memory:/{ID}\n0::/{ID}\n", [f"memory/{ID}", f"unified/{ID}"], f"unified/{ID}"),
        # Never a group that is not the engine's own.
        ("4:memory:/\n0::/init.scope\n", ["memory", "init.scope", "."], ""),
        (f"0::/{ID}\n", [], ""),
        ("", [], ""),
    ],
)
def test_group_path(tmp_path: Path, cgroup: str, folders: list[str], expected: str) -> None:
    for folder in folders:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "cgroup.procs").touch()
    assert group_path(cgroup, ID, str(tmp_path)) == (f"{tmp_path}/{expected}" if expected else "")


def test_without_a_name_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    assert group_path("0::/\n", "", str(tmp_path)) == ""
