# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some virtual machines get their memory only when they want it, and until then their memory node shows a part of it.

Without a GPU vLLM takes its share from what the node shows at that moment, so the same share would be enough on one day and too little
on the next. The lab therefore wants, once, as much as its engines count on.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from pathlib import Path

from shell import say

NODE = Path("/sys/devices/system/node/node0/meminfo")
GIB = 1 << 30
# What the shares in inventories/lab count on.
WANTED = 14 * GIB
STEP = GIB // 4
# Touched by nobody: whatever else runs on the machine goes on.
LEFT = 3 * GIB


def figure(text: str, name: str) -> int:
    """A figure in bytes of /proc/meminfo, or of a memory node, whose lines begin with its name; 0 where it is missing."""
    found = re.search(rf"^(?:Node \d+ )?{name}: +(\d+) kB$", text, re.M)
    return int(found[1]) * 1024 if found else 0


def bring_online() -> None:
    """Touch memory until the node shows what the lab counts on, or there is no more to touch, and give it back."""

    def shown() -> int:
        return figure(NODE.read_text(), "MemTotal") if NODE.exists() else WANTED

    def machine(name: str) -> int:
        return figure(Path("/proc/meminfo").read_text(), name)

    before = shown()
    with contextlib.ExitStack() as touched:
        # A small machine that shows all it has is left alone.
        while shown() < min(WANTED, machine("MemTotal")) and machine("MemAvailable") > LEFT + STEP:
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE
            touched.enter_context(mmap.mmap(-1, STEP, flags=private))
    if shown() > before:
        say(f"the machine's memory node showed {before / GIB:.1f} GiB; used, it shows {shown() / GIB:.1f} GiB")
