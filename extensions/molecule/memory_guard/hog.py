# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes memory within the engine's container and prints what came of it as one JSON object.

`hog.py POOL FLOOR_GIB STEP...`: each step GIB@RATE+SECONDS takes RATE GiB per second until it has GIB, and keeps them for so long. POOL is the
folder of the control group that must not run out. Ends when the engine ends, or when the memory was given back after the last step.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

GIB = 1 << 30
TAKE = """
import re, sys, time
chunk, taken = 16 << 20, []
for step in sys.argv[1:]:
    most, rate, hold = map(float, re.split("[@+]", step))
    began, had = time.monotonic(), len(taken)
    while len(taken) * chunk < most * 2**30:
        taken.append(b"x" * chunk)
        time.sleep(max(0.0, began + (len(taken) - had) * chunk / (rate * 2**30) - time.monotonic()))
    time.sleep(hold)
"""
LONGEST = 60.0


def number(path: Path) -> int:
    return int(path.read_text())


class Pool:
    """What is left below the limit of a control group, of either version."""

    def __init__(self, folder: str) -> None:
        path = Path(folder)
        new = (path / "memory.max").exists()
        self.limit = number(path / ("memory.max" if new else "memory.limit_in_bytes"))
        self.usage = path / ("memory.current" if new else "memory.usage_in_bytes")

    def left(self) -> int:
        return self.limit - number(self.usage)


def ssh_answers() -> float:
    """Seconds until the host's sshd greets."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", 22), timeout=10) as connection:
        if not connection.recv(64).startswith(b"SSH-"):
            raise RuntimeError("no greeting of sshd")
    return time.monotonic() - began


def engine_pid() -> int:
    shown = ["docker", "inspect", "--format={{.State.Pid}}", "vllm"]
    return int(subprocess.run(shown, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    folder, floor, steps = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    pool, engine = Pool(folder), Path(f"/proc/{engine_pid()}")
    since = time.time()
    began, crossed, gone, least, slowest_ssh, next_ssh = time.monotonic(), 0.0, 0.0, pool.left(), 0.0, 0.0
    hog = subprocess.Popen(["docker", "exec", "vllm", "python3", "-c", TAKE, *steps])
    while time.monotonic() - began < LONGEST:
        left, now = pool.left(), time.monotonic()
        least = min(least, left)
        if not crossed and left <= floor * GIB:
            crossed = now
        if not engine.exists():
            gone = now
            break
        if hog.poll() is not None:
            break
        if now >= next_ssh:
            slowest_ssh, next_ssh = max(slowest_ssh, ssh_answers()), now + 0.2
        time.sleep(0.002)
    hog.wait()
    print(
        json.dumps(
            {
                "since": since,
                "crossed": bool(crossed),
                "killed": bool(gone),
                "milliseconds": round(1000 * (gone - crossed)) if gone and crossed else None,
                "least_gib": round(least / GIB, 2),
                "slowest_ssh_seconds": round(slowest_ssh, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
