# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the mods of a release on the controller and hands everything to the module of the same name."""

from __future__ import annotations

import getpass
import os
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _mods


class ActionModule(ActionBase):
    """Adds the content of the mods and the user's name to the module's options."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        try:
            arguments["mods_content"] = _mods.read_all(arguments.get("mods") or [])
        except _mods.ModError as error:
            raise AnsibleActionFail(str(error)) from error
        arguments.setdefault("made_by", f"{getpass.getuser()}@{os.uname().nodename}")
        result.update(self._execute_module(module_name="gb10.vllm.release", module_args=arguments, task_vars=task_vars))
        return result
