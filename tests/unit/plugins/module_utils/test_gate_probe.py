# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate asks a real HTTP server, in order, and stops at the first proof that fails."""

from __future__ import annotations

import json
import threading
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
    "successes": 2,
    "minimum_healthy_seconds": 0.0,
    "deadline_seconds": 30,
}
MODELS = {"data": [{"id": "m", "max_model_len": 2048}]}
PARIS = {"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}]}


class Engine:
    """`answers` maps a path to (status, content), or to a function of how often it was asked before."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/health": (200, ""),
            "/v1/models": (200, MODELS),
            "/v1/chat/completions": (200, PARIS),
        }
        self.asked: list[tuple[str, str | None, Any]] = []
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                count = len([path for path, _key, _body in engine.asked if path == self.path])
                engine.asked.append((self.path, self.headers.get("Authorization"), json.loads(body) if body else None))
                found = engine.answers[self.path]
                status, content = found(count) if isinstance(found, Callable) else found
                data = json.dumps(content).encode()
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


def test_pass(engine: Engine) -> None:
    verdict, state, at = _gate_probe.wait(engine.base, OPTIONS, "secret")
    assert (verdict, state.successes) == (_gate.PASS, 2)
    assert at > 1e9
    assert engine.paths == ["/health", "/v1/models", "/v1/chat/completions"] * 2
    _path, key, asked = engine.asked[2]
    assert key == "Bearer secret"
    assert (asked["model"], asked["max_tokens"], asked["temperature"]) == ("m", 8, 0)
    assert asked["messages"] == [{"role": "user", "content": "Where?"}]
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_a_key_none_is_sent(engine: Engine) -> None:
    _gate_probe.wait(engine.base, OPTIONS, "")
    assert {key for _path, key, _body in engine.asked} == {None}


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/v1/models", (200, {"data": [{"id": "other"}]}), "serves other instead of m"),
        ("/v1/models", (200, {"data": [{"id": "m", "max_model_len": 8}]}), "max_model_len is 8"),
        ("/v1/models", (401, {"error": "key"}), "did not answer with a list of models"),
        (
            "/v1/chat/completions",
            (200, {"choices": [{"message": {"content": "!!!"}}]}),
            "the answer '!!!' does not match",
        ),
        ("/v1/chat/completions", (500, {"error": "CUDA"}), 'was answered 500 {"error": "CUDA"}'),
        ("/v1/chat/completions", (200, {}), "without choices"),
    ],
)
def test_fail(engine: Engine, path: str, answer: tuple[int, Any], reason: str) -> None:
    engine.answers[path] = answer
    verdict, state, _at = _gate_probe.wait(engine.base, OPTIONS, "")
    assert verdict == _gate.FAIL
    assert reason in state.reason
    assert engine.paths.count(path) == _gate.MOST_FAILURES
    assert engine.paths[-1] == path, "something was asked after the proof that failed"


def test_loading_is_waited_for(engine: Engine) -> None:
    engine.answers["/health"] = lambda count: (503 if count < 5 else 200, "")
    verdict, _state, _at = _gate_probe.wait(engine.base, OPTIONS, "")
    assert verdict == _gate.PASS
    assert engine.paths[:7] == ["/health"] * 6 + ["/v1/models"]


def test_deadline(engine: Engine) -> None:
    engine.answers["/health"] = (503, "")
    verdict, state, _at = _gate_probe.wait(engine.base, {**OPTIONS, "deadline_seconds": 0}, "")
    assert verdict == _gate.FAIL
    assert state.reason == "not proven after 0 s; last: /health: 503"


def test_deadline_with_good_answers(engine: Engine) -> None:
    verdict, state, _at = _gate_probe.wait(engine.base, {**OPTIONS, "deadline_seconds": 0}, "")
    assert verdict == _gate.FAIL
    assert state.reason == "not proven after 0 s; last: good answers, but not enough"


def test_nobody_there() -> None:
    step = _gate_probe.health("http://127.0.0.1:1")
    assert (step.good, step.bad) == (False, False)
    assert "refused" in step.reason
