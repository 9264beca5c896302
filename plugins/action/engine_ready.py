# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks the module of the same name in slices, so that a person sees a heartbeat while an engine loads."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.gb10.vllm.plugins.plugin_utils._reach import ReachingAction

display = Display()
MODULE = "gb10.vllm.engine_ready"
# How long a host may give no answer: a load takes minutes, and a link that flaps or a docker that is slow says nothing about the engine.
LOST_SECONDS = 30
RETRY_SECONDS = 2


class ActionModule(ReachingAction):
    """One call of the module is one slice of `heartbeat_seconds`; which start it waits for is handed to the next one."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = ActionBase.run(self, tmp, task_vars)
        variables = task_vars or {}
        host = str(variables.get("inventory_hostname", "?"))
        arguments = dict(self._task.args)
        deadline = int(arguments.get("deadline_seconds", 0))
        if self._task.check_mode:
            return {**result, "changed": False, "verdict": "skipped", "reason": f"would wait for up to {deadline} s"}
        if not arguments.get("started_at"):
            # the clock starts with the first look, so what is seen is no whole load
            arguments.pop("release", None)
        seen: dict[str, Any] = {"seconds": 0.0, "phase": "unknown", "verdict": "pending"}
        while seen["verdict"] == "pending":
            seen = self.slice(host, arguments, variables, seen)
            if seen.get("failed"):
                return {**result, **seen}
            arguments.update(invocation=seen["invocation"], started_at=seen["started_at"])
            if seen["verdict"] == "pending":
                display.display(f"  {host}: {heartbeat(seen)}", color="bright blue")
        result.update(seen)
        if seen["verdict"] == "pass":
            display.display(f"  {host}: loaded after {seen['seconds']:.0f} s", color="green")
            result.pop("log", None)
        else:
            result.update(failed=True, msg=explanation(host, seen))
        return result

    def slice(
        self, host: str, arguments: dict[str, Any], variables: dict[str, Any], before: dict[str, Any]
    ) -> dict[str, Any]:
        """One slice, tried again for a while when the host cannot be reached or cannot say how its engine is."""
        lost = time.monotonic()
        while True:
            seen = self.execute(MODULE, dict(arguments), variables)
            reached = not seen.get("unreachable_host")
            gone = time.monotonic() - lost
            if reached and (seen.get("verdict") != "error" or gone >= LOST_SECONDS):
                return seen
            if gone >= LOST_SECONDS:
                reason = f"{seen['msg']}; tried for {gone:.0f} s, the engine itself may be well"
                unknown = {
                    "failed": True,
                    "unreachable_host": True,
                    "verdict": "error",
                    "failure": "unreachable",
                    "log": [],
                }
                return {**before, **unknown, "reason": reason, "msg": f"{reason}. Last seen: {before['phase']}"}
            what = seen["reason"] if reached else "no connection"
            display.display(f"  {host}: {what} for {gone:.0f} s, trying again", color="yellow")
            with contextlib.suppress(Exception):
                # a dead shared connection would answer for the host
                self._connection.reset()
            time.sleep(RETRY_SECONDS)


def heartbeat(seen: dict[str, Any]) -> str:
    """One line: phase, seconds of the budget, the engine's last words."""
    words = f": {seen['last_log_line']}" if seen["last_log_line"] else ""
    expected = f"expected {seen['expected_seconds']:.0f} s, " if seen.get("expected_seconds") else ""
    return f"{seen['phase']}, {seen['seconds']:.0f} s ({expected}at most {seen['deadline_seconds']} s){words}"


_MEANING = {
    "fail": "the engine is not ready in time",
    "gone": "the engine's process ended",
    "error": "the engine could not be looked at",
}


def explanation(host: str, seen: dict[str, Any]) -> str:
    """What happened, what to do, the last log lines, and where to look next."""
    advice = f"What to do: {seen['advice']}. " if seen.get("advice") else ""
    log = "\n".join(f"    {line}" for line in seen.get("log", [])[-12:])
    return (
        f"{host} is not ready after {seen['seconds']:.0f} s ({seen['verdict']}: {_MEANING[seen['verdict']]}): "
        f"{seen['reason']}. {advice}It was not admitted. Last phase: {seen['phase']}; "
        + (f"last log lines:\n{log}\n" if log else "it logged nothing. ")
        + "More on the host: journalctl --unit vllm"
    )
