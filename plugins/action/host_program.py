# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a program of the collection on the controller and has it copied to the host."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _host_program


class ActionModule(ActionBase):
    """The folder comes from Ansible's own module for files, the file by its own action for copies."""

    _VALID_ARGS = frozenset({"program", "dest"})
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _found, arguments = self.validate_argument_spec(
            {"program": {"type": "str", "required": True}, "dest": {"type": "path"}}
        )
        program = arguments["program"]
        dest = arguments["dest"] or f"/usr/local/lib/gb10-vllm/{program}.pyz"
        try:
            sources = _host_program.needed(Path(_host_program.__file__).parents[1] / "module_utils", program)
        except _host_program.ProgramError as error:
            raise AnsibleActionFail(str(error)) from error
        folder = self._execute_module(
            module_name="ansible.legacy.file",
            module_args={"path": os.path.dirname(dest), "state": "directory", "mode": "0755"},
            task_vars=task_vars,
        )
        if folder.get("failed"):
            return {**result, **folder}
        copied = self._copy(_host_program.pack(sources, program), dest, task_vars or {})
        changed = bool(folder.get("changed") or copied.get("changed"))
        return {**result, **copied, "changed": changed, "dest": dest, "modules": list(sources)}

    def _copy(self, content: bytes, dest: str, task_vars: dict[str, Any]) -> dict[str, Any]:
        with tempfile.NamedTemporaryFile(suffix=".pyz") as packed:
            packed.write(content)
            packed.flush()
            task = self._task.copy()
            task.args = {"src": packed.name, "dest": dest, "mode": "0755"}
            # Nobody reads the difference of two archives.
            task.diff = False
            action = self._shared_loader_obj.action_loader.get(
                "ansible.legacy.copy",
                task=task,
                connection=self._connection,
                play_context=self._play_context,
                loader=self._loader,
                templar=self._templar,
                shared_loader_obj=self._shared_loader_obj,
            )
            return dict(action.run(task_vars=task_vars))
