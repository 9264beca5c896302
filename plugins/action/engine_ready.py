# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the module of the same name in slices, so that a person sees a heartbeat while an engine loads."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()
MODULE = "gb10.vllm.engine_ready"


class ActionModule(ActionBase):
    """One call of the module is one slice of `heartbeat_seconds`; which start it waits for is handed to the next one."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        variables = task_vars or {}
        host = variables.get("inventory_hostname", "?")
        arguments = dict(self._task.args)
        deadline = int(arguments.get("deadline_seconds", 0))
        if self._task.check_mode:
            return {**result, "changed": False, "verdict": "skipped", "reason": f"would wait for up to {deadline} s"}
        arguments.setdefault("started_at", time.time())
        while True:
            slice_result = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=variables)
            if slice_result.get("failed") or slice_result.get("unreachable"):
                return {**result, **slice_result}
            arguments["invocation"] = slice_result["invocation"]
            verdict = slice_result["verdict"]
            if verdict != "pending":
                break
            display.display(f"  {host}: {heartbeat(slice_result, deadline)}", color="bright blue")
        result.update(slice_result)
        if verdict == "pass":
            display.display(f"  {host}: loaded after {slice_result['seconds']:.0f} s", color="green")
            result.pop("log", None)
        else:
            result.update(failed=True, msg=explanation(host, slice_result))
        return result


def heartbeat(seen: dict[str, Any], deadline: int) -> str:
    """One line: phase, seconds of the budget, the engine's last words."""
    words = f": {seen['last_log_line']}" if seen["last_log_line"] else ""
    return f"{seen['phase']}, {seen['seconds']:.0f} of at most {deadline} s{words}"


_MEANING = {
    "fail": "the engine is not ready in time",
    "gone": "the engine's process ended",
    "error": "the engine could not be looked at",
}


def explanation(host: str, seen: dict[str, Any]) -> str:
    """What happened, the last probe, the last log lines, and where to look next."""
    log = "\n".join(f"    {line}" for line in seen.get("log", [])[-12:])
    return (
        f"{host} is not ready after {seen['seconds']:.0f} s ({seen['verdict']}: {_MEANING[seen['verdict']]}): "
        f"{seen['reason']}. Last phase: {seen['phase']}. Last log lines:\n{log}\n"
        f"More on the host: journalctl --unit vllm. It was not admitted"
    )
