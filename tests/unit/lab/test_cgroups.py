# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which control groups a host gets, on machines of all three kinds."""

from __future__ import annotations

from pathlib import Path

import cgroups
import pytest

HYBRID = """\
30 1 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset
32 30 0:28 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
UNIFIED = """\
24 18 0:22 / /proc rw - proc proc rw
27 21 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.mark.parametrize(
    ("mountinfo", "expected"),
    [
        pytest.param(
            HYBRID,
            [("cpuset", 1), ("memory", 1), ("systemd", 1), ("unified", 2)],
            id="hybrid: every controller and both of systemd's own",
        ),
        pytest.param(UNIFIED, [("", 2)], id="version 2 only"),
        pytest.param("24 18 0:22 / /proc rw - proc proc rw\n", [], id="none"),
        pytest.param("", [], id="empty"),
    ],
)
def test_hierarchies(mountinfo: str, expected: list[tuple[str, int]]) -> None:
    root = Path("/sys/fs/cgroup")
    found = [(hierarchy.mount, hierarchy.version) for hierarchy in cgroups.parse_hierarchies(mountinfo)]
    assert found == [(root / name, version) for name, version in expected]


def test_a_mount_made_twice_counts_once() -> None:
    assert len(cgroups.parse_hierarchies(UNIFIED + UNIFIED)) == 1


def test_a_new_cpuset_gets_the_limits_of_the_one_above(tmp_path: Path) -> None:
    (tmp_path / "cpuset.cpus").write_text("0-1")
    (tmp_path / "cpuset.mems").write_text("0")
    made = cgroups.prepare(cgroups.Hierarchy(tmp_path, 1, frozenset({"rw", "cpuset"})), "spark1")
    assert made == tmp_path / cgroups.PARENT / "spark1"
    assert [(made / name).read_text() for name in ("cpuset.cpus", "cpuset.mems")] == ["0-1", "0"]


def test_version_2_hands_controllers_down_before_the_group_is_made(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / cgroups.PARENT):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.controllers").write_text("memory\n")
    cgroups.prepare(cgroups.Hierarchy(tmp_path, 2, frozenset({"rw"})), "spark1")
    above = [tmp_path, tmp_path / cgroups.PARENT]
    assert [(folder / "cgroup.subtree_control").read_text() for folder in above] == ["+memory", "+memory"]
