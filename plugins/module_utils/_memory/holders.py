# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a host's memory, from the texts of /proc. Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .units import PlanError

_CONTAINER = re.compile(r"\b([0-9a-f]{64})\b")
_SESSION = re.compile(r"user-(\d+)\.slice/(session-\w+)\.scope")
_ACCOUNTED = (
    "MemFree",
    "Buffers",
    "Cached",
    "SwapCached",
    "AnonPages",
    "SReclaimable",
    "SUnreclaim",
    "PageTables",
    "KernelStack",
)


@dataclass(frozen=True)
class Process:
    """One process.

    Attributes:
        pid: its number on the host.
        name: its command's name.
        cgroup: text of its /proc/PID/cgroup.
        size: bytes of the host's memory that are its own (its part of shared pages included).
        device: bytes of GPU memory that the driver lists for it; on a GB10 they come from the same memory.
    """

    pid: int
    name: str
    cgroup: str
    size: int
    device: int = 0

    @property
    def held(self) -> int:
        """All memory of the host that comes back when it ends."""
        return self.size + self.device


@dataclass(frozen=True)
class Holder:
    """All processes of one unit or container.

    Attributes:
        name: ``unit`` or ``container NAME``, as a person would look for it.
        size: bytes, see ``Process.size``.
        device: bytes of GPU memory.
        process: command name of its largest process.
        pid: number of that process.
    """

    name: str
    size: int
    device: int
    process: str
    pid: int

    @property
    def held(self) -> int:
        """All memory of the host that comes back when it ends."""
        return self.size + self.device

    @property
    def words(self) -> str:
        """Name and largest process."""
        return f"{self.name}: {self.process}, pid {self.pid}"


def read_meminfo(text: str) -> dict[str, int]:
    """Every entry of /proc/meminfo in bytes.

    Raises:
        PlanError: MemTotal, MemFree or MemAvailable is not there.
    """
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[2] == "kB" and fields[1].isdigit():
            found[fields[0].rstrip(":")] = int(fields[1]) * 1024
    for key in ("MemTotal", "MemFree", "MemAvailable"):
        if key not in found:
            raise PlanError(f"/proc/meminfo has no {key}", key)
    return found


def read_node(text: str) -> tuple[int, int]:
    """Total and available bytes of one memory node, as an engine without a GPU counts them.

    Args:
        text: /sys/devices/system/node/nodeN/meminfo.
    """
    found = {key: int(size) * 1024 for key, size in re.findall(r"^Node \d+ ([\w()]+):\s+(\d+) kB$", text, re.MULTILINE)}
    parts = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
    return found["MemTotal"], sum(found[part] for part in parts)


def unaccounted(meminfo: Mapping[str, int]) -> int:
    """Bytes that no process and no known part of the kernel accounts for: on a GB10 mostly what the GPU's driver handed out."""
    return max(0, meminfo["MemTotal"] - sum(meminfo.get(key, 0) for key in _ACCOUNTED))


def own_bytes(rollup: str, statm: str, page: int) -> int:
    """Bytes of a process: proportional pages without the page cache, else resident minus shared pages.

    Args:
        rollup: text of /proc/PID/smaps_rollup, empty if it may not be read.
        statm: text of /proc/PID/statm.
        page: bytes of a page.
    """
    parts = dict(re.findall(r"^(Pss_Anon|Pss_Shmem):\s+(\d+) kB$", rollup, re.MULTILINE))
    if parts:
        return sum(int(value) for value in parts.values()) * 1024
    fields = statm.split()
    return max(0, int(fields[1]) - int(fields[2])) * page if len(fields) > 2 else 0


def owner(cgroup: str, containers: Mapping[str, str]) -> str:
    """The unit or container of a process.

    Args:
        cgroup: text of its /proc/PID/cgroup.
        containers: names of containers by their full id.
    """
    path = max((line.split(":", 2)[-1] for line in cgroup.splitlines()), key=len, default="/")
    container = _CONTAINER.search(path)
    if container:
        return f"container {containers.get(container[1], container[1][:12])}"
    session = _SESSION.search(path)
    if session:
        return f"{session[2]} of user {session[1]}"
    units = [part for part in path.split("/") if part.endswith((".service", ".scope"))]
    return units[-1] if units else path.rsplit("/", 1)[-1] or "no unit"


def gather(processes: Iterable[Process], containers: Mapping[str, str]) -> list[Holder]:
    """Processes summed by unit and container, the largest first."""
    groups: dict[str, list[Process]] = {}
    for process in processes:
        groups.setdefault(owner(process.cgroup, containers), []).append(process)
    holders = []
    for name, members in groups.items():
        largest = max(members, key=lambda process: process.held)
        size, device = sum(member.size for member in members), sum(member.device for member in members)
        holders.append(Holder(name, size, device, largest.name, largest.pid))
    return sorted(holders, key=lambda holder: (-holder.held, holder.name))


def peak(samples: Sequence[Sequence[Holder]]) -> list[Holder]:
    """The largest sample of each holder, the largest first."""
    best: dict[str, Holder] = {}
    for holder in (holder for sample in samples for holder in sample):
        if holder.name not in best or holder.held > best[holder.name].held:
            best[holder.name] = holder
    return sorted(best.values(), key=lambda holder: (-holder.held, holder.name))


def read_compute_apps(text: str) -> dict[int, int]:
    """GPU memory in bytes by process, from ``nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits``.

    The tool prints MiB; an entry that it does not know (``[N/A]``) is left out. This is the one figure of that tool that holds
    on a GB10: the device's total and free memory are not supported there.
    """
    found: dict[int, int] = {}
    for pid, size in re.findall(r"^\s*(\d+)\s*,\s*(\d+)\s*$", text, re.MULTILINE):
        found[int(pid)] = found.get(int(pid), 0) + int(size) * (1 << 20)
    return found
