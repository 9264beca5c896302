# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hold's helper beside a test's nginx, started as systemd does: the socket is open before it and stays open after it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from ansible_collections.gb10.vllm.plugins.modules import proxy_hold
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import ROLE, Site, wait_for

PROGRAM = ROLE / "files" / "gb10_vllm_hold.py"


class Helper:
    """One helper for one site; keywords are its bounds."""

    def __init__(
        self, site: Site, requests: int = 256, body_bytes: int = 1 << 20, seconds: float = 30, first_releases: int = 64
    ) -> None:
        self.socket = str(site.variables["vllm_proxy_hold_socket"])
        self.file = site.run_dir / "hold.json"
        self.arguments = [
            f"--declared={self.file}", f"--port={site.variables['vllm_proxy_inner_port']}", f"--requests={requests}",
            f"--body-bytes={body_bytes}", f"--seconds={seconds}", f"--first-releases={first_releases}",
        ]  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def __enter__(self) -> Self:
        self.listener.bind(self.socket)
        self.listener.listen(1024)
        Path(self.socket).chmod(0o666)
        self.start()
        return self

    def start(self) -> None:
        """systemd's way: descriptor 3, and the process id in the environment."""
        number = self.listener.fileno()
        script = f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&{number}'
        command = ["bash", "-c", script, "bash", sys.executable, "-I", str(PROGRAM), *self.arguments]
        self.process = subprocess.Popen(command, pass_fds=(number,), stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        """As the kernel does when memory is short."""
        assert self.process
        self.process.kill()
        self.process.wait(10)

    def queued(self) -> int:
        """How many connections nobody has taken from the socket, as the kernel's table counts them."""
        done = subprocess.run(
            ["ss", "--no-header", "--unix", "--listening", "src", self.socket],
            capture_output=True,
            text=True,
            check=True,
        )
        return int(done.stdout.split()[2])

    def end(self) -> None:
        """For good: the socket is gone too."""
        self.kill()
        self.listener.close()
        Path(self.socket).unlink(missing_ok=True)

    def __exit__(self, *_error: object) -> None:
        self.end()

    def module(self, state: str, **more: Any) -> dict[str, Any]:
        """The module proxy_hold."""
        params = {
            "state": state,
            "seconds": None,
            "why": "a test",
            "file": str(self.file),
            "socket": self.socket,
            **more,
        }
        return proxy_hold.run(params, False, time.time())

    def arm(self, seconds: int = 60) -> None:
        assert self.module("armed", seconds=seconds)["armed"]

    def counts(self) -> dict[str, Any]:
        """What the helper has counted."""
        answer = self.module("read")
        assert answer["helper"]
        return dict(answer["counts"])

    def wait_for_waiting(self, number: int) -> None:
        """Until so many requests wait."""
        wait_for(lambda: self.counts()["waiting"] == number, f"{number} requests wait")
