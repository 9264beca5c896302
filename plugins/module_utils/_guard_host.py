# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard finds out and has done on a host, while there is time for it.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _host, _memory_host
from ._guard_files import Group, group_path
from ._memory import holders

GIB = 1 << 30
# Beside the engine's share a start needs room for the device's context and for what grows before it is measured.
START_MARGIN = 3 * GIB
# Smaller files are not worth a system call each.
SMALLEST_FILE = 1 << 20


def unit_state(unit: str) -> dict[str, str]:
    wanted = "ActiveState,UnitFileState,InvocationID,MainPID,ControlGroup"
    done = _host.run(["systemctl", "show", unit, f"--property={wanted}"], timeout=20)
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def find_groups(unit: str, state: Mapping[str, str], container: str) -> list[Group]:
    """The engine's processes: the container's first, for they hold the memory; then the client that the unit runs."""
    paths = []
    if state.get("ActiveState") in ("active", "activating", "deactivating"):
        with contextlib.suppress(_host.HostError):
            found = _host.container_state(container)
            if found and found["pid"]:
                paths.append(group_path(_read(f"/proc/{found['pid']}/cgroup"), found["id"]))
        paths.append(group_path(_read(f"/proc/{state.get('MainPID', '0')}/cgroup"), unit))
    groups = []
    for path in filter(None, paths):
        with contextlib.suppress(OSError):
            groups.append(Group(path))
    return groups


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def checkpoint_folders(record: Mapping[str, Any]) -> list[str]:
    """Where on the host the model of a release lies, from its record. Pure."""
    model, mounts = str(record.get("model", "")), {}
    for volume in record.get("volumes", []):
        host, _separator, rest = str(volume).partition(":")
        mounts[rest.partition(":")[0].rstrip("/")] = host
    if not model.startswith("/"):
        home = mounts.get("/root/.cache/huggingface", "")
        return [f"{home}/hub/models--{model.replace('/', '--')}/blobs"] if home and model else []
    inside = max((target for target in mounts if f"{model}/".startswith(f"{target}/")), key=len, default=None)
    return [model if inside is None else mounts[inside] + model.removeprefix(inside)]


def share(record: Mapping[str, Any], total: int) -> int:
    """Bytes that the engine of a release asks for at its start; 0 when its record does not say. Pure."""
    words = [word for line in record.get("command", []) for word in line]
    for word, value in zip(words, [*words[1:], ""], strict=False):
        name, _separator, joined = str(word).partition("=")
        if name == "--gpu-memory-utilization":
            try:
                return round(float(joined or value) * total)
            except ValueError:
                return 0
    return 0


def drop_page_cache(folders: list[str]) -> str:
    """Give back the pages of the checkpoint, or of everything where it is not known. Says what was done."""
    count = size = 0
    for folder in folders:
        for name, length in _large_files(folder):
            with contextlib.suppress(OSError):
                file = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                finally:
                    os.close(file)
                count, size = count + 1, size + length
    if count:
        return f"the page cache of {count} checkpoint file(s), {size / GIB:.1f} GiB on the disk"
    Path("/proc/sys/vm/drop_caches").write_text("1\n")
    return "the whole page cache"


def _large_files(folder: str) -> list[tuple[str, int]]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file() and entry.stat().st_size >= SMALLEST_FILE:
                found.append((entry.path, entry.stat().st_size))
    return found


def processes(device: Mapping[int, int]) -> list[holders.Process]:
    """Like `_memory_host.processes`, but quick: resident pages instead of a walk through every process's page tables."""
    page, found = os.sysconf("SC_PAGE_SIZE"), []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            size = holders.own_bytes("", _read(f"/proc/{name}/statm"), page)
            taken = device.get(int(name), 0)
            if size or taken:
                comm, cgroup = _read(f"/proc/{name}/comm").strip(), _read(f"/proc/{name}/cgroup")
                found.append(holders.Process(int(name), comm, cgroup, size, taken))
    return found


def largest_consumers(count: int = 4) -> str:
    """Who holds the most, in words."""
    with contextlib.suppress(_host.HostError):
        found = holders.gather(processes(_memory_host.device_bytes()), _memory_host.container_names())
        return "; ".join(f"{each.held / GIB:.1f} GiB {each.words}" for each in found[:count])
    return "nobody could be asked"


def memory_total() -> int:
    return _memory_host.meminfo()["MemTotal"]
