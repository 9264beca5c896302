# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way on the controller's own loopback from a suite to a copy, on which every exchange is counted.

Private to this collection: may change at any time. Controller only.

It has the copy's key, so that no command line has it, and a key of its own, so that nobody else on the controller gets through.
It can ask for whole answers where the suite asks for streams: a suite knows one way, and clients use both.
"""

from __future__ import annotations

import contextlib
import hmac
import http.client
import json
import secrets
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_wire

# Connections in a row that nobody took, after which the engine is gone.
MOST_REFUSED = 3
_HEADERS = ("content-type", "accept", "user-agent")


class Relay:
    """Runs while its block does. `streamed` may be changed between two runs of the suite."""

    def __init__(
        self, upstream: str, key: str, seconds: float, port: int = 0, seen: _evaluation_wire.Seen | None = None
    ) -> None:
        self.upstream, self.key, self.seconds = urlsplit(upstream), key, seconds
        self.token = secrets.token_urlsafe(24)
        self.seen = seen or _evaluation_wire.Seen()
        self.streamed = True
        self.refused, self.gone = 0, ""
        self.running = 0
        self.lock = threading.Lock()
        try:
            self.server = _Server(("127.0.0.1", port), _Handler)
        except OSError:
            self.server = _Server(("127.0.0.1", 0), _Handler)
        self.server.relay = self
        self.port = int(self.server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self.server.server_close()

    def connect(self) -> http.client.HTTPConnection:
        host, port = self.upstream.hostname or "", self.upstream.port
        if self.upstream.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self.seconds, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=self.seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    relay: Relay


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self.carry({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            query = json.loads(body)
        except ValueError:
            query = {}
        self.carry(query if isinstance(query, dict) else {})

    def carry(self, query: dict[str, Any]) -> None:
        relay = self.server.relay
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), relay.token.encode()):
            return self.answer(
                401, b'{"error": {"message": "this is not the key of this evaluation"}}', "application/json"
            )
        if query and not relay.streamed:
            query = {name: value for name, value in query.items() if name not in ("stream", "stream_options")}
        headers = {name: value for name, value in self.headers.items() if name.lower() in _HEADERS}
        headers |= {"Authorization": f"Bearer {relay.key}"} if relay.key else {}
        self.runs = False
        at_once = self.running(True)
        connection = relay.connect()
        try:
            # A suite that went away is no fault of the copy's.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.exchange(connection, headers, query, at_once)
        finally:
            connection.close()
            self.running(False)

    def running(self, begins: bool) -> int:
        """Note that this request begins or ends, and say how many run. It ends when its client may see the end: then the next one comes."""
        relay = self.server.relay
        with relay.lock:
            relay.running += int(begins) - int(self.runs)
            self.runs = begins
            return relay.running

    def exchange(
        self, connection: http.client.HTTPConnection, headers: dict[str, str], query: dict[str, Any], at_once: int
    ) -> None:
        relay, body, answered = self.server.relay, b"", None
        try:
            path = relay.upstream.path.rstrip("/") + self.path
            connection.request(self.command, path, json.dumps(query).encode() if query else None, headers)
            answered = connection.getresponse()
        except OSError as error:
            return self.unanswered(error)
        except http.client.HTTPException as error:
            return self.unanswered(ConnectionError(f"{error!r}"))
        with relay.lock:
            relay.refused = 0
        kind = answered.headers.get("Content-Type", "application/json")
        streamed = bool(query.get("stream")) and kind.startswith("text/event-stream")
        if not streamed:
            with contextlib.suppress(OSError, http.client.HTTPException):
                body = answered.read()
            self.count(query, answered.status, body, streamed, at_once)
            self.running(False)
            return self.answer(answered.status, body, kind)
        self.send_response(answered.status)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while True:
            # What a cut stream brought is judged like a whole one, and lacks its end.
            try:
                piece = answered.read1(65536)
            except (OSError, http.client.HTTPException):
                break
            if not piece:
                break
            body += piece
            if b"[DONE]" in body[-len(piece) - 8 :]:
                at_once = max(at_once, relay.running)
                self.running(False)
            self.wfile.write(piece)
            self.wfile.flush()
        self.count(query, answered.status, body, streamed, at_once)

    def count(self, query: dict[str, Any], status: int, body: bytes, streamed: bool, at_once: int) -> None:
        if query:
            relay = self.server.relay
            with relay.lock:
                most = max(at_once, relay.running if self.runs else 0)
                relay.seen.add(query, status, body.decode(errors="replace"), streamed, most)

    def unanswered(self, error: OSError) -> None:
        """Nobody listens, or nobody answers in time: not an answer of the copy's, so the suite gets one of ours that it may not grade."""
        relay = self.server.relay
        with relay.lock:
            if isinstance(error, ConnectionError):
                relay.refused += 1
                if relay.refused >= MOST_REFUSED:
                    relay.gone = f"{relay.refused} connections in a row were not answered ({error})"
        self.answer(504, json.dumps({"error": {"message": f"no answer: {error}"}}).encode(), "application/json")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Ansible's output is not a log."""
