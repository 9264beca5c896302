# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans a site's memory on the controller; the parts are in plugin_utils/_memory_*.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError
from ansible_collections.gb10.vllm.plugins.plugin_utils import _memory_plan, _memory_table, _memory_wishes, _pydantic


class ActionModule(ActionBase):
    """Needs no connection: everything it knows was read before."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        missing = _pydantic.missing_message()
        if missing:
            return {**result, "failed": True, "msg": missing}
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "dict", "required": True},
                "topology": {"type": "str", "choices": ["replicated", "split"], "default": "replicated"},
            }
        )
        hosts = options["hosts"]
        try:
            wishes = _memory_wishes.read({host["name"]: host.get("wishes") or {} for host in hosts})
            plan = _memory_plan.plan(hosts, wishes, options["topology"])
        except (PlanError, _memory_wishes.WishError) as error:
            return {
                **result,
                "failed": True,
                "msg": f"there is no memory plan: {error}",
                "key": getattr(error, "key", ""),
            }
        except (KeyError, TypeError) as error:
            return {
                **result,
                "failed": True,
                "msg": f"hosts do not hold what a plan needs: {type(error).__name__} {error}",
            }
        return {**result, "changed": False, **plan, "table": _memory_table.table(hosts, plan)}
