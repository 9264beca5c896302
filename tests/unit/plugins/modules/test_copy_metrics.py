# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module copy_metrics against servers on loopback that answer what they are told, byte for byte."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch
from ansible_collections.gb10.vllm.plugins.modules import copy_metrics
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.metrics.pages import Process, one

VERSION = b'{"version": "0.33.0"}'
Answer = Callable[[], bytes]


def answer(body: bytes | str, status: str = "200 OK", *headers: str, length: int | None = None) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    lines = [
        f"HTTP/1.1 {status}",
        f"Content-Length: {len(data) if length is None else length}",
        "Server: uvicorn",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Server:
    """Answers each path with the bytes of a function, and closes."""

    def __init__(self, **paths: Answer) -> None:
        self.paths = paths
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        self.asked: list[str] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def end(self) -> None:
        """A close alone would leave the thread in `accept`, on a port that still listens, beside all later tests."""
        if self.socket.fileno() < 0:
            return
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.socket.close()

    def serve(self) -> None:
        while True:
            try:
                peer, _address = self.socket.accept()
            except OSError:
                return
            with peer:
                path = peer.recv(65536).decode().split(" ")[1].strip("/")
                self.asked.append(path)
                peer.sendall(self.paths[path]() if path in self.paths else answer("{}", "404 Not Found"))


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(metrics: Answer, version: bytes = VERSION) -> Server:
        servers.append(Server(metrics=metrics, version=lambda: answer(version)))
        return servers[-1]

    yield start
    for server in servers:
        server.end()


@pytest.fixture
def read(call: Any) -> Callable[..., dict[str, Any]]:
    def ask(server: Server, **options: Any) -> dict[str, Any]:
        result: dict[str, Any] = call(copy_metrics, **{"port": server.port, "interval_seconds": 0.05, **options})
        return result

    return ask


def working(process: Process) -> Answer:
    """A page on which each look finds one more request."""

    def page() -> bytes:
        process.engines[0].serve(prompt=100, tokens=11)
        return answer(process.page())

    return page


def test_two_readings_and_what_was_between_them(serve: Any, read: Any) -> None:
    server = serve(working(one(running=2, kv_use=0.25)))
    found = read(server)
    assert (found["state"], found["reason"], found["changed"]) == ("read", "", False)
    assert found["reading"]["version"] == "0.33.0"
    assert found["reading"]["counters"]["prompt_tokens"] == 200
    assert found["window"]["counters"]["prompt_tokens"] == 100
    assert found["window"]["requests"]["stop"] == 1
    assert 0.05 <= found["window"]["seconds"] < 30
    assert server.asked == ["metrics", "version"] * 2


def test_one_reading(serve: Any, read: Any) -> None:
    found = read(serve(working(one())), interval_seconds=0)
    assert (found["reading"]["counters"]["prompt_tokens"], found["window"]) == (100, None)


def test_the_process_is_known_by_where_it_listens(serve: Any, read: Any) -> None:
    first, second = serve(working(one())), serve(working(one()))
    readings = [read(server)["reading"] for server in (first, first, second)]
    assert readings[0]["instance"] == readings[1]["instance"] != readings[2]["instance"]
    assert readings[0]["listener"] == readings[1]["listener"] != readings[2]["listener"]
    assert readings[0]["instance"].endswith(f"/{first.port}")


def test_restart_between_the_readings(serve: Any, read: Any) -> None:
    old, new = one(prompt=500), one(prompt=30)
    new.started += 60
    pages = itertools.chain([old.page()], itertools.repeat(new.page()))
    found = read(serve(lambda: answer(next(pages))))
    assert (found["window"]["restarts"], found["window"]["counters"]["prompt_tokens"]) == (1, 30)


def test_two_processes_behind_one_address(serve: Any, read: Any) -> None:
    pages = itertools.cycle([Process(apis=2, engines=one(prompt=n).engines).page() for n in (1000, 100)])
    found = read(serve(lambda: answer(next(pages))))
    assert (found["state"], found["reading"], found["window"]) == ("unreadable", None, None)
    assert "more than one process answers under this address (a proxy?)" in found["reason"]


@pytest.mark.parametrize(
    ("made", "sign"),
    [
        (answer("vllm:num_requests_running 1.0\n", "200 OK", "X-Vllm-Copy: spark1"), "the proxy's header X-Vllm-Copy"),
        (answer("x 1\n").replace(b"uvicorn", b"nginx/1.24.0"), "the server calls itself nginx/1.24.0"),
        (answer("x 1\n", "200 OK", "Via: 1.1 varnish"), "came via 1.1 varnish"),
        (
            answer('{"error": {"code": "not_found"}}', "404 Not Found"),
            "it answered 404 with an error that only a proxy",
        ),
    ],
)
def test_proxy_is_refused_by_name(serve: Any, read: Any, made: bytes, sign: str) -> None:
    server = serve(lambda: made)
    found = read(server)
    assert found["failed"] is True
    assert f"127.0.0.1:{server.port} is a proxy, not an engine" in found["msg"]
    assert sign in found["msg"]
    assert "vllm_port" in found["msg"]


PAGE = one(prompt=7).page()
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (answer(PAGE[:-200]), "the page ends within a line: it was cut off"),
        (answer(PAGE, length=len(PAGE) + 99), "the answer was cut off: 99 bytes are missing"),
        (CHUNKED + b"%x\r\n" % len(PAGE) + PAGE.encode()[:-50], "the answer was cut off"),
        (CHUNKED + b"%x\r\n" % len(PAGE) + PAGE.encode() + b"\r\n", "the answer was cut off"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + PAGE.encode(), "does not say where it ends"),
        (b"vllm:num_requests_running 1.0\n", "the answer is no HTTP"),
        (answer("<html>\n</html>\n"), "line 1 is not of a metrics page"),
        (answer(b"\xff\xfe\n"), "the page is no text"),
        (answer("", "500 Internal Server Error"), "/metrics was answered 500"),
        (answer("x" * 17 * 2**20), "more than 16 MiB"),
    ],
)
def test_answer_that_is_refused(serve: Any, read: Any, made: bytes, reason: str) -> None:
    found = read(serve(lambda: made))
    assert (found["state"], found["reading"], found["window"]) == ("unreadable", None, None)
    assert reason in found["reason"]


def test_whole_answer_in_chunks(serve: Any, read: Any) -> None:
    whole = CHUNKED + b"%x\r\n" % len(PAGE) + PAGE.encode() + b"\r\n0\r\n\r\n"
    assert read(serve(lambda: whole))["reading"]["counters"]["prompt_tokens"] == 7


def test_first_page_that_is_cut_costs_only_the_window(serve: Any, read: Any) -> None:
    pages = iter([PAGE[:-3], PAGE])
    found = read(serve(lambda: answer(next(pages))))
    assert (found["state"], found["window"]) == ("read", None)
    assert found["reason"] == "no first reading: the page ends within a line: it was cut off"


@pytest.mark.parametrize(
    ("version", "state", "reason"),
    [
        (VERSION, "off", "vLLM 0.33.0 runs without metrics"),
        (b"[]", "unreadable", "/version does not name one"),
    ],
)
def test_page_without_an_engine(serve: Any, read: Any, version: bytes, state: str, reason: str) -> None:
    found = read(serve(lambda: answer("python_info 1.0\n"), version))
    assert (found["state"], found["reading"]) == (state, None)
    assert reason in found["reason"]


def test_five_megabytes(serve: Any, read: Any) -> None:
    filler = "".join(
        f'http_requests_total{{handler="/v1/{n}",method="POST",status="2xx"}} {n}.0\n' for n in range(80_000)
    )
    found = read(serve(lambda: answer(filler + PAGE)))
    assert found["reading"]["counters"]["prompt_tokens"] == 7


def test_nobody_answers(read: Any, serve: Any) -> None:
    server = serve(lambda: b"")
    server.end()
    found = read(server)
    assert (found["state"], found["reason"]) == ("absent", "no answer: Connection refused")


def test_engine_that_does_not_answer_in_time(serve: Any, read: Any) -> None:
    release = threading.Event()

    def never() -> bytes:
        release.wait(20)
        return answer(PAGE)

    found = read(serve(never), timeout_seconds=0.2)
    release.set()
    assert (found["state"], found["reason"]) == ("absent", "no answer within 0.2 s")


def test_answer_that_drips_ends_in_time(monkeypatch: pytest.MonkeyPatch, serve: Any, read: Any) -> None:
    clock = itertools.count()
    monkeypatch.setattr(fetch.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(fetch, "_CHUNK", 1)
    found = read(serve(lambda: answer(PAGE)), timeout_seconds=2)
    assert (found["state"], found["reason"]) == ("absent", "the answer did not end within 2 s")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"interval_seconds": -1}, "interval_seconds is -1.0, it must be 0 to 60"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0.0, it must be 0.1 to 60"),
        ({"port": 0}, "port is 0, it must be 1 to 65535"),
        ({"address": "192.0.2.1"}, "address is 192.0.2.1, which is not an address of this host"),
        ({"address": "no-such-name.invalid"}, "which is not an address of this host"),
    ],
)
def test_options(call: Any, options: dict[str, Any], words: str) -> None:
    found = call(copy_metrics, **options)
    assert found["failed"] is True
    assert words in found["msg"]
