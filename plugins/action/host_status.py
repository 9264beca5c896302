# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks one host all that a status shows. Whether the controller that holds the lock is still there, only a controller can say."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.action.rollout_lock import controller, is_gone


class ActionModule(ActionBase):
    """A question that fails is a result like any other; a host that cannot be reached is unreachable as ever."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        result |= self._execute_module(task_vars=task_vars)
        journal = result.get("journal") or {}
        if lock := journal.get("lock"):
            gone = is_gone(lock.get("controller") or {}, controller(os.getppid()))
            place = {"folder": self._task.args["folder"]} if self._task.args.get("folder") else {}
            known = {} if gone is None else {"gone": gone}
            seen = self._execute_module(
                module_name="gb10.vllm.rollout_lock",
                module_args={"state": "seen", **place, **known},
                task_vars=task_vars,
            )
            journal["stale"] = seen.get("stale", "")
        return result
