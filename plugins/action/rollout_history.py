# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the journals on the first proxy, and says what a report has to ask the other hosts; see plugin_utils/_report.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _report_questions


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        found = self._execute_module(module_args=dict(self._task.args), task_vars=task_vars or {})
        if not found.get("failed") and not found.get("skipped"):
            found["ask"] = _report_questions.questions(found["events"], found["now"])
        return {**result, **found}
