# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides on the controller what a rollout has to do; the deciding itself is in plugin_utils/_rollout.py and _targets.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout, _targets


class ActionModule(ActionBase):
    """Needs no connection, so it also works with hosts that cannot be reached."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "engines": {"type": "list", "elements": "dict", "required": True},
                "admitted": {"type": "list", "elements": "str", "required": True},
                "target": {"type": "str", "choices": ["staged", "same", "stable", "resumed"], "default": "staged"},
                "only": {"type": "list", "elements": "str", "default": []},
                "to": {"type": "str", "default": ""},
                "legacy": {"type": "dict", "default": {}},
                "journal": {"type": "dict", "default": {}},
            }
        )
        journal = options["journal"]
        try:
            plan = _rollout.plan(
                [{**host, "legacy": options["legacy"].get(host["name"]) or {}} for host in options["engines"]],
                options["admitted"],
                _targets.past(journal.get("events") or [], journal.get("rollout", "")),
                _rollout.Wish(options["target"], options["only"], options["to"]),
            )
        except _targets.RefusedError as error:
            return {**result, "failed": True, "msg": str(error)}
        return {**result, "changed": False, **plan}
