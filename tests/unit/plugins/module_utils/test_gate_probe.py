# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate asks a real HTTP server, in order, and stops at the first proof that fails."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _gate_probe

OPTIONS = {
    "model": "m",
    "max_model_len": 2048,
    "prompt": "Where?",
    "expect": "Paris",
    "max_tokens": 8,
    "completion_seconds": 5.0,
    "api_key": "",
    "successes": 2,
    "minimum_healthy_seconds": 0.0,
    "deadline_seconds": 30,
}
MODELS = {"data": [{"id": "m", "max_model_len": 2048}]}
PARIS = {"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}]}
CHAT = "/v1/chat/completions"
STREAM = 'data: {"choices": [{"delta": {"content": "Paris"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
ALL = ["/health", "/v1/models", CHAT, "stream"]


class Engine:
    """`answers` maps a path, or "stream", to (status, content), or to a function of how often it was asked before."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/health": (200, ""),
            "/v1/models": (200, MODELS),
            CHAT: (200, PARIS),
            "stream": (200, STREAM),
        }
        self.asked: list[tuple[str, str | None, Any]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = json.loads(body) if body else {}
                path = "stream" if asked.get("stream") else self.path
                count = engine.paths.count(path)
                engine.asked.append((path, self.headers.get("Authorization"), asked))
                found = engine.answers[path]
                status, content = found(count) if isinstance(found, Callable) else found
                data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.base = _gate_probe.base_url("127.0.0.1", self.server.server_port)

    @property
    def paths(self) -> list[str]:
        return [path for path, _key, _body in self.asked]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setattr(_gate_probe, "LOOK_INTERVAL", 0.01)
    engine = Engine()
    yield engine
    engine.server.shutdown()
    engine.server.server_close()


def test_base_url() -> None:
    assert _gate_probe.base_url("192.0.2.1", 8000) == "http://192.0.2.1:8000"
    assert _gate_probe.base_url("2001:db8::1", 8000) == "http://[2001:db8::1]:8000"


def wait(engine: Engine, **more: Any) -> tuple[str, _gate.State, float]:
    return _gate_probe.wait(engine.base, {**OPTIONS, **more})


def test_pass(engine: Engine) -> None:
    verdict, state, at = wait(engine, api_key="secret")
    assert (verdict, state.successes) == (_gate.PASS, 2)
    assert at > 1e9
    assert engine.paths == ALL * 2
    assert [key for _path, key, _asked in engine.asked] == [None, *["Bearer secret"] * 3] * 2
    for _path, _key, asked in engine.asked[2:4]:
        assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("m", 8, 0)
        assert asked["messages"] == [{"role": "user", "content": "Where?"}]
        assert asked["chat_template_kwargs"] == {"enable_thinking": False}


def test_one_look_is_enough_without_a_series(engine: Engine) -> None:
    options = {name: value for name, value in OPTIONS.items() if name not in ("successes", "minimum_healthy_seconds")}
    assert _gate_probe.wait(engine.base, options)[0] == _gate.PASS
    assert engine.paths == ALL


def test_without_a_key_none_is_sent(engine: Engine) -> None:
    wait(engine)
    assert {key for _path, key, _body in engine.asked} == {None}


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/v1/models", (200, {"data": [{"id": "other"}]}), "serves other instead of m"),
        ("/v1/models", (200, {"data": [{"id": "m", "max_model_len": 8}]}), "max_model_len is 8"),
        ("/v1/models", (500, {}), "did not answer with a list of models"),
        (CHAT, (200, {"choices": [{"message": {"content": "!!!"}}]}), "the answer '!!!' does not match"),
        (CHAT, (500, {"error": {"message": "CUDA"}}), "a completion was answered 500 'CUDA'"),
        (CHAT, (200, {}), "without choices"),
        ("stream", (200, STREAM.replace("Paris", "!" * 50)), "the streamed answer repeats '!'"),
        ("stream", (500, {"error": "CUDA"}), "a stream was answered 500 'CUDA'"),
        ("stream", (200, 'data: {"error": {"message": "dead"}}\n\ndata: [DONE]\n\n'), "carried an error event: 'dead'"),
    ],
)  # fmt: skip
def test_fail(engine: Engine, path: str, answer: tuple[int, Any], reason: str) -> None:
    engine.answers[path] = answer
    verdict, state, _at = wait(engine)
    assert verdict == _gate.FAIL
    assert reason in state.reason
    assert engine.paths.count(path) == _gate.MOST_FAILURES
    assert engine.paths[-1] == path, "something was asked after the proof that failed"


@pytest.mark.parametrize("path", ALL[1:])
@pytest.mark.parametrize(("key", "words"), [("", "is not set, and it asks for a key"), ("x", "is not the key")])
def test_a_refused_key_is_an_error_at_once(engine: Engine, path: str, key: str, words: str) -> None:
    engine.answers[path] = (401, {"error": "Unauthorized"})
    verdict, state, _at = wait(engine, api_key=key)
    assert (verdict, engine.paths.count(path)) == (_gate.ERROR, 1)
    assert f"the engine answered 401: vllm_api_key {words}" in state.reason


def test_a_completion_that_hangs_fails_in_time(engine: Engine) -> None:
    """A green health and a list of models say nothing about an engine that does not generate."""
    hung = threading.Event()
    engine.answers[CHAT] = lambda _count: (200, hung.wait(20))
    started = time.monotonic()
    verdict, state, _at = wait(engine, completion_seconds=0.2)
    hung.set()
    assert verdict == _gate.FAIL
    assert "a completion was answered not at all" in state.reason
    assert "timed out" in state.reason
    assert time.monotonic() - started < 20


def test_loading_is_waited_for(engine: Engine) -> None:
    engine.answers["/health"] = lambda count: (503 if count < 5 else 200, "")
    assert wait(engine)[0] == _gate.PASS
    assert engine.paths[:7] == ["/health"] * 6 + ["/v1/models"]


def test_a_busy_engine_is_waited_for(engine: Engine) -> None:
    engine.answers[CHAT] = lambda count: (503, "") if count < 5 else (200, PARIS)
    assert _gate_probe.wait(engine.base, OPTIONS, busy_is_bad=False)[0] == _gate.PASS


@pytest.mark.parametrize(("answer", "last"), [((503, ""), "/health: 503"), ((200, ""), "good answers, but not enough")])
def test_deadline(engine: Engine, answer: tuple[int, str], last: str) -> None:
    engine.answers["/health"] = answer
    verdict, state, _at = wait(engine, deadline_seconds=0)
    assert verdict == _gate.FAIL
    assert state.reason == f"not proven after 0 s; last: {last}"


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gate_probe, "LOOK_INTERVAL", 0.01)
    step = _gate_probe.health("http://127.0.0.1:1")
    assert (step.good, step.bad, step.closed) == (False, False, True)
    assert "refused" in step.reason
    assert _gate_probe.wait("http://127.0.0.1:1", {**OPTIONS, "deadline_seconds": 1})[0] == _gate.FAIL
    verdict, state, _at = _gate_probe.wait("http://127.0.0.1:1", OPTIONS, loaded=True)
    assert (verdict, state.step) == (_gate.GONE, "health")
