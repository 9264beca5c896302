# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small HTTP server in the place of an engine: `copy.py PORT`. POST /v1/stream sends pieces with gaps.
What the gate asks is answered as it wishes.

While the file FULL is there, it says 503 to every POST, as an engine does whose queue is full.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FULL = Path("/run/gb10-proxy-copy.full")
# What the gate wants to hear, whole or as a piece of a stream.
PARIS = {"message": {"content": "Paris"}, "delta": {"content": "Paris"}, "finish_reason": "stop"}


class Handler(BaseHTTPRequestHandler):
    """Answers everything with 200, and with the key that it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A small JSON answer."""
        self.answer(200)

    def answer(self, status: int) -> None:
        content = {
            "object": "list",
            "authorization": self.headers.get("Authorization"),
            "data": [{"id": "tiny"}],
            "choices": [PARIS],
        }
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        """The same, or a stream as the body asks for: {"pieces": N, "gap": SECONDS}."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if FULL.exists():
            self.answer(503)
            return
        wanted = json.loads(body)
        if self.path != "/v1/stream" and not wanted.get("stream"):
            self.do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # The gate's stream asks for no pieces: it gets an answer.
        pieces = [str(number) for number in range(wanted.get("pieces", 0))] or [
            json.dumps({"choices": [PARIS]}),
            "[DONE]",
        ]
        for number, text in enumerate(pieces):
            if number:
                time.sleep(wanted.get("gap", 0))  # the load that the test asks for
            piece = f"data: {text}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
