# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says which process on the controller holds the site's lock, and whether the one that holds it is still there."""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils._reach import ReachingAction


class ActionModule(ReachingAction):
    """Looks at the lock first; what it finds there decides which process has to be looked for."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        variables = task_vars or {}
        arguments = dict(self._task.args)
        # The playbook's main process; this code runs in a worker of it.
        own = controller(os.getppid())
        place = {"folder": arguments["folder"]} if "folder" in arguments else {}
        seen = self.execute(None, {**place, "state": "seen"}, variables)
        if seen.get("failed"):
            return seen
        arguments["gone"] = is_gone((seen["holder"] or {}).get("controller") or {}, own)
        arguments["controller"] = own
        arguments["who"] = arguments.get("who") or f"{getpass.getuser()}@{own['host']}"
        return self.execute(None, {name: value for name, value in arguments.items() if value is not None}, variables)


def controller(pid: int) -> dict[str, Any]:
    """Everything that tells a process from every other one: the machine, its boot, the process, and when that began."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return {
        "host": socket.gethostname(),
        "boot": boot.read_text().strip() if boot.exists() else "",
        "pid": pid,
        "started": started(pid),
    }


def started(pid: int) -> str | None:
    """When the process began, in the words of this machine; empty when there is no such process, None when that cannot be asked."""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return None


def is_gone(holder: dict[str, Any], own: dict[str, Any]) -> bool | None:
    """None when it cannot be known from here: another machine's process, or a lock that names none."""
    if not holder.get("pid") or not holder.get("started") or holder.get("host") != own["host"]:
        return None
    if holder.get("boot") != own["boot"]:
        return True
    now = started(int(holder["pid"]))
    return None if now is None else now != holder["started"]
