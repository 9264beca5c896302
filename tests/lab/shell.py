# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running commands, one line per step, locks, content hashes."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import TypeVar

_Result = TypeVar("_Result")
_builders: set[subprocess.Popen[bytes]] = set()
_builders_lock = threading.Lock()


class LabError(Exception):
    """Something a person has to know about; printed without a traceback."""


def say(text: str) -> None:
    print(f"lab: {text}", flush=True)


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Print the step with its seconds once it is done (or with its failure)."""
    begun = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"{title}: not done ({time.monotonic() - begun:.1f} s)")
        raise
    say(f"{title} ({time.monotonic() - begun:.1f} s)")


def run(command: Sequence[str], timeout: float = 60, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A short command; its output goes into the error message when it fails."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(command)}` did not end within {timeout:.0f} s") from error
    if check and done.returncode != 0:
        raise LabError(f"`{' '.join(command)}` ended with {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done


def build(
    command: Sequence[str],
    log: Path,
    timeout: float,
    env: dict[str, str] | None = None,
    progress: Callable[[str], str] | None = None,
) -> None:
    """A long command with its output in a log file; `progress` makes a line for people out of the log so far.

    It gets a process namespace of its own that ends with this process, also when this process is killed: nothing may
    go on writing to a cache that nobody owns any more.
    """
    guarded = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount-proc", "--kill-child=SIGKILL", *command]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            guarded,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
        )
        with _builders_lock:
            _builders.add(process)
        try:
            returncode = _wait(process, log, timeout, progress)
        finally:
            process.kill()
            process.wait()
            with _builders_lock:
                _builders.discard(process)
    if returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise LabError(f"{command[0]} ended with {returncode}, see {log}:\n{tail}")


def _wait(process: subprocess.Popen[bytes], log: Path, timeout: float, progress: Callable[[str], str] | None) -> int:
    deadline = time.monotonic() + timeout
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise LabError(f"a long step did not end within {timeout:.0f} s, see {log}")
        try:
            return process.wait(min(left, 15))
        except subprocess.TimeoutExpired:
            if progress is not None:
                say(progress(log.read_text(errors="replace")))


def together(*jobs: Callable[[], _Result]) -> list[_Result]:
    """Run the jobs side by side; the first failure (or Ctrl-C) ends the long commands of the others."""
    pool = ThreadPoolExecutor(max_workers=max(1, len(jobs)))
    futures = [pool.submit(job) for job in jobs]
    try:
        done, _pending = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        with _builders_lock:
            for process in _builders:
                process.kill()
        raise
    finally:
        pool.shutdown(wait=True)


def wait_until(condition: Callable[[], bool], timeout: float, what: str, interval: float = 0.1) -> None:
    """Poll a condition; the interval is only how often it is looked at."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{what}: not within {timeout:.0f} s")
        time.sleep(interval)


@contextlib.contextmanager
def lock(path: Path, shared: bool = False, timeout: float = 900) -> Iterator[None]:
    """A file lock that the kernel gives back when its owner dies, however that happens."""
    path.parent.mkdir(parents=True, exist_ok=True)
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another lab command is at work, waiting for {path}")

            def taken() -> bool:
                try:
                    fcntl.flock(handle, how | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True

            wait_until(taken, timeout, f"lock {path}")
        yield


def content_key(*parts: str | bytes) -> str:
    """A short name for a recipe: another recipe, another name."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:16]


def write_atomically(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    candidate = path.with_name(f".{path.name}.{os.getpid()}")
    candidate.write_text(text)
    candidate.chmod(mode)
    candidate.replace(path)


def remove_tree(path: Path) -> None:
    """Delete a folder; refuses when something is still mounted below it."""
    if not os.path.lexists(path):
        return
    prefix = f"{path}/"
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    busy = [mount for mount in mounts if mount == str(path) or mount.startswith(prefix)]
    if busy:
        raise LabError(f"{path} is not deleted, still mounted: {', '.join(busy)}")
    shutil.rmtree(path)


def remove_leftovers(folder: Path, pattern: str) -> None:
    """Half-built things of an interrupted run. Only called under the lab's lock."""
    for leftover in folder.glob(pattern):
        if leftover.is_dir():
            remove_tree(leftover)
        else:
            leftover.unlink()


def require_root() -> None:
    if os.geteuid() != 0:
        raise LabError(f"the lab makes containers and a bridge, so it needs root: sudo {' '.join(sys.argv)}")
