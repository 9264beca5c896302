# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: run_log
type: notification
short_description: Keep a machine-readable log of every run
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Appends one JSON object per line to a file, for the run, each play, and each result of a task on a host.
  - Has names, results and times, and of a failure its message, shortened. Never has arguments, facts or output of commands. Of a
    task with C(no_log) it says only that there was one and how it ended; what looks like a key, a token or a password in a message is covered.
  - A file that cannot be written is a warning, once, and changes nothing about the run.
  - The file is opened for each line, so that it may be rotated at any time, and only its owner may read it.
requirements:
  - enabled in the configuration, see the example
options:
  path:
    description: The file. Its folder is made where it is missing.
    type: path
    default: ~/.ansible/gb10-vllm-runs.jsonl
    env:
      - name: GB10_VLLM_RUN_LOG
    ini:
      - section: callback_run_log
        key: path
  skipped:
    description: Whether tasks that were skipped are logged too.
    type: bool
    default: false
    env:
      - name: GB10_VLLM_RUN_LOG_SKIPPED
    ini:
      - section: callback_run_log
        key: skipped
notes:
  - "Each line has C(time) (seconds since the epoch), C(run) (the same for all lines of a run) and C(event). C(begin) has C(playbook), C(user),
    C(controller) and C(check_mode); C(play) has C(play); C(task) has C(play), C(task), C(action), C(host), C(result), C(changed), C(seconds),
    and where they apply C(delegated_to), C(items), C(hidden) and C(message); C(end) has C(seconds), C(result) and C(hosts) with the counts
    of each."
  - "C(result) of a task is V(ok), V(changed), V(failed), V(ignored), V(unreachable) or V(skipped); that of a run is V(ok) or V(failed). A run
    without C(end) was killed."
"""

EXAMPLES = r"""
# ansible.cfg
# [defaults]
# callbacks_enabled = gb10.vllm.run_log
#
# [callback_run_log]
# path = /var/log/gb10-vllm/runs.jsonl
"""

import getpass
import os
import socket
import time
import uuid
from typing import Any

from ansible import context
from ansible.plugins.callback import CallbackBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _run_log


def user() -> str:
    """Who runs this; a user without a name is a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "gb10.vllm.run_log"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.run_id = uuid.uuid4().hex[:12]
        self.began = time.monotonic()
        self.play = ""
        self.starts: dict[tuple[str, str], float] = {}
        self.broken = False

    def write(self, event: str, **more: Any) -> None:
        if self.broken:
            return
        line = {"time": round(time.time(), 3), "run": self.run_id, "event": event, **more}
        path = self.get_option("path")
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(handle, _run_log.text(line).encode())
            finally:
                os.close(handle)
        except OSError as error:
            self.broken = True
            self._display.warning(f"no log of this run is kept, {path} cannot be written: {error.strerror}")

    def v2_playbook_on_start(self, playbook: Any) -> None:
        self.write(
            "begin",
            playbook=os.path.basename(str(playbook._file_name)),
            user=user(),
            controller=socket.gethostname(),
            check_mode=bool(context.CLIARGS.get("check")),
        )

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self.play = _run_log.safe(play.get_name())
        self.write("play", play=self.play)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self.starts[(host.get_name(), task._uuid)] = time.monotonic()

    def result(self, kind: str, result: Any, ignored: bool = False) -> None:
        host, task = result.host.get_name(), result.task
        began = self.starts.pop((host, task._uuid), None)
        line = {
            "play": self.play,
            "task": _run_log.safe(task.get_name()),
            "action": task.action,
            "host": host,
            "seconds": None if began is None else round(time.monotonic() - began, 3),
            **_run_log.outcome(kind, result.result, ignored),
        }
        if task.no_log:
            line.pop("message", None)
            line["hidden"] = True
        if isinstance(task.delegate_to, str) and task.delegate_to:
            line["delegated_to"] = task.delegate_to
        self.write("task", **line)

    def v2_runner_on_ok(self, result: Any) -> None:
        self.result("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self.result("failed", result, ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self.result("unreachable", result, bool(result.task.ignore_unreachable))

    def v2_runner_on_skipped(self, result: Any) -> None:
        if self.get_option("skipped"):
            self.result("skipped", result)
        else:
            self.starts.pop((result.host.get_name(), result.task._uuid), None)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        hosts = {name: stats.summarize(name) for name in sorted(stats.processed)}
        bad = any(counts["failures"] or counts["unreachable"] for counts in hosts.values())
        self.write(
            "end", seconds=round(time.monotonic() - self.began, 3), result="failed" if bad else "ok", hosts=hosts
        )
