# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions to servers that answer well, badly, late, halfway or not at all; none of them may raise."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _http


@contextmanager
def server(reply: bytes | None) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads one request and sends these bytes; None keeps silent until the client goes away."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def serve() -> None:
            with listening.accept()[0] as client:
                client.settimeout(10)
                data = b""
                while b"\r\n\r\n" not in data:
                    data += client.recv(65536)
                head, _separator, body = data.partition(b"\r\n\r\n")
                length = [
                    int(line.split()[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
                ]
                while length and len(body) < length[0]:
                    body += client.recv(65536)
                asked.append(head + b"\r\n\r\n" + body)
                if reply is None:
                    client.recv(1)
                else:
                    client.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x", asked
        thread.join(10)


@pytest.mark.parametrize(
    ("reply", "status", "body", "content"),
    [
        (b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"a": 1}', 200, '{"a": 1}', {"a": 1}),
        (b"HTTP/1.1 200 OK\r\n\r\nplain", 200, "plain", None),
        (b"HTTP/1.1 200 OK\r\n\r\n", 200, "", None),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", 200, "\ufffd\ufffd", None),
        (b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}", 503, "{}", {}),
        (b"HTTP/1.1 404 No\r\n\r\n", 404, "", None),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            200,
            "abcde",
            None,
        ),
    ],
)
def test_answer(reply: bytes, status: int, body: str, content: object) -> None:
    with server(reply) as (url, _asked):
        answer = _http.get(url, timeout=5)
    assert (answer.status, answer.body, answer.json(), answer.problem) == (status, body, content, "")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "IncompleteRead"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nhalf", "IncompleteRead"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", "IncompleteRead"),
        (b"", "RemoteDisconnected"),
        (b"garbage\r\n\r\n", "BadStatusLine"),
    ],
    ids=["cut short", "an error that is cut short", "a stream that is cut short", "closed without a word", "no HTTP"],
)
def test_no_answer(reply: bytes, problem: str) -> None:
    with server(reply) as (url, _asked):
        answer = _http.get(url, timeout=5)
    assert (answer.status, answer.body) == (0, "")
    assert problem in answer.problem


def test_too_late() -> None:
    with server(None) as (url, _asked):
        answer = _http.get(url, timeout=0.2)
    assert answer.status == 0
    assert "timed out" in answer.problem


def test_an_answer_that_drips_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with listening.accept()[0] as client, contextlib.suppress(OSError):
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                for _piece in range(
                    1000
                ):  # an end after 20 s, so that a client that waits for it fails and does not hang
                    client.sendall(b"x")
                    time.sleep(0.02)

        threading.Thread(target=drip, daemon=True).start()
        started = time.monotonic()
        answer = _http.get(f"http://127.0.0.1:{listening.getsockname()[1]}/", timeout=0.3)
    assert (answer.status, answer.refused) == (0, False)
    assert "began but did not end" in answer.problem
    assert time.monotonic() - started >= 0.3


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    answer = _http.get(f"http://127.0.0.1:{port}/", timeout=2)
    assert (answer.status, answer.refused) == (0, True)
    assert "ConnectionRefusedError" in answer.problem


def test_post_and_token() -> None:
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, asked):
        _http.post(url, {"a": "ü"}, timeout=5, token="secret")
    head, _separator, body = asked[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /x ")
    assert b"Authorization: Bearer secret" in head
    assert b"Content-Type: application/json" in head or b"Content-type: application/json" in head
    assert json.loads(body) == {"a": "ü"}


def test_an_operators_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") as (url, _asked):
        assert _http.get(url, timeout=5).status == 200
