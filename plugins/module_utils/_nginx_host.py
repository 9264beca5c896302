# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""nginx on this host: test a candidate, put it in place, reload, and prove that the reload took effect.

Private to this collection: may change at any time. The I/O edge of the proxy modules; standard library only.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import (
    NginxError,
    Workers,
    classify,
    count_connections,
    error_line,
    included_files,
    redirect_logs,
    reload_is_proven,
    rewrite_includes,
)
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_process import (
    children,
    emergency,
    size,
    sockets,
    title,
)

POLL_SECONDS = 0.01
DRAIN_POLL_SECONDS = 0.05
SERVERS = "gb10-vllm/servers.conf"
SITE = "conf.d/gb10-vllm.conf"
KEYS = "gb10-vllm/keys.conf"
# Files that are for root only; nginx reads its configuration as root.
PRIVATE = frozenset({KEYS})
_BIGGEST_CONFIG_FILE = 1 << 20


class Nginx:
    """One nginx: its configuration folder, pid file and program."""

    def __init__(self, conf_dir: str, pid_file: str, program: str | None, reload_seconds: float = 10) -> None:
        self.conf_dir = Path(os.path.normpath(conf_dir))
        self.pid_file = Path(pid_file)
        self.program = program
        self.reload_seconds = reload_seconds

    def read(self, name: str) -> str | None:
        """The text of a file below the configuration folder, None when there is no such file."""
        try:
            return (self.conf_dir / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def is_open(self, name: str) -> bool:
        """Can others read a file that is for root only?"""
        return name in PRIVATE and bool((self.conf_dir / name).stat().st_mode & 0o077)

    @contextmanager
    def lock(self, seconds: float = 60) -> Iterator[None]:
        """One change at a time on this host. The kernel drops the lock when the holder dies, however it dies."""
        handle = os.open(self.conf_dir / Path(SERVERS).parent, os.O_RDONLY | os.O_DIRECTORY)
        deadline = time.monotonic() + seconds
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise NginxError(
                            f"another change of {self.conf_dir} holds the lock for more than {seconds:.0f} s; "
                            "look for a hanging proxy_server or proxy_config process on this host"
                        ) from None
                    time.sleep(POLL_SECONDS)
            yield
        finally:
            os.close(handle)

    def test(self, files: Mapping[str, str | None], traceless: bool = False) -> None:
        """Let nginx read a shadow of the configuration that contains these files (None: without that file).

        As with `nginx -t`, the log files it names are opened, so new ones are created; not so with `traceless`.
        """
        shadow = tempfile.mkdtemp(prefix="gb10-vllm-nginx-")
        try:
            self._shadow(shadow, files, traceless)
            command = [self.program or "nginx", "-T", "-c", f"{shadow}/nginx.conf"]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60, check=False)
            if done.returncode != 0:
                reason = error_line(done.stderr, shadow, str(self.conf_dir))
                raise NginxError(f"nginx refuses the new configuration, nothing was changed: {reason}")
            unused = sorted({f"{shadow}/{name}" for name, text in files.items() if text} - included_files(done.stdout))
            if unused:
                path = unused[0].replace(shadow, str(self.conf_dir))
                raise NginxError(
                    f"{self.conf_dir}/nginx.conf does not include {path}, so it would have no effect and nothing was "
                    f"changed; {_HOW_TO_INCLUDE.get(unused[0].removeprefix(shadow + '/').split('/')[0], '')}"
                )
        except FileNotFoundError as error:
            raise NginxError(f"{error.filename} is missing: run the role gb10.vllm.proxy, it installs nginx") from None
        except subprocess.TimeoutExpired:
            raise NginxError(
                "nginx did not finish testing the new configuration in 60 s, nothing was changed"
            ) from None
        finally:
            shutil.rmtree(shadow, ignore_errors=True)

    def _shadow(self, shadow: str, files: Mapping[str, str | None], traceless: bool) -> None:
        live = str(self.conf_dir)
        real = os.path.realpath(live)

        def rewrite(text: bytes) -> bytes:
            text = rewrite_includes(text, live, shadow)
            return redirect_logs(text, shadow) if traceless else text

        for folder, folders, names in os.walk(live):
            target = Path(shadow) / os.path.relpath(folder, live)
            target.mkdir(exist_ok=True)
            for name in [*names, *(name for name in folders if os.path.islink(f"{folder}/{name}"))]:
                _mirror(Path(folder) / name, target / name, (live, real), shadow, rewrite)
        for name, text in files.items():
            path = Path(shadow) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            if text is not None:
                path.write_bytes(rewrite(text.encode()))

    def apply(self, files: Mapping[str, str | None]) -> float | None:
        """Test, replace, reload, prove. Returns when the proof was there, None when nginx is not running.

        After a reload that cannot be proven the files are as before, and so is what nginx runs with.
        """
        self.test(files)
        before = {name: self.read(name) for name in files}
        try:
            for name, text in files.items():
                self._write(name, text)
            return self.reload()
        except BaseException:
            for name, text in before.items():
                self._write(name, text)
            # Harmless if nginx refused; needed if it was only slow and is about to run what was taken back.
            master = self.master()
            if master:
                os.kill(master, signal.SIGHUP)
            raise

    def _write(self, name: str, text: str | None) -> None:
        path = self.conf_dir / name
        if text is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        # The name must match neither `*.conf` nor `*`: nginx may read the folder at any moment.
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fchmod(stream.fileno(), _mode(name))
                os.fsync(stream.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def master(self) -> int | None:
        """The pid of the running master; None when the pid file is missing, empty or stale."""
        try:
            pid = int(self.pid_file.read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if title(pid).startswith("nginx: master process") else None

    def workers(self, master: int) -> Workers:
        """The workers of this master, by what they are doing."""
        return classify({pid: title(pid) for pid in children(master)})

    def reload(self) -> float | None:
        """Tell the master to reload and wait for the proof; NginxError with nginx's own words when it does not come."""
        master = self.master()
        if not master:
            return None
        before = self.workers(master)
        # The master writes its errors to its standard error, which nginx points at the error log.
        log = Path(f"/proc/{master}/fd/2")
        offset = size(log)
        os.kill(master, signal.SIGHUP)
        deadline = time.monotonic() + self.reload_seconds
        proofs = 0  # two samples in a row: the kernel may leave out a child in a list that changes while it is read
        while time.monotonic() < deadline:
            proofs = proofs + 1 if reload_is_proven(before, self.workers(master)) else 0
            if proofs == 2:
                return time.time()
            reason = emergency(log, offset, master)
            if reason:
                hint = _PORT_HINT if "bind()" in reason else ""
                raise NginxError(
                    f"nginx refused to reload and goes on as before, the files are restored: {reason}{hint}"
                )
            if self.master() != master:
                raise NginxError(f"the nginx master {master} ended during the reload, the files are restored")
            time.sleep(POLL_SECONDS)
        raise NginxError(
            f"nginx did not replace its workers within {self.reload_seconds:g} s after the reload, the files are "
            f"restored: {emergency(log, offset, master) or 'nothing in its error log'}"
        )

    def connections(self, servers: Collection[str]) -> dict[str, int]:
        """How many connections the workers, old ones too, hold to each of these servers right now."""
        master = self.master()
        inodes: set[int] = set()
        for pid in children(master) if master else ():
            inodes |= sockets(pid)
        tables = [path.read_text() for path in map(Path, ("/proc/net/tcp", "/proc/net/tcp6")) if path.exists()]
        return count_connections(tables, servers, inodes)

    def drain(self, servers: Collection[str], seconds: float) -> int:
        """Wait until no connection to these servers is left in two samples in a row; how many are left at the end."""
        deadline = time.monotonic() + seconds
        zeros = 0
        while True:
            left = sum(self.connections(servers).values())
            zeros = 0 if left else zeros + 1
            if zeros == 2 or time.monotonic() >= deadline:
                return left
            time.sleep(DRAIN_POLL_SECONDS)


_PORT_HINT = (
    ". Another process has this port; or the proxy is to listen on all addresses instead of one (or the reverse), "
    "which nginx cannot do while it runs: stop nginx at a quiet moment and run the role again, which starts it"
)

_HOW_TO_INCLUDE = {
    "conf.d": "add `include conf.d/*.conf;` to its http block",
    "modules-enabled": "add `include modules-enabled/*.conf;` to its first lines, outside every block",
    "gb10-vllm": "run the role gb10.vllm.proxy on this host first",
}


def _mode(name: str) -> int:
    return 0o600 if name in PRIVATE else 0o644


def _mirror(source: Path, copy: Path, tops: tuple[str, str], shadow: str, rewrite: Callable[[bytes], bytes]) -> None:
    """Files with something to rewrite are copied; everything else, keys for example, is only linked to."""
    if source.is_symlink():
        goal = os.path.normpath(os.path.join(os.path.realpath(source.parent), os.readlink(source)))
        inside = next((goal[len(top) :] for top in tops if goal.startswith(f"{top}/")), None)
        copy.symlink_to(goal if inside is None else shadow + inside)
    elif source.is_file():
        text = source.read_bytes() if source.stat().st_size <= _BIGGEST_CONFIG_FILE else b""
        rewritten = rewrite(text)
        if rewritten == text:
            copy.symlink_to(source)
        else:
            copy.write_bytes(rewritten)
