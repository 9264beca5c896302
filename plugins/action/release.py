# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the mods of a release on the controller and hands everything to the module of the same name."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

# Mods are patches of a few kilobytes; a model folder named by mistake must not be read into memory.
MOST_BYTES = 4 * 1024 * 1024


class ActionModule(ActionBase):
    """Adds the content of the mods and the user's name to the module's options."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        arguments["mods_content"] = {}
        for folder in arguments.get("mods") or []:
            path = Path(os.path.expanduser(folder))
            arguments["mods_content"][path.name] = read_mod(path)
        arguments.setdefault("made_by", f"{getpass.getuser()}@{os.uname().nodename}")
        result.update(self._execute_module(module_name="gb10.vllm.release", module_args=arguments, task_vars=task_vars))
        return result


def read_mod(folder: Path) -> dict[str, dict[str, Any]]:
    """Every file of a mod: relative name to text and whether it is executable."""
    if not (folder / "run.sh").is_file():
        raise AnsibleActionFail(
            f"mod folder {folder} on the controller has no run.sh. Mods are named in vllm_replicated_mods and "
            f"vllm_split_mods; each is a folder whose run.sh is run in the container before the engine starts"
        )
    content: dict[str, dict[str, Any]] = {}
    size = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size += path.stat().st_size
        if size > MOST_BYTES:
            raise AnsibleActionFail(
                f"mod folder {folder} holds more than {MOST_BYTES // 1024 // 1024} MiB; is it the right folder?"
            )
        try:
            text = path.read_text()
        except UnicodeDecodeError as error:
            raise AnsibleActionFail(f"{path} of the mod is not a text file; mods are scripts and patches") from error
        content[str(path.relative_to(folder))] = {"content": text, "executable": os.access(path, os.X_OK)}
    return content
