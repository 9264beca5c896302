# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks one host all that a status shows in one task: what comes between tasks costs more time than the questions."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.action.rollout_lock import controller, is_gone


class ActionModule(ActionBase):
    """A question that fails is a result like any other; a host that cannot be reached is unreachable as ever."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._variables = task_vars or {}
        asked = {name: value for name, value in self._task.args.items() if value is not None}
        result |= {"changed": False, "watch": self._ask("watch_info", asked, "base_dir")}
        if asked.get("engine"):
            result["engine"] = engine = self._ask("engine_info", asked, "base_dir", "port")
            # A rank behind another one has no port of its own.
            if engine.get("running") and not (engine.get("current") or {}).get("rank"):
                options = ("port", "interval_seconds", "proxy_copy_header")
                result["metrics"] = self._ask("copy_metrics", asked, *options)
        if asked.get("proxy"):
            result["proxy"] = self._ask("proxy_info", asked)
            result["hold"] = self._ask("proxy_hold", asked, "socket")
        if asked.get("keeper"):
            result["journal"] = journal = self._ask("rollout_journal", asked, "folder")
            if lock := journal.get("lock"):
                gone = is_gone(lock.get("controller") or {}, controller(os.getppid()))
                seen = self._ask("rollout_lock", {**asked, "state": "seen", "gone": gone}, "folder", "state", "gone")
                journal["stale"] = seen.get("stale", "")
        return result

    def _ask(self, module: str, asked: dict[str, Any], *options: str) -> dict[str, Any]:
        """The module's result, with those of the options that were given."""
        arguments = {name: asked[name] for name in options if asked.get(name) is not None}
        found = self._execute_module(
            module_name=f"gb10.vllm.{module}", module_args=arguments, task_vars=self._variables
        )
        return {
            name: value for name, value in found.items() if not name.startswith("_ansible") and name != "invocation"
        }
