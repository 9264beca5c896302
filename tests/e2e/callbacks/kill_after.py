# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For the stories only: kills ansible-playbook in the moment in which a write to the journal was acknowledged."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: kill_after
type: aggregate
short_description: Kill the controller after so many journal writes
description:
  - Counts the writes of M(gb10.vllm.rollout_journal) and of M(gb10.vllm.rollout_lock), and kills this ansible-playbook and its workers
    after the one that the environment variable E(KILL_AFTER) names. 0 never kills.
  - A run that ends by itself leaves the number of its writes in the file that E(KILL_COUNT_FILE) names.
requirements:
  - to be enabled
"""

# What writes to the journal, and the argument without which it only reads.
WRITERS = {"gb10.vllm.rollout_journal": "events", "gb10.vllm.rollout_lock": "event"}


def children() -> dict[int, list[int]]:
    """The processes of this machine by their parent."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # the name in parentheses may contain anything
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def descendants(root: int) -> list[int]:
    tree, found = children(), [root]
    for process in found:
        found += tree.get(process, [])
    return found[1:]


def power_off(playbook: int) -> None:
    """Workers are sessions of their own, so they are found by their parent; frozen first, so that none starts another."""
    for step in (signal.SIGSTOP, signal.SIGKILL):
        for process in descendants(playbook):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, step)
    os.kill(playbook, signal.SIGKILL)


class CallbackModule(CallbackBase):
    """Counts, and kills."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "kill_after"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.written = 0
        self.kill_after = int(os.environ.get("KILL_AFTER", "0"))

    def count(self, result: Any) -> None:
        writes = WRITERS.get(result.task.action)
        if writes and result.task.args.get(writes) and result.result.get("changed"):
            self.written += 1
            if self.written == self.kill_after:
                power_off(os.getpid())

    def v2_runner_on_ok(self, result: Any) -> None:
        if "results" not in result.result:
            self.count(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self.count(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        if file := os.environ.get("KILL_COUNT_FILE"):
            Path(file).write_text(str(self.written))
