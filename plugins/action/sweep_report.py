# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what was measured as one page, its pictures and its data, on the controller; the parts are in plugin_utils/_measure_*.py."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.action.rollout_report import write
from ansible_collections.gb10.vllm.plugins.plugin_utils import _comparison, _measure_page


class ActionModule(ActionBase):
    """Needs no connection: everything it knows was measured before."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "title": {"type": "str", "required": True},
                "name": {"type": "str", "required": True},
                "sweeps": {"type": "list", "elements": "dict", "default": []},
                "copies": {"type": "int", "default": 0},
                "full_requests": {"type": "float", "default": 1.0},
                "scores": {"type": "list", "elements": "dict", "default": []},
                "record": {"type": "dict", "default": {}},
                "local_folder": {"type": "str", "default": ""},
            }
        )
        sweeps = options["sweeps"]
        comparison: dict[str, Any] = {}
        if options["copies"]:
            split = [sweep for sweep in sweeps if sweep["engine"]["topology"] == "split"]
            replicated = [sweep for sweep in sweeps if sweep["engine"]["topology"] != "split"]
            if not split or not replicated:
                return {**result, "failed": True, "msg": "a comparison needs a measurement of a copy and one of a pair"}
            comparison = _comparison.compare(replicated, split[0], options["copies"], options["full_requests"])
        report = {
            "title": options["title"],
            "time": max((sweep["ended"] or 0 for sweep in sweeps), default=0) or time.time(),
            "sweeps": sweeps,
            "comparison": comparison,
            "scores": options["scores"],
        }
        found = {**result, "changed": False, "comparison": comparison, "local": "", "remark": ""}
        found["table"] = _comparison.lines(comparison) if comparison else []
        if options["local_folder"]:
            files, found["remark"] = _measure_page.files(report)
            if options["record"]:
                files[".record.json"] = json.dumps(options["record"], indent=1, sort_keys=True) + "\n"
            try:
                found.update(self.keep(options["local_folder"], options["name"], files))
            except OSError as error:
                found.update(failed=True, msg=f"the report {options['name']} could not be written: {error}")
        return found

    def keep(self, local_folder: str, name: str, files: dict[str, str]) -> dict[str, Any]:
        """A relative folder begins where ansible-playbook was started."""
        folder = os.path.abspath(os.path.expanduser(local_folder))
        changed = False
        if not self._task.check_mode:
            os.makedirs(folder, exist_ok=True)
            for end, content in files.items():
                changed = write(f"{folder}/{name}{end}", content) or changed
        return {"changed": changed, "local": f"{folder}/{name}.html"}
