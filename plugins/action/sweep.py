# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls the module of the same name run by run, so that a person sees what a sweep of hours is doing."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.gb10.vllm.plugins.plugin_utils._reach import ReachingAction

display = Display()
TOTAL_SECONDS = 10800


class ActionModule(ReachingAction):
    """Each call of the module measures one run and keeps it, so nothing is lost with a connection."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = ActionBase.run(self, tmp, task_vars)
        variables, arguments = task_vars or {}, dict(self._task.args)
        if self._task.check_mode or arguments.get("state") == "ended":
            return {**result, **self.execute(None, arguments, variables)}
        host = str(self._task.delegate_to or variables.get("inventory_hostname", "?"))
        total = float(arguments.get("total_seconds") or TOTAL_SECONDS)
        began, changed = time.monotonic(), False
        arguments["slice_seconds"] = 1
        while True:
            seen = self.execute(None, arguments, variables)
            changed = changed or bool(seen.get("changed"))
            # What was put aside once must not be put aside again by the next slice.
            arguments["again"] = False
            spent = time.monotonic() - began
            if seen.get("failed"):
                return {**result, **seen, "changed": changed}
            if seen["last"]:
                display.display(f"  {host}: {heartbeat(seen, spent, total)}", color="bright blue")
            if seen["complete"] or spent >= total:
                return {**result, **seen, "changed": changed, "spent_seconds": round(spent, 1)}


def heartbeat(seen: dict[str, Any], spent: float, total: float) -> str:
    """One line: the last run, how many there are, the budget."""
    return (
        f"{seen['last']} ({seen['done']} of {seen['done'] + seen['left']} runs, {spent:.0f} s of at most {total:.0f} s)"
    )
