# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host can be asked and told: commands, units, containers, ports, memory, files.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of the modules.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

UNIT = "vllm.service"
_UNIT_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "UnitFileState",
    "NRestarts",
    "InvocationID",
    "MainPID",
    "Result",
    "ExecMainStatus",
    "ActiveEnterTimestampMonotonic",
    "NeedDaemonReload",
)


class HostError(RuntimeError):
    """A question to the host that could not be answered; the message says which and why."""


def run(command: list[str], timeout: float = 60, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command without a shell; HostError when it cannot be run, takes too long or (with check) fails."""
    try:
        # Log lines may be cut within a character, and nothing of that may end a look at the host.
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", timeout=timeout, check=False
        )
    except FileNotFoundError as error:
        raise HostError(f"{command[0]} is not installed on this host") from error
    except subprocess.TimeoutExpired as error:
        raise HostError(f"`{' '.join(command)}` did not end within {timeout:.0f} s") from error
    if check and done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()
        raise HostError(f"`{' '.join(command)}` failed ({done.returncode}): {reason[-1] if reason else 'no output'}")
    return done


def unit_state(unit: str = UNIT) -> dict[str, str]:
    """The properties of a unit that decide anything here; a unit that does not exist has LoadState not-found."""
    done = run(["systemctl", "show", unit, f"--property={','.join(_UNIT_PROPERTIES)}"])
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def container_state(name: str) -> dict[str, Any] | None:
    """The container of that name, running or not; None when there is none."""
    done = run(["docker", "inspect", "--type=container", name], check=False)
    if done.returncode != 0:
        if "No such" in done.stderr:
            return None
        raise HostError(f"docker cannot be asked for the container {name}: {done.stderr.strip()}")
    (inspected,) = json.loads(done.stdout)
    return {
        "id": inspected["Id"],
        "image": inspected["Config"]["Image"],
        "status": inspected["State"]["Status"],
        "pid": inspected["State"]["Pid"],
        "started": inspected["State"]["StartedAt"],
    }


def listening_ports(lines: Iterable[str]) -> set[int]:
    """Ports in state LISTEN from the lines of /proc/net/tcp or tcp6."""
    ports = set()
    for line in lines:
        fields = line.split()
        if len(fields) > 3 and fields[3] == "0A":
            ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def is_listening(port: int) -> bool:
    lines: list[str] = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        if os.path.exists(name):
            lines += Path(name).read_text().splitlines()
    return port in listening_ports(lines)


def memory_available_bytes() -> int:
    """MemAvailable of /proc/meminfo; on a GB10 the GPU allocates from this same memory."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise HostError("/proc/meminfo has no MemAvailable")


def last_log_lines(count: int, since_seconds: float | None = None, unit: str = UNIT) -> list[str]:
    """The unit's last log lines, newest last, without empty ones."""
    command = ["journalctl", f"--unit={unit}", f"--lines={count}", "--output=cat", "--no-pager", "--quiet"]
    if since_seconds is not None:
        command.append(f"--since=@{since_seconds:.0f}")
    return [line.rstrip() for line in run(command, check=False).stdout.splitlines() if line.strip()]


def read_json(path: str) -> dict[str, Any] | None:
    """A JSON file's object; None when there is no file; HostError when it is no JSON object."""
    try:
        content = json.loads(Path(path).read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise HostError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise HostError(f"{path} does not hold a JSON object")
    return content


def write_atomically(path: str, content: str, mode: int = 0o644) -> None:
    """Write beside the target, flush to the disk and rename: a reader sees the old file or the new one, never half."""
    folder = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "w") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make renames in a folder survive a power loss."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def link_atomically(target: str, path: str) -> None:
    """Point a symlink at another target in one step."""
    temporary = f"{path}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    os.symlink(target, temporary)
    os.rename(temporary, path)
    sync_folder(os.path.dirname(path))


def linked_release(base: str, link: str) -> str | None:
    """The id of the release that `current` or `previous` points to; None without the link."""
    try:
        return os.path.basename(os.readlink(f"{base}/{link}"))
    except FileNotFoundError:
        return None


class Deadline:
    """Seconds left of a budget, by the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self._started = time.monotonic()
        self._end = self._started + seconds

    @property
    def left(self) -> float:
        return self._end - time.monotonic()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._started

    def pause(self, seconds: float) -> None:
        """Wait for the next look, never beyond the end."""
        time.sleep(max(0.0, min(seconds, self.left)))
