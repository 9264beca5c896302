# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for a drain in slices, so that a person sees a heartbeat while requests end."""

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display
from ansible_collections.gb10.vllm.plugins.plugin_utils._reach import ReachingAction

display = Display()
# Seconds from one heartbeat to the next.
SLICE = 10


class ActionModule(ReachingAction):
    """The first call changes the list; further ones only wait on."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        variables, arguments = task_vars or {}, dict(self._task.args)
        budget = int(arguments.get("drain_seconds") or 0)
        # What is out of range is for the module to refuse.
        first = min(budget, SLICE) if budget > 0 else budget
        result = self.execute(None, {**arguments, "drain_seconds": first}, variables)
        while not result.get("failed") and result.get("drained") is False and result["waited_seconds"] < budget:
            left = result["connections"]
            display.display(
                f"  {result['msg'].split('; ')[0]}: {left} connections left after {result['waited_seconds']:.0f} of at most {budget} s",
                color="bright blue",
            )
            wait = max(1, min(SLICE, round(budget - result["waited_seconds"])))
            more = self.execute(None, {**arguments, "drain_seconds": wait}, variables)
            if more.get("failed"):
                return more
            waited = round(result["waited_seconds"] + more["waited_seconds"], 3)
            result.update(
                {name: more[name] for name in ("drained", "connections", "done_at", "msg")}, waited_seconds=waited
            )
        return result
