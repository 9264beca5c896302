# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes one number into the variables of a host, on the controller."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _host_value


class ActionModule(ActionBase):
    """Needs no connection: the inventory is on the controller."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "inventory": {"type": "str", "required": True},
                "host": {"type": "str", "required": True},
                "name": {"type": "str", "required": True},
                "value": {"type": "int", "required": True},
            }
        )
        try:
            path = _host_value.place(options["inventory"], options["host"], options["name"])
            before = path.read_text() if path.exists() else ""
            after = _host_value.changed(before, options["name"], options["value"], str(path))
            if after != before and not self._task.check_mode:
                path.parent.mkdir(parents=True, exist_ok=True)
                replace(path, after)
        except (OSError, _host_value.ValueRefused) as error:
            return {**result, "failed": True, "msg": f"{options['name']} of {options['host']} was not written: {error}"}
        diff = {"before": before, "after": after, "before_header": str(path), "after_header": str(path)}
        return {**result, "changed": after != before, "path": str(path), "diff": diff}


def replace(path: Path, content: str) -> None:
    """In one piece, with the mode that the file had."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w") as stream:
        stream.write(content)
        os.fchmod(stream.fileno(), mode)
    os.replace(temporary, path.resolve())
