# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The eyes of the stories, where being blind would let a story pass."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path
from typing import Any

import observe
import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server

BOTH = (_nginx.Server("spark1", "198.18.90.11:8000"), _nginx.Server("spark2", "198.18.90.12:8000"))


@pytest.mark.parametrize("servers", [(), BOTH[:1], BOTH[1:], BOTH])
def test_admitted_reads_what_the_module_writes(
    servers: tuple[_nginx.Server, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _nginx.render(_nginx.Membership(servers=servers))
    monkeypatch.setattr(observe.lab, "on", lambda _host, _command: text)
    assert observe.admitted() == {server.name for server in servers}


@pytest.mark.parametrize(
    ("faults", "status", "good"),
    [({}, 200, True), ({"STANDIN_GARBAGE": "1"}, 200, False), ({"STANDIN_FAST_503": "1"}, 503, False)],
)
def test_ask(faults: dict[str, str], status: int, good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [*STAND_IN, "serve", "m", "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", "{port}"]
    with Server(command, tmp_path / "log", {"STANDIN_LOAD_SECONDS": "0.1", **faults}) as server:
        server.wait_ready()
        monkeypatch.setattr(observe.lab, "base_url", lambda _proxy: f"http://127.0.0.1:{server.port}/v1")
        answer = observe.ask()
    assert (answer.status, answer.good) == (status, good)
    assert observe.ask(1).status == 0, "nobody is there any more"


def test_must_serve_wants_every_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def only(copy: str) -> observe.Answer:
        return observe.Answer(200, copy, None, "Paris")

    monkeypatch.setattr(observe, "admitted", lambda _proxy: {"spark1", "spark2"})
    monkeypatch.setattr(observe, "ask", lambda proxy: only("spark1"))
    with pytest.raises(AssertionError, match="answers came from"):
        observe.must_serve(observe.HOSTS)
    answers = itertools.cycle([only("spark1"), only("spark2")])
    monkeypatch.setattr(observe, "ask", lambda proxy: next(answers))
    observe.must_serve(observe.HOSTS)
    with pytest.raises(AssertionError):
        observe.must_serve({"spark1"})


@pytest.mark.parametrize(
    ("step", "host", "since", "expected"),
    [
        ("withdrawn", "spark2", 10, True),
        ("withdrawn", "spark2", 30, False),
        ("withdrawn", "spark", 10, False),
        ("stopped", "spark2", 10, False),
    ],
)
def test_happened(step: str, host: str, since: float, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = [{"time": 20.0, "step": "withdrawn", "host": "spark1,spark2"}]
    monkeypatch.setattr(observe.lab, "journal", lambda _keeper: events)
    assert observe.happened(step, host, since) is expected


def test_in_words_finds_a_wrapped_sentence() -> None:
    done = subprocess.CompletedProcess(["x"], 1, "it serves its\n    previous release", " again")
    assert observe.in_words(done) == "it serves its previous release again"


def test_untouched_sees_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "current", lambda _host: "replicated-1")
    monkeypatch.setattr(observe, "start_of", lambda _host: str(time.monotonic_ns()))
    with pytest.raises(AssertionError), observe.untouched("spark2"):
        pass
