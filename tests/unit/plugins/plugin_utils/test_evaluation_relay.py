# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The relay between a suite and a copy: what it lets through, what it changes, and what it counts."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_relay as relay

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
QUERY = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "tools": TOOLS}
EVENTS = b'data: {"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
WHOLE = json.dumps({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}).encode()


class Copy(http.server.BaseHTTPRequestHandler):
    """Answers as it was asked; `asked` has the bodies and keys that came."""

    asked: list[tuple[dict[str, Any], str]]
    cut = 0
    status = 200

    def do_POST(self) -> None:
        query = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((query, self.headers.get("Authorization", "")))
        body = EVENTS if query.get("stream") else WHOLE
        self.send_response(self.status)
        self.send_header("Content-Type", "text/event-stream" if query.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - self.cut])

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture
def copy() -> Iterator[type[Copy]]:
    class Own(Copy):
        asked: list[tuple[dict[str, Any], str]] = []
        address = ""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Own.address = f"http://127.0.0.1:{server.server_port}"
        yield Own
        server.shutdown()


def ask(way: relay.Relay, token: str | None = None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token or way.token}"}
    request = urllib.request.Request(f"{way.url}/v1/chat/completions", json.dumps(QUERY).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_streams_go_through_with_the_copys_key(copy: Any) -> None:
    with relay.Relay(copy.address, "the-key", 5) as way:
        assert ask(way) == (200, EVENTS)
    assert copy.asked == [(QUERY, "Bearer the-key")]
    assert (way.seen.requests, way.seen.answers, way.seen.faults, way.seen.most_at_once) == (1, 1, {}, 1)


def test_whole_answers_are_asked_for_where_the_suite_wants_streams(copy: Any) -> None:
    with relay.Relay(copy.address, "", 5) as way:
        way.streamed = False
        assert ask(way) == (200, WHOLE)
    assert copy.asked == [({"model": "m", "tools": TOOLS}, "")]


def test_a_stream_that_is_cut_off_lacks_its_end(copy: Any) -> None:
    copy.cut = 16
    with relay.Relay(copy.address, "", 5) as way:
        ask(way)
    assert way.seen.examples == {"stream": "no [DONE] at its end"}


def test_errors_are_passed_on_and_counted(copy: Any) -> None:
    copy.status = 500
    with relay.Relay(copy.address, "", 5) as way:
        assert ask(way)[0] == 500
    assert (way.seen.server_errors, way.seen.statuses) == (1, {"500": 1})


def test_a_stranger_does_not_get_through(copy: Any) -> None:
    with relay.Relay(copy.address, "the-key", 5) as way:
        assert ask(way, "guessed")[0] == 401
    assert (copy.asked, way.seen.requests) == ([], 0)


def test_nobody_who_listens_any_more_is_gone_and_no_error_of_the_copys() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), Copy) as server:
        port = server.server_port
    with relay.Relay(f"http://127.0.0.1:{port}", "", 5) as way:
        assert [ask(way)[0] for _number in range(relay.MOST_REFUSED)] == [504] * relay.MOST_REFUSED
        assert "3 connections in a row were not answered" in way.gone
    assert (way.seen.requests, way.seen.server_errors) == (0, 0)


def test_takes_the_port_of_an_interrupted_run_when_it_is_free(copy: Any) -> None:
    with relay.Relay(copy.address, "", 5) as way, relay.Relay(copy.address, "", 5, port=way.port) as other:
        assert other.port != way.port
    with relay.Relay(copy.address, "", 5, port=way.port) as again:
        assert again.port == way.port
