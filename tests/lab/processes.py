# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes the lab started, remembered so that a recycled process id is never mistaken for one of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

from shell import wait_until, write_atomically


def start_time(stat: str) -> int:
    """Field 22 of /proc/PID/stat; the command name before it may contain spaces and parentheses."""
    return int(stat.rpartition(")")[2].split()[19])


def state(stat: str) -> str:
    return stat.rpartition(")")[2].split()[0]


def read_stat(pid: int, proc: Path = Path("/proc")) -> str | None:
    try:
        return (proc / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None


def remember(path: Path, pid: int) -> None:
    stat = read_stat(pid)
    if stat is not None:
        write_atomically(path, json.dumps({"pid": pid, "start_time": start_time(stat)}) + "\n")


def remembered(path: Path, proc: Path = Path("/proc")) -> int | None:
    """The process id in the file if that very process still runs, else None."""
    try:
        record = json.loads(path.read_text())
        pid, born = int(record["pid"]), int(record["start_time"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    stat = read_stat(pid, proc)
    if stat is None or start_time(stat) != born or state(stat) in "ZX":
        return None
    return pid


def end(path: Path, number: signal.Signals = signal.SIGKILL, timeout: float = 10) -> bool:
    """End the remembered process and wait until it is gone; True if there was one."""
    pid = remembered(path)
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        wait_until(lambda: remembered(path) is None, timeout, f"end of process {pid}", interval=0.02)
    path.unlink(missing_ok=True)
    return pid is not None
