# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes, sockets and addresses of this host, as far as the proxy modules need them.

Private to this collection: may change at any time. Reads only; standard library only.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import time
from pathlib import Path

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import error_line, split


def is_local(server: str) -> bool:
    """Is the address of this server one of this host's? The kernel uses an own address to reach itself."""
    address, port = split(server)
    if address.is_loopback:
        return True
    with socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), port))  # a datagram socket: nothing is sent
        except OSError:
            return False
        return bool(probe.getsockname()[0] == str(address))


def title(pid: int) -> str:
    """What a process calls itself; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def started(pid: int) -> float:
    """When a process was started, in seconds since the epoch; 0 when it is gone."""
    try:
        ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """The child processes of a process. The kernel may leave one out when another ends meanwhile: two lists have to agree."""
    seen = _children(pid)
    while (again := _children(pid)) != seen:
        seen = again
    return seen


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except ProcessLookupError:
        return []
    except FileNotFoundError:  # a kernel without that list, or the process is gone
        return [int(path.name) for path in Path("/proc").glob("[0-9]*") if _parent(path) == pid]


def _parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


def emergency(log: Path, offset: int, master: int) -> str:
    """What this master has written to its log since `offset` about why it cannot go on; empty if nothing."""
    if size(log) <= offset:
        return ""
    with log.open("rb") as stream:
        stream.seek(offset)
        lines = stream.read().decode(errors="replace").splitlines()
    # Only [emerg]: an [alert] about a dying worker says nothing about the reload.
    own = [line for line in lines if f" {master}#" in line and "[emerg]" in line]
    return error_line("\n".join(own)) if own else ""


def size(log: Path) -> int:
    """The size of a log file; 0 for a pipe, a terminal or a socket, which cannot be read a second time."""
    try:
        status = log.stat()
    except OSError:
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def sockets(pid: int) -> set[int]:
    """The inodes of the sockets that a process holds."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            match = re.fullmatch(r"socket:\[([0-9]+)\]", os.readlink(entry.path))
            if match:
                found.add(int(match[1]))
    except (FileNotFoundError, ProcessLookupError):
        pass  # the worker ended, or closed a socket, while it was looked at: its other sockets count in the next sample
    return found
