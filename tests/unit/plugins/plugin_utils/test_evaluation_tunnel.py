# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to a copy's port: with Ansible's own words for ssh, apart from the shared connection, gone with its block."""

from __future__ import annotations

import http.server
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_tunnel as tunnel

# Forwards as `ssh -N -L a:b:c:d` does, and writes down how it was called.
SSH = """#!{python}
import re, socket, sys, threading
open({called!r}, "w").write(" ".join(sys.argv[1:]))
if "unreachable" in sys.argv:
    sys.exit("ssh: connect to host unreachable port 22: No route to host")
local, port = map(int, re.search(r"127.0.0.1:(\\d+):127.0.0.1:(\\d+)", " ".join(sys.argv)).groups())

def carry(a, b):
    while data := a.recv(65536):
        b.sendall(data)
    b.shutdown(socket.SHUT_WR)

with socket.create_server(("127.0.0.1", local)) as server:
    while True:
        one, other = server.accept()[0], None
        try:
            other = socket.create_connection(("127.0.0.1", port))
        except OSError:
            one.close()
            continue
        for pair in ((one, other), (other, one)):
            threading.Thread(target=carry, args=pair, daemon=True).start()
"""


class Connection:
    """What of Ansible's ssh connection is used."""

    def __init__(
        self, program: Path, host: str = "spark1", transport: str = "ssh", before: tuple[bytes, ...] = ()
    ) -> None:
        self.program, self.host, self.transport, self.before = program, host, transport, before

    def get_option(self, name: str) -> str:
        return {"ssh_executable": str(self.program), "host": self.host}[name]

    def _build_command(self, binary: str, subsystem: str, *words: str) -> list[bytes]:
        assert subsystem == "ssh"
        common = [b"-o", b"ControlMaster=auto", b"-o", b"ControlPath=/shared"]
        return [*self.before, binary.encode(), *common, *(word.encode() for word in words)]


@pytest.fixture
def ssh(tmp_path: Path) -> Path:
    path = tmp_path / "ssh"
    path.write_text(SSH.format(python=sys.executable, called=str(tmp_path / "called")))
    path.chmod(0o755)
    return path


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that answers."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"here")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_forwards_while_the_block_runs(ssh: Path, port: int, tmp_path: Path) -> None:
    with tunnel.opened(Connection(ssh), port) as url:
        assert urllib.request.urlopen(url, timeout=5).read() == b"here"
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url, timeout=5)
    called = (tmp_path / "called").read_text()
    own, shared = called.index("ControlPath=none"), called.index("ControlPath=/shared")
    assert own < shared, "ssh takes the first value"
    assert "ExitOnForwardFailure=yes" in called
    assert called.endswith(" spark1")


def test_on_this_machine_there_is_nothing_to_forward(ssh: Path) -> None:
    with tunnel.opened(Connection(ssh, transport="local"), 8000) as url:
        assert url == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "unreachable"}, "No route to host"),
        ({"transport": "paramiko"}, "the connection paramiko cannot forward a port"),
        ({"before": (b"sshpass", b"-d9")}, "only with a key, not with a password"),
    ],
)
def test_what_cannot_be_forwarded_names_the_other_way(ssh: Path, options: dict[str, str], words: str) -> None:
    with pytest.raises(tunnel.TunnelError, match=words) as caught, tunnel.opened(Connection(ssh, **options), 8000):  # type: ignore[arg-type]
        pass
    assert "set vllm_evaluation_url" in str(caught.value)
