# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judges on the controller what came of a rollout; the judging itself is in plugin_utils/_rollout.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout


class ActionModule(ActionBase):
    """Needs no connection."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "plan": {"type": "dict", "required": True},
                "results": {"type": "dict", "required": True},
            }
        )
        outcome = _rollout.settle(options["plan"], options["results"])
        # "failed" in a result means that the task failed
        outcome["failed_hosts"] = outcome.pop("failed")
        return {**result, "changed": False, **outcome}
