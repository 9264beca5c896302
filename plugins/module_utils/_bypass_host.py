# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host says of its connections and its files: /proc, the journal, folders. Reads only.

Private to this collection: may change at any time. Host-side, standard library only; who may is decided in ``_bypass``.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import _bypass, _host

PROC = Path("/proc")
# Code and data that others maintain; a site's own configuration is not in there.
SKIPPED_FOLDERS = {
    "site-packages",
    "dist-packages",
    "node_modules",
    "__pycache__",
    ".ansible",
    ".git",
    ".cache",
    "ssl",
    "alternatives",
}
# Endings of what a person or a program configures with; a file without an ending may be anything.
SUFFIXES = {
    *("", ".conf", ".cfg", ".cnf", ".ini", ".yml", ".yaml", ".json", ".toml", ".env", ".properties", ".xml", ".list"),
    *(".service", ".timer", ".socket", ".path", ".container", ".kube", ".sh", ".bash", ".py", ".js", ".ts", ".j2", ".local"),
}  # fmt: skip


@dataclass(frozen=True)
class Process:
    """A process that holds a connection. `command` has no options, because they may hold keys."""

    pid: int
    name: str
    command: str
    cgroup: str
    ansible: bool


def read(path: Path) -> str:
    """A small text of /proc; empty when its process has ended meanwhile."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _processes() -> Iterator[Path]:
    return (folder for folder in PROC.iterdir() if folder.name.isdigit())


def namespaces() -> dict[str, Path]:
    """One process of each network namespace, this host's own first: a container with a network of its own has other connections."""
    own = os.readlink(PROC / "self/ns/net")
    found = {own: PROC / "self"}
    for folder in _processes():
        try:
            found.setdefault(os.readlink(folder / "ns/net"), folder)
        except OSError:
            continue
    return found


def sockets(process: Path) -> list[_bypass.Socket]:
    """All TCP sockets of a process's network namespace."""
    return [socket for name in ("tcp", "tcp6") for socket in _bypass.read_sockets(read(process / "net" / name))]


def own_addresses(process: Path) -> set[_bypass.Address]:
    """Every address of this host, from the kernel's table of local routes and its list of IPv6 addresses."""
    lines = [line.split() for line in read(process / "net/fib_trie").splitlines()]
    local = [before[1] for before, line in zip(lines, lines[1:], strict=False) if line[:3] == ["/32", "host", "LOCAL"]]
    six = [line.split()[0] for line in read(process / "net/if_inet6").splitlines()]
    texts = local + [":".join(digits[start : start + 4] for start in range(0, 32, 4)) for digits in six]
    return {address for text in texts if (address := _bypass.parse_address(text))}


def holders(inodes: set[int]) -> dict[int, int]:
    """Process id by socket. A socket whose process has just ended is not in there."""
    wanted = {f"socket:[{inode}]": inode for inode in inodes}
    found: dict[int, int] = {}
    for folder in _processes() if wanted else ():
        try:
            for handle in os.scandir(folder / "fd"):
                inode = wanted.get(os.readlink(handle.path))
                if inode is not None:
                    found.setdefault(inode, int(folder.name))
        except OSError:
            continue
    return found


def process(pid: int) -> Process | None:
    """What a person needs to find it; None when it has ended."""
    folder = PROC / str(pid)
    name, arguments = read(folder / "comm").strip(), _arguments(pid)
    if not name:
        return None
    # The program, and its script if there is one.
    shown = [os.path.basename(arguments[0])] if arguments else [name]
    shown += [argument for argument in arguments[1:2] if not argument.startswith("-") and "/" in argument]
    return Process(pid, name, " ".join(shown), read(folder / "cgroup"), _is_ansible(pid))


def _arguments(pid: int) -> list[str]:
    return [part for part in read(PROC / str(pid) / "cmdline").split("\0") if part]


def _is_ansible(pid: int) -> bool:
    """Whether it is a probe of this collection or another task: itself or one of those that started it is Ansible's."""
    for _generation in range(4):
        line = " ".join(_arguments(pid))
        if "AnsiballZ_" in line or "&& sleep 0" in line or "/.ansible/tmp/" in line:
            return True
        parent = read(PROC / str(pid) / "stat").rpartition(")")[2].split()
        pid = int(parent[1]) if len(parent) > 1 else 0
        if pid < 2:
            break
    return False


def log_lines(unit: str, minutes: int, count: int) -> list[str]:
    """The unit's last log lines, each with its time in seconds since 1970 in front."""
    command = ["journalctl", f"--unit={unit}", f"--lines={count}", f"--since=@{time.time() - minutes * 60:.0f}"]
    return _host.run([*command, "--output=short-unix", "--no-pager", "--quiet"], check=False).stdout.splitlines()


@dataclass
class Files:
    """Reads files that may configure something, within limits; `limit` says in words which one ended it."""

    most: int
    most_bytes: int
    seconds: float
    seen: int = 0
    limit: str = ""

    def texts(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Path and text of each file. Links are not followed, and other file systems below a folder are left alone."""
        deadline = _host.Deadline(self.seconds)
        for path in self._walk(paths):
            if self.seen >= self.most:
                self.limit = f"{self.most} files were read, the rest was not (vllm_audit_files)"
                return
            if deadline.left <= 0:
                self.limit = (
                    f"{self.seen} files were read in {self.seconds:.0f} s, the rest was not (vllm_audit_files_seconds)"
                )
                return
            text = self._text(path)
            if text:
                yield path, text

    def _walk(self, paths: Iterable[str]) -> Iterator[str]:
        for top in paths:
            if os.path.isfile(top):
                yield top
                continue
            if not os.path.isdir(top):
                continue
            device = os.stat(top).st_dev
            for folder, folders, names in os.walk(top):
                folders[:] = sorted(name for name in folders if self._enters(os.path.join(folder, name), name, device))
                yield from (os.path.join(folder, name) for name in sorted(names) if _configures(name))

    @staticmethod
    def _enters(path: str, name: str, device: int) -> bool:
        if name in SKIPPED_FOLDERS or os.path.exists(os.path.join(path, "pyvenv.cfg")):
            return False
        try:
            return os.lstat(path).st_dev == device
        except OSError:
            return False

    def _text(self, path: str) -> str:
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or not 0 < status.st_size <= self.most_bytes:
                return ""
            data = Path(path).read_bytes()
        except OSError:
            return ""
        self.seen += 1
        return "" if b"\0" in data[:4096] else data.decode(errors="replace")


def _configures(name: str) -> bool:
    """What somebody has typed once (a shell's history) configures nothing."""
    if name.endswith("history"):
        return False
    return os.path.splitext(name)[1].lower() in SUFFIXES or name.startswith(".env")
