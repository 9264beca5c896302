# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides on the controller what a rollout has to do; the deciding itself is in plugin_utils/_rollout.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout


class ActionModule(ActionBase):
    """Needs no connection, so it also works with hosts that cannot be reached."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "engines": {"type": "list", "elements": "dict", "required": True},
                "admitted": {"type": "list", "elements": "str", "required": True},
                "target": {"type": "str", "choices": ["staged", "previous"], "default": "staged"},
            }
        )
        engines = options["engines"]
        try:
            if options["target"] == "previous":
                targets = _rollout.rollback_targets(engines)
            else:
                targets = {
                    e["name"]: {"id": e["staged"]["id"], "topology": e["staged"]["manifest"]["topology"]}
                    for e in engines
                }
            plan = _rollout.decide(
                [_rollout.engine_from_facts(e, targets[e["name"]], options["admitted"]) for e in engines]
            )
        except _rollout.RefusedError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, **plan.as_dict()}
