# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the watchdog writes: each act with its reason, what it sees now, figures for a scraper, and what it must not forget.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host, _watchdog
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog_decide import Memory

# The older half goes when the log has grown to this.
MOST_BYTES = 1_000_000
NOTE, WARNING, ERROR = 5, 4, 3


class Files:
    """The watchdog's files below the two folders."""

    def __init__(self, state_dir: str, run_dir: str) -> None:
        self.log = f"{state_dir}/watchdog.jsonl"
        self.memory = f"{state_dir}/watchdog.memory.json"
        self.metrics = f"{state_dir}/metrics/watchdog.prom"
        self.state = f"{run_dir}/watchdog.json"
        self.pair_request = f"{run_dir}/pair-restart"
        for folder in (f"{state_dir}/metrics", run_dir):
            os.makedirs(folder, mode=0o755, exist_ok=True)

    def say(self, level: int, act: str, words: str, **more: Any) -> None:
        """One line for the journal and one for the log. A full disk must keep nobody from acting."""
        sys.stderr.write(f"<{level}>{act}: {words}\n")
        with contextlib.suppress(OSError):
            line = json.dumps({"time": round(time.time(), 3), "act": act, "words": words, **more})
            with open(self.log, "a", encoding="utf-8") as stream:
                stream.write(line + "\n")
                large = stream.tell() > MOST_BYTES
            if large:
                lines = Path(self.log).read_text(encoding="utf-8").splitlines(keepends=True)
                _host.write_atomically(self.log, "".join(lines[len(lines) // 2 :]))

    def remember(self, memory: Memory) -> None:
        """Before an act, or a watchdog that is killed in between would act twice."""
        _host.write_atomically(self.memory, json.dumps(asdict(memory), indent=2) + "\n")

    def remembered(self) -> Memory:
        """The memory of the run before; a file that cannot be read is none."""
        try:
            content = _host.read_json(self.memory) or {}
            return Memory(**{**content, "acts": tuple(content.get("acts", ()))})
        except (_host.HostError, OSError, TypeError):
            return Memory()

    def show(self, state: Mapping[str, Any]) -> None:
        """What it sees now, for people and for a scraper. Written at each look, so not flushed to the disk."""
        for path, content in ((self.state, json.dumps(state, indent=2) + "\n"), (self.metrics, prometheus(state))):
            with contextlib.suppress(OSError):
                Path(f"{path}.new").write_text(content)
                os.replace(f"{path}.new", path)


def prometheus(state: Mapping[str, Any]) -> str:
    """The state as the node exporter's textfile collector reads it. Pure."""
    verdicts = [
        f'gb10_vllm_watchdog_verdict{{verdict="{kind}"}} {int(kind == state["verdict"])}' for kind in _watchdog.VERDICTS
    ]
    lines = [
        "# HELP gb10_vllm_watchdog_verdict What the engine does, by the watchdog: 1 for what holds.",
        "# TYPE gb10_vllm_watchdog_verdict gauge",
        *verdicts,
    ]
    for name, words, value in (
        ("gave_up", "1 when the watchdog gave up restarting.", int(bool(state["gave_up"]))),
        ("paused", "1 while somebody keeps it from acting.", int(bool(state["paused"]))),
        ("withdrawn", "1 while the copy is withdrawn until it is proven.", int(state["copy"] == "withdrawn")),
        ("restarts_recent", "Restarts within its window.", state["restarts"]),
        ("look_time_seconds", "When it last looked.", state["time"]),
        ("completion_seconds", "How long its last one-token completion took.", state["completion_seconds"]),
    ):
        if value is not None:
            full = f"gb10_vllm_watchdog_{name}"
            lines += [f"# HELP {full} {words}", f"# TYPE {full} gauge", f"{full} {value}"]
    return "\n".join(lines) + "\n"
