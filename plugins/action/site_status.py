# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows a site's state, and on request again and again: each further look is a run of the same command."""

from __future__ import annotations

import contextlib
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible import constants, context
from ansible.errors import AnsibleActionFail, AnsiblePromptInterrupt, AnsiblePromptNoninteractive
from ansible.plugins.action import ActionBase
from ansible.utils.color import ANSIBLE_COLOR
from ansible.utils.display import Display

ASKED = {"ask_pass": "--ask-pass", "become_ask_pass": "--ask-become-pass", "ask_vault_pass": "--ask-vault-pass"}
# From the upper left corner on, all that was there is gone. Ansible only colours what goes to a terminal.
CLEAR = "\033[H\033[2J\033[3J" if ANSIBLE_COLOR else ""
# A prompt is one line; where it can be, the one that only waits is taken back.
SILENT = "\033[A" if ANSIBLE_COLOR else ""
_POLL_SECONDS = 1.0


class ActionModule(ActionBase):
    """Runs on the controller only."""

    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        text, seconds, count = (self._task.args.get(name) for name in ("text", "watch", "count"))
        if to := self._task.args.get("to"):
            Path(to).write_text(str(text))
            return {**result, "changed": False, "looks": 1}
        try:
            seconds, count = float(seconds or 0), int(count or 0)
        except (TypeError, ValueError):
            raise AnsibleActionFail(
                f"vllm_status_watch is {seconds!r} and vllm_status_count {count!r}, they must be numbers"
            ) from None
        if not 0 <= seconds < math.inf or count < 0:
            raise AnsibleActionFail(
                f"vllm_status_watch is {seconds:g} and vllm_status_count {count}, they must be 0 or more"
            )
        if not seconds:
            Display().display(str(text))
            return {**result, "changed": False, "looks": 1, "text": text}
        return {**result, "changed": False, "looks": watch(str(text), seconds, count, command())}


def command() -> list[str]:
    """The command that looks once more."""
    program = Path(sys.argv[0]).name
    asked = [option for name, option in ASKED.items() if context.CLIARGS.get(name)]
    if not program.startswith("ansible-playbook"):
        raise AnsibleActionFail(f"vllm_status_watch repeats the command ansible-playbook, this is {program}")
    if asked:
        raise AnsibleActionFail(f"vllm_status_watch cannot repeat {asked[0]}: give the password in a file")
    return [sys.executable, *sys.argv]


def watch(text: str, seconds: float, count: int, again: list[str]) -> int:
    """Show the state until there were `count` looks (0: for ever) or somebody presses Ctrl-C; returns how many there were."""
    display, shown = Display(), 0
    # Ansible's own folder, which it removes however the run ends.
    with tempfile.TemporaryDirectory(dir=constants.DEFAULT_LOCAL_TMP) as folder:
        to = Path(folder) / "status"
        internal = {"vllm_status_watch": 0, "watch": 0, "__vllm_status_to": str(to)}
        while True:
            shown += 1
            display.display(f"{CLEAR}{line_of(text)}")
            if shown == count:
                return shown
            try:
                wait(seconds, f"\n{time.strftime('%H:%M:%S')}, again every {seconds:g} s until Ctrl-C")
                text = look([*again, "--extra-vars", json.dumps(internal)], to)
            except AnsiblePromptInterrupt:
                return shown


def line_of(text: str) -> str:
    """JSON of several looks is one object per line."""
    return json.dumps(json.loads(text)) if text.startswith("{") else text


def look(once: list[str], to: Path) -> str:
    """Run the command; its output is of interest only when it has made no status."""
    to.unlink(missing_ok=True)
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(once, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        try:
            while process.poll() is None:
                wait(_POLL_SECONDS, SILENT, process)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        if to.exists():
            return to.read_text()
        said.seek(0)
        return f"This look failed ({process.returncode}): {' '.join(said.read().split())[-500:]}"


def wait(seconds: float, words: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait, at most until the process ends, so that Ctrl-C ends the task and not the whole run where there is a terminal."""
    try:
        Display().prompt_until(words, private=True, seconds=seconds)
    except AnsiblePromptNoninteractive:
        if process is None:
            time.sleep(seconds)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
