# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keepalived asks nginx every second: an answer of the proxy itself, whatever its copies do."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "roles" / "service_address" / "files" / "proxy_answers.py"


def status(port: int, seconds: float = 2) -> int:
    command = [sys.executable, "-I", str(PROGRAM), f"http://127.0.0.1:{port}", str(seconds)]
    return subprocess.run(command, timeout=30).returncode


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(404, b'{"error": "each copy has its own /metrics"}')], 0),
        ([(404, b"nginx's own page")], 1),
        ([(200, b"# TYPE vllm:num_requests_running gauge")], 1),
        # One bad answer is none.
        ([(502, b"just starting"), (404, b"each copy has its own /metrics")], 0),
    ],
)
def test_only_the_proxys_own_answer_counts(answers: list[tuple[int, bytes]], expected: int) -> None:
    given = iter(answers * 2)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/metrics"
            code, body = next(given)
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert status(server.server_port) == expected
        finally:
            server.shutdown()


def test_a_refused_connection_and_silence_are_no_answers() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        assert status(port) == 1
        listener.listen()
        assert status(port, seconds=0.2) == 1
