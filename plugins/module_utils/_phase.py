# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine says about where its start is, from its own log lines.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
The texts were read in the log of vLLM 0.11 to 0.33; lines of unknown builds leave the phase where it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

# In the order in which a start goes through them; the last line that matches any of them wins.
_PHASES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("starting the container", re.compile(r"Started vllm\.service|Starting vllm\.service|Unable to find image")),
    (
        "importing",
        re.compile(r"vLLM API server version|non-default args|Automatically detected platform|torch/_library"),
    ),
    ("creating the engine", re.compile(r"Initializing a V\d (LLM )?engine|Resolved architecture")),
    ("joining the pair", re.compile(r"distributed_init_method|world_size=\d|rendezvous|waiting for all ranks", re.I)),
    ("loading weights", re.compile(r"Starting to load model|Loading (safetensors|weights)|Loading .*shards", re.I)),
    ("loaded weights", re.compile(r"Loading weights took|Model loading took")),
    ("compiling", re.compile(r"Dynamo bytecode|Compiling a graph|torch\.compile (takes|took)", re.I)),
    ("sizing the KV cache", re.compile(r"KV cache (size|memory)|GiB.* for KV cache|# GPU blocks", re.I)),
    ("warming up", re.compile(r"Capturing CUDA graphs|Warming up|autotun|Graph capturing", re.I)),
    ("opening the port", re.compile(r"Starting vLLM (API )?server|init engine .*took", re.I)),
    ("ready", re.compile(r"Application startup complete")),
)

NAMES = tuple(name for name, _pattern in _PHASES)


def phase(lines: Iterable[str], before: str = "starting the container") -> str:
    """The phase that the newest line with a known text belongs to, else `before`."""
    found = before
    for line in lines:
        for name, pattern in _PHASES:
            if pattern.search(line):
                found = name
    return found


_NOISE = re.compile(
    r"^(\((?:APIServer|EngineCore|Worker)[^)]*\)\s*)+|^(INFO|WARNING|ERROR|DEBUG)\s+\d\d-\d\d \d\d:\d\d:\d\d\s*(\[[^\]]+\]\s*)?"
)


def short(line: str, width: int = 90) -> str:
    """A log line for a person: without the process prefix and the time stamp, cut to `width` characters."""
    before = None
    while before != line:
        before, line = line, _NOISE.sub("", line, count=1)
    line = line.strip()
    return line if len(line) <= width else line[: width - 1] + "…"
