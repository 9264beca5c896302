# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A control group per host, in every mounted hierarchy (v1, hybrid and v2 alike).

Without groups of their own two containers share one tree: the second comes up degraded and cannot be switched off.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from settings import SUFFIX
from shell import LabError, wait_until

PARENT = f"gb10-lab{SUFFIX}"


@dataclass(frozen=True)
class Hierarchy:
    mount: Path
    version: int
    options: frozenset[str]


def parse_hierarchies(mountinfo: str) -> list[Hierarchy]:
    """The mounted hierarchies, from the text of /proc/self/mountinfo."""
    found: dict[Path, Hierarchy] = {}
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        if not separator:
            continue
        kind, _source, options = after.split(" ", 2)
        if kind in ("cgroup", "cgroup2"):
            mount = Path(before.split(" ")[4])
            found[mount] = Hierarchy(mount, 2 if kind == "cgroup2" else 1, frozenset(options.split(",")))
    return list(found.values())


def group(hierarchy: Hierarchy, name: str) -> Path:
    return hierarchy.mount / PARENT / name


def hierarchies() -> list[Hierarchy]:
    found = parse_hierarchies(Path("/proc/self/mountinfo").read_text())
    if not found:
        raise LabError("no control group hierarchy is mounted below /sys/fs/cgroup: the lab's hosts cannot start")
    return found


def prepare(hierarchy: Hierarchy, name: str) -> Path:
    """Make the group (and its parent) usable for a process."""
    above = hierarchy.mount
    for path in (hierarchy.mount / PARENT, group(hierarchy, name)):
        if hierarchy.version == 2:
            _hand_down_controllers(above)
        path.mkdir(exist_ok=True)
        if "cpuset" in hierarchy.options:
            # A new cpuset is empty, and an empty one takes no process.
            for limit in ("cpuset.cpus", "cpuset.mems"):
                (path / limit).write_text((above / limit).read_text())
        above = path
    return above


def _hand_down_controllers(path: Path) -> None:
    for controller in (path / "cgroup.controllers").read_text().split():
        # One that cannot be handed down here is one that the hosts do without.
        with contextlib.suppress(OSError):
            (path / "cgroup.subtree_control").write_text(f"+{controller}")


def create(name: str) -> list[Path]:
    return [prepare(hierarchy, name) for hierarchy in hierarchies()]


def join(paths: list[Path]) -> None:
    """Move the calling process into the groups; what it starts from then on is born there."""
    for path in paths:
        (path / "cgroup.procs").write_text(str(os.getpid()))


def _inside(name: str) -> Iterator[Path]:
    """Every group of a host, the innermost first."""
    for hierarchy in hierarchies():
        for folder, _below, _files in os.walk(group(hierarchy, name), topdown=False):
            yield Path(folder)


def processes(name: str) -> set[int]:
    found: set[int] = set()
    for path in _inside(name):
        with contextlib.suppress(OSError):
            found.update(int(pid) for pid in (path / "cgroup.procs").read_text().split())
    return found - {0, os.getpid()}


def empty(name: str, timeout: float = 20) -> None:
    """End whatever still runs in the host's groups: the host started it, so it is the lab's."""

    def gone() -> bool:
        left = processes(name)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    wait_until(gone, timeout, f"end of the processes of {name}", interval=0.05)


def remove(name: str) -> None:
    empty(name)

    def gone() -> bool:
        for path in list(_inside(name)):
            with contextlib.suppress(OSError):
                path.rmdir()
        return not any(group(hierarchy, name).exists() for hierarchy in hierarchies())

    wait_until(gone, 10, f"removal of the control groups of {name}", interval=0.05)


def remove_parent() -> None:
    for hierarchy in hierarchies():
        with contextlib.suppress(OSError):
            (hierarchy.mount / PARENT).rmdir()
