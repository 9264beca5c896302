# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard keeps open: the host's memory, and the engine's processes.

Private to this collection: may change at any time. Host-side, standard library only.

Looking and killing must work when there is no memory left: every file is open beforehand, is read into a buffer that is there
already, and no other program is needed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal

_DIGITS = range(ord("0"), ord("9") + 1)
_BUFFER = 8192
_CGROUPS = "/sys/fs/cgroup"
# While there are processes left, and only so often: one that is stuck in the kernel dies when it comes back.
_KILL_ROUNDS = 20


def number_after(buffer: bytearray, key: bytes, end: int) -> int:
    """The number after `key` within the first `end` bytes; -1 when it is not there. Makes no copy."""
    at = buffer.find(key, 0, end)
    if at < 0:
        return -1
    at += len(key)
    while at < end and buffer[at] not in _DIGITS:
        at += 1
    value, found = 0, False
    while at < end and buffer[at] in _DIGITS:
        value, found, at = value * 10 + buffer[at] - _DIGITS[0], True, at + 1
    return value if found else -1


class Meter:
    """MemAvailable and MemFree of the host, or, for tests, what is left below the limit of a control group."""

    def __init__(self, meminfo: str = "/proc/meminfo", cgroup: str = "") -> None:
        self._buffer = bytearray(_BUFFER)
        self._buffers = [self._buffer]
        names = [meminfo]
        if cgroup:
            names = [f"{cgroup}/memory.max", f"{cgroup}/memory.current"]
            if not os.path.exists(names[0]):
                names = [f"{cgroup}/memory.limit_in_bytes", f"{cgroup}/memory.usage_in_bytes"]
        self._files = [os.open(name, os.O_RDONLY | os.O_CLOEXEC) for name in names]
        self.free = 0
        self.available = self.read()

    def read(self) -> int:
        """Bytes available now; `free` is read with it. OSError when it cannot be read."""
        if len(self._files) == 2:
            self.free = self.available = max(0, self._number(self._files[0]) - self._number(self._files[1]))
            return self.available
        end = os.preadv(self._files[0], self._buffers, 0)
        available, free = (number_after(self._buffer, key, end) for key in (b"MemAvailable:", b"MemFree:"))
        if available < 0 or free < 0:
            raise OSError("there is no MemAvailable and MemFree in it")
        self.free, self.available = free * 1024, available * 1024
        return self.available

    def _number(self, file: int) -> int:
        return number_after(self._buffer, b"", os.preadv(file, self._buffers, 0))


class Group:
    """A control group whose processes can be counted and killed. It may vanish at any time: then it has none."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._buffer = bytearray(_BUFFER)
        self._buffers = [self._buffer]
        self._procs = os.open(f"{path}/cgroup.procs", os.O_RDONLY | os.O_CLOEXEC)
        self._kill = -1
        with contextlib.suppress(OSError):
            self._kill = os.open(f"{path}/cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)

    def populated(self) -> bool:
        try:
            return os.preadv(self._procs, self._buffers, 0) > 0
        except OSError:
            return False

    def kill(self) -> None:
        """SIGKILL to every process in it."""
        if self._kill >= 0:
            with contextlib.suppress(OSError):
                os.pwrite(self._kill, b"1", 0)
                return
        for _round in range(_KILL_ROUNDS):
            if not self._kill_each():
                return

    def _kill_each(self) -> bool:
        try:
            end = os.preadv(self._procs, self._buffers, 0)
        except OSError:
            return False
        pid = 0
        for at in range(end):
            byte = self._buffer[at]
            if byte in _DIGITS:
                pid = pid * 10 + byte - _DIGITS[0]
            elif pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                pid = 0
        return end > 0

    def close(self) -> None:
        for file in (self._procs, self._kill):
            if file >= 0:
                os.close(file)


def group_path(cgroup: str, inside: str, root: str = _CGROUPS) -> str:
    """The folder of a process's control group, from the text of its /proc/PID/cgroup; empty when there is none.

    Only a group whose path contains `inside` is taken: a process that moves must not make a guard kill the whole host. One that
    can be killed at once (version 2) is preferred.
    """
    found = []
    for hierarchy, controllers, path in re.findall(r"^(\d+):([^:\n]*):(/.*)$", cgroup, re.MULTILINE):
        parts = path.split("/")
        at = next((at for at, part in enumerate(parts) if inside and inside in part), 0)
        if not at:
            continue
        names = ["", "unified"] if hierarchy == "0" else [controllers.removeprefix("name=")]
        folders = (os.path.normpath("/".join([root, name, *parts[: at + 1]])) for name in names)
        found += [(hierarchy != "0", folder) for folder in folders if os.path.exists(f"{folder}/cgroup.procs")]
    return min(found)[1] if found else ""
