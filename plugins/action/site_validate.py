# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks what has to fit together between the hosts of a site; the rules are in plugin_utils/_site.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _pydantic, _site


class ActionModule(ActionBase):
    """Needs no connection: nothing is touched before the variables are known to work."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        missing = _pydantic.missing_message()
        if missing:
            return {**result, "failed": True, "msg": missing}
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "hosts": {"type": "list", "elements": "dict", "required": True},
                "groups": {"type": "dict", "required": True},
            }
        )
        found = _site.site_problems(options["hosts"], options["groups"])
        if found:
            return {**result, "failed": True, "msg": "; ".join(found), "problems": found}
        return {**result, "changed": False}
