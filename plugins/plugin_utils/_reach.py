# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules so that a host that cannot be reached is a failure, which a rescue sees.

Private to this collection: may change at any time. Controller only.

Ansible runs neither `rescue` nor `always` for a host that became unreachable, and ends a `serial: 1` play and the playbook
with it. In a rollout a lost host has to be a result like any other: the rest is judged, restored where needed, and unlocked.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase


class ReachingAction(ActionBase):
    """Runs the module of the task's own name; `execute` runs any other."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        return {**result, **self.execute(None, dict(self._task.args), task_vars or {})}

    def execute(self, module: str | None, arguments: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        """The module's result; for a host that cannot be reached a failed one with `unreachable_host` true."""
        try:
            return dict(self._execute_module(module_name=module, module_args=arguments, task_vars=task_vars))
        except AnsibleConnectionFailure as error:
            host = self._task.delegate_to or task_vars.get("inventory_hostname", "the host")
            return {"failed": True, "unreachable_host": True, "msg": f"{host} could not be reached: {error}"}
