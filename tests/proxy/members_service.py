# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The members service beside a test's nginx, with the role's own configuration, started as systemd does."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from ansible_collections.gb10.vllm.plugins.module_utils import _nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS
from ansible_collections.gb10.vllm.tests.proxy.copies import MODEL
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site, templated, wait_for

PROGRAM = "import sys; from ansible_collections.gb10.vllm.plugins.module_utils._programs import members; sys.exit(members.main())"
COLLECTIONS = Path(__file__).resolve().parents[2] / ".collections"
STRANGER = "127.0.0.99"


class Service:
    """One service for one site. Keywords go into its configuration; the rules of `cuts` are added to the role's."""

    def __init__(self, site: Site, cuts: dict[str, Any] | None = None, **more: Any) -> None:
        self.site, self.run_dir = site, site.run_dir
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.pause_dir = self.run_dir / "pause"
        self.pause_dir.mkdir()
        config = templated("__vllm_proxy_members", site.variables, site.copies)
        config["cuts"] |= cuts or {}
        for copy in config["copies"]:
            copy["gate"] = {"model": MODEL}
        places = {
            "keys_file": "keys",
            "pause_dir": "pause",
            "state_file": "state",
            "record_file": "record",
            "metrics_file": "metrics",
        }
        config |= {name: str(self.run_dir / file) for name, file in places.items()}
        (self.run_dir / "members.json").write_text(
            json.dumps({**config, "watch_seconds": 0.1, "gate_seconds": 5, "gate_healthy_seconds": 0.1, **more})
        )
        self.log = self.run_dir / "members.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """systemd's way: descriptor 3, and the process id in the environment."""
        number = self.listener.fileno()
        script = f'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&{number}'
        command = ["bash", "-c", script, "bash", sys.executable, "-c", PROGRAM, f"--config={self.run_dir}/members.json"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, pass_fds=(number,), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": str(COLLECTIONS)},
            )  # fmt: skip

    def kill(self) -> None:
        """As the kernel does when memory is short."""
        assert self.process
        self.process.kill()
        self.process.wait(10)

    def __exit__(self, *_error: object) -> None:
        self.kill()
        self.listener.close()

    def ask(self, host: str, state: str = "", reason: str = "a test") -> tuple[int, dict[str, Any]]:
        """A question of the engine host with this address; without a state only a look."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(host, 0))
        body = json.dumps({"state": state, "reason": reason}) if state else None
        connection.request("POST" if state else "GET", "/copy", body)
        response = connection.getresponse()
        content = json.loads(response.read())
        connection.close()
        return response.status, content

    def membership(self) -> _nginx.Membership:
        return _nginx.parse((self.site.folder / SERVERS).read_text(), SERVERS)

    def admitted(self) -> list[str]:
        return [entry.name for entry in self.membership().servers]

    def wait_for_look(self) -> dict[str, Any]:
        """What it says of itself, after it has looked once more."""
        before = self.state().get("time", 0)
        wait_for(lambda: self.state().get("time", 0) > before, f"it looks; its log: {self.log.read_text()}")
        return self.state()

    def state(self) -> dict[str, Any]:
        path = self.run_dir / "state"
        return dict(json.loads(path.read_text())) if path.exists() else {}
