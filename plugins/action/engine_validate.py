# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks one engine host's variables on the controller; the rules are in plugin_utils/_site.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _mods, _pydantic, _site


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
                "host": {"type": "str", "required": True},
                "engines": {"type": "list", "elements": "str", "required": True},
                "address": {"type": "str", "required": True},
                "link_address": {"type": "str", "required": True},
                "release": {"type": "dict", "required": True},
                "secret_names": {"type": "list", "elements": "str", "default": [], "no_log": False},
            }
        )
        values = {**options["release"], "address": options["address"], "link_address": options["link_address"]}
        found = _site.problems(options["host"], options["engines"], values)
        found += [
            f"environment name {name} on {options['host']} stands in vllm_secret_environment and in the engine's environment: "
            f"keep it in vllm_secret_environment only, the other one is written into a file that everybody may read"
            for name in options["secret_names"]
            if name in values["environment"]
        ]
        if isinstance(values["mods"], list):
            try:
                _mods.read_all(values["mods"])
            except _mods.ModError as error:
                found.append(f"vllm_{values['topology']}_mods of {options['host']}: {error}")
        if found:
            return {**result, "failed": True, "msg": "; ".join(found), "problems": found}
        return {
            **result,
            "changed": False,
            "entry": {
                "name": options["host"],
                "topology": values["topology"],
                "address": values["address"],
                "link_address": values["link_address"],
                "port": values["port"],
            },
        }
