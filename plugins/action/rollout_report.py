# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the report of a rollout on the proxy and, where asked, on the controller; the parts are in plugin_utils/_report*.py."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import (
    _report,
    _report_charts,
    _report_html,
    _report_pictures,
)


def make(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str], str]:
    """The report, its files by the end of their names, and why there are no pictures."""
    report = _report.build(options["history"], options["traces"], options["proxies"])
    charts = _report_charts.charts(report)
    pictures, remark = _report_pictures.draw(charts)
    legends = {name: _report_charts.legend(chart) for name, chart in charts.items()}
    data = json.dumps(report, indent=1, sort_keys=True) + "\n"
    return report, {".report.json": data, ".html": _report_html.page(report, pictures, legends, remark)}, remark


def write(path: str, content: str) -> bool:
    """Write a file of the controller in one piece; whether it was another one before."""
    try:
        with open(path, encoding="utf-8") as stream:
            if stream.read() == content:
                return False
    except FileNotFoundError:
        pass
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".report.")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(content)
        os.fchmod(stream.fileno(), 0o644)
    os.replace(temporary, path)
    return True


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(
            argument_spec={
                "history": {"type": "dict", "required": True},
                "traces": {"type": "dict", "default": {}},
                "proxies": {"type": "dict", "default": {}},
                "folder": {"type": "path", "default": "/var/lib/gb10-vllm/rollouts"},
                "local_folder": {"type": "str", "default": ""},
            }
        )
        if not options["history"].get("rollout"):
            return {**result, "failed": True, "msg": "there never was a rollout, so there is nothing to report"}
        report, files, remark = make(options)
        summary = {key: report[key] for key in ("rollout", "state", "window_seconds", "seconds", "serving", "requests")}
        found = {**result, "changed": False, "summary": summary, "remark": remark, "local": "", "kept": ""}
        problems = []
        if not self._task.check_mode:
            for place in ("local", "kept"):
                try:
                    changed, found[place] = getattr(self, place)(options, report["rollout"], files, task_vars or {})
                    found["changed"] = found["changed"] or changed
                except OSError as error:
                    problems.append(str(error))
        if problems:
            found.update(
                failed=True, msg=f"the report of {report['rollout']} could not be written: {'; '.join(problems)}"
            )
        return found

    def local(
        self, options: dict[str, Any], rollout: str, files: dict[str, str], _variables: dict[str, Any]
    ) -> tuple[bool, str]:
        """On the controller; a relative folder begins where ansible-playbook was started."""
        if not options["local_folder"]:
            return False, ""
        folder = os.path.abspath(os.path.expanduser(options["local_folder"]))
        os.makedirs(folder, exist_ok=True)
        changed = [write(f"{folder}/{rollout}{end}", content) for end, content in files.items()]
        return any(changed), f"{folder}/{rollout}.html"

    def kept(
        self, options: dict[str, Any], rollout: str, files: dict[str, str], variables: dict[str, Any]
    ) -> tuple[bool, str]:
        """Beside the journal, where it outlives the controller."""
        changed = False
        folder = tempfile.mkdtemp(prefix="gb10-vllm-report-")
        try:
            for end, content in files.items():
                write(f"{folder}/report", content)
                task = self._task.copy()
                task.args = {"src": f"{folder}/report", "dest": f"{options['folder']}/{rollout}{end}", "mode": "0644"}
                copy = self._shared_loader_obj.action_loader.get(
                    "ansible.legacy.copy",
                    task=task,
                    connection=self._connection,
                    play_context=self._play_context,
                    loader=self._loader,
                    templar=self._templar,
                    shared_loader_obj=self._shared_loader_obj,
                )
                done = copy.run(task_vars=variables)
                if done.get("failed"):
                    raise OSError(f"{options['folder']}: {done.get('msg', 'no message')}")
                changed = changed or bool(done.get("changed"))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return changed, f"{options['folder']}/{rollout}.html"
