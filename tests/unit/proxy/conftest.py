# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real nginx in a folder of its own, with the role's site in it, and small HTTP servers as copies."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_look, _nginx_membership
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SITE, Nginx
from ansible_collections.gb10.vllm.plugins.modules import proxy_config

ROLE = Path(__file__).resolve().parents[3] / "roles" / "proxy"
NGINX = "/usr/sbin/nginx"


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Copy:
    """A copy with an engine's manners: POST /v1/... answers with its name, /v1/stream in pieces, /v1/error with a 500."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.posts = 0
        self.gate = threading.Event()
        self.server: ThreadingHTTPServer | None = None
        self.port = free_port()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen."""
        copy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                self.answer(200, {"copy": copy.name, "request_id": self.headers.get("X-Request-Id")})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                copy.posts += 1
                if self.path == "/v1/stream":
                    self.stream()
                elif self.path == "/v1/error":
                    self.answer(500, {"error": {"message": "the engine's own words"}})
                elif self.path == "/v1/silent":
                    copy.gate.wait(30)
                    self.close_connection = True
                elif self.path == "/v1/drop":
                    self.close_connection = True
                else:
                    self.do_GET()

            def answer(self, status: int, body: dict[str, Any]) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def stream(self) -> None:
                """One piece, then the second one only when the test opens the gate."""
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"8\r\ndata: 1\n\r\n")
                copy.gate.wait(30)
                self.wfile.write(b"8\r\ndata: 2\n\r\n0\r\n\r\n")

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        # An `accept` that finds nobody after all must not keep `shutdown` waiting for ever.
        self.server.socket.settimeout(1)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on."""
        self.gate.set()
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class Proxy:
    """The modules, bound to an nginx in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.inner_port = free_port(), free_port()
        self.places = {"conf_dir": str(folder), "pid_file": str(folder / "nginx.pid")}
        self.nginx = Nginx(**self.places, program=NGINX)
        for name in ("conf.d", "modules-enabled", "tmp"):
            (folder / name).mkdir()
        user = "user root;\n" if os.geteuid() == 0 else ""
        temp = "".join(
            f"{kind}_temp_path {folder}/tmp/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"{user}worker_processes 2;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n"
            f"include {folder}/modules-enabled/*.conf;\nevents {{ worker_connections 256; }}\n"
            f"http {{\naccess_log off;\n{temp}include {folder}/conf.d/*.conf;\n}}\n"
        )

    def site(self, copies: list[Copy], **variables: Any) -> str:
        """The role's template with the role's defaults."""
        values = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
        internal = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())
        values |= {
            "vllm_proxy_conf_dir": str(self.folder),
            "vllm_proxy_listen_address": "127.0.0.1",
            "vllm_proxy_port": self.port,
            "vllm_proxy_inner_port": self.inner_port,
            "vllm_proxy_access_log": str(self.folder / "access.log"),
            "vllm_proxy_error_log": str(self.folder / "site-error.log"),
            "__vllm_proxy_unavailable": internal["__vllm_proxy_unavailable"],
            "__vllm_proxy_copies": [
                {"name": copy.name, "pattern": copy.address.replace(".", r"\.")} for copy in copies
            ],
        }
        source = (ROLE / "templates" / "gb10-vllm.conf.j2").read_text()
        environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        return environment.from_string(source).render(values | variables)

    def configure(self, site: str, check: bool = False, program: str | None = NGINX, **params: Any) -> dict[str, Any]:
        """Run proxy_config."""
        values = {"max_fails": 2, "fail_timeout_seconds": 3, "reload_seconds": 5, **self.places}
        values |= {"copies": [], "api_keys": [], "engine_api_key": ""}
        values["files"] = [{"path": SITE, "content": site}]
        return proxy_config.run(values | params, check, program)

    def server(self, name: str, server: str | None, state: str = "admitted", check: bool = False, **params: Any) -> Any:
        """Run proxy_server."""
        values = {"name": name, "server": server, "state": state, "max_fails": None, "fail_timeout_seconds": None}
        return _nginx_membership.change(
            {**values, "drain_seconds": 0, "reload_seconds": 5, **self.places} | params, check, NGINX
        )

    def info(self, *servers: str) -> dict[str, Any]:
        """Run proxy_info."""
        return _nginx_look.look(**self.places, others=servers)

    def start(self) -> None:
        """Start nginx and wait for its workers."""
        subprocess.run([NGINX, "-c", f"{self.folder}/nginx.conf"], check=True)
        deadline = time.monotonic() + 10
        while not self.info()["worker_pids"]:
            assert time.monotonic() < deadline, "nginx has no worker after 10 s"
            time.sleep(0.01)

    def stop(self) -> None:
        """End nginx, streams included."""
        master = self.nginx.master()
        if master:
            os.kill(master, 15)
        deadline = time.monotonic() + 10
        while self.nginx.master():
            assert time.monotonic() < deadline, "nginx has not ended after 10 s"
            time.sleep(0.01)

    def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Status, body (as JSON) and headers (lower case) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, body or None, headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text), {k.lower(): v for k, v in response.getheaders()}


@pytest.fixture
def copies() -> Iterator[list[Copy]]:
    """Two copies that listen."""
    both = [Copy("spark1"), Copy("spark2")]
    for copy in both:
        copy.start()
    yield both
    for copy in both:
        copy.stop()


@pytest.fixture
def proxy(tmp_path: Path, copies: list[Copy]) -> Iterator[Proxy]:
    """A configured, running proxy with nobody admitted."""
    world = Proxy(tmp_path)
    world.configure(world.site(copies))
    world.start()
    yield world
    world.stop()
