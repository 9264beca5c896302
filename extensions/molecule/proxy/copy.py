# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small HTTP server in the place of an engine: `copy.py PORT`. POST /v1/stream sends pieces with gaps.

While the file FULL is there, it says 503 to every POST, as an engine does whose queue is full.
"""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FULL = Path("/run/gb10-proxy-copy.full")


class Handler(BaseHTTPRequestHandler):
    """Answers everything with 200, and with the key that it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """A small JSON answer."""
        self.answer(200)

    def answer(self, status: int) -> None:
        data = json.dumps({"object": "list", "authorization": self.headers.get("Authorization")}).encode()
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
        if self.path != "/v1/stream":
            self.do_GET()
            return
        wanted = json.loads(body)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(wanted["pieces"]):
            if number:
                time.sleep(wanted["gap"])  # the load that the test asks for
            piece = f"data: {number}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


if __name__ == "__main__":
    ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
