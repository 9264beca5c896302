# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guard's way to a kill when it gets no memory itself: `starved.py ARCHIVE`, the program that is installed; prints one JSON object.

One control group runs out of memory at 2 GiB per second. The guard that looks at it runs in another one, whose limit is set to what it
has once it watches: every further page is refused to it. Its two helping threads do not run, they are not needed for a kill.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

GIB = 1 << 30
TAKE = """
import sys, time
sys.stdin.readline()
taken, began = [], time.monotonic()
while len(taken) < 190:
    taken.append(b"x" * (16 << 20))
    time.sleep(max(0, began + len(taken) / 128 - time.monotonic()))
time.sleep(60)
"""
LOOKS_BEFORE = 20
NEW = Path("/sys/fs/cgroup/cgroup.controllers").exists()
ROOT = Path("/sys/fs/cgroup" if NEW else "/sys/fs/cgroup/memory")
LIMIT, USAGE = ("memory.max", "memory.current") if NEW else ("memory.limit_in_bytes", "memory.usage_in_bytes")


def group(name: str, limit: int) -> Path:
    path = ROOT / f"guard-{name}"
    path.mkdir(exist_ok=True)
    (path / LIMIT).write_text(str(limit))
    return path


def guard(archive: str, pool: Path, own: Path, hog: subprocess.Popen[bytes]) -> None:
    """Watch until the kill, in a process of its own."""
    (own / "cgroup.procs").write_text(str(os.getpid()))
    sys.path.insert(0, archive)
    from ansible_collections.gb10.vllm.plugins.module_utils._guard_files import Group
    from ansible_collections.gb10.vllm.plugins.module_utils._guard_settings import Settings
    from ansible_collections.gb10.vllm.plugins.module_utils._programs import memory_guard

    settings = Settings(
        warn_gib=1.5, floor_gib=1, kill_gib=0.4, free_gib=0.1, cgroup=str(pool), run_dir="/run", unit="none.service"
    )
    program = memory_guard.Program(settings)
    memory_guard.rehearse(settings)
    trouble = memory_guard.lock_memory()
    program.groups = [Group(str(pool))]
    looks, sleep, kill = 0, time.sleep, Group.kill

    def starve(pace: float) -> None:
        nonlocal looks
        looks += 1
        if looks == LOOKS_BEFORE:
            usage = int((own / USAGE).read_text())
            (own / LIMIT).write_text(str(usage))
            hog.stdin.write(b"go\n")  # type: ignore[union-attr]
            hog.stdin.flush()  # type: ignore[union-attr]
        sleep(pace if looks > LOOKS_BEFORE else 0.02)

    def killed(self: Group) -> None:
        began = time.monotonic()
        kill(self)
        ended, limit, usage = time.monotonic(), int((own / LIMIT).read_text()), int((own / USAGE).read_text())
        (own / LIMIT).write_text(str(GIB))
        result = {
            "lock": trouble,
            "room_bytes": limit - usage,
            "kill_milliseconds": round(1000 * (ended - began), 2),
            "milliseconds": round(1000 * (ended - (program.guard.crossed or 0))),
        }
        print(json.dumps(result), flush=True)
        os._exit(0)

    time.sleep, Group.kill = starve, killed  # type: ignore[method-assign]
    program.watch()


def main() -> int:
    pool, own = group("pool", 3 * GIB), group("own", GIB)
    hog = subprocess.Popen(
        [sys.executable, "-c", TAKE],
        stdin=subprocess.PIPE,
        preexec_fn=lambda: (pool / "cgroup.procs").write_text(str(os.getpid())),
    )
    child = os.fork()
    if child == 0:
        guard(sys.argv[1], pool, own, hog)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended = hog.wait(60)
    for path in (pool, own):
        path.rmdir()
    return 0 if (status, ended) == (0, -9) else 1


if __name__ == "__main__":
    sys.exit(main())
