# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Of what a host is asked for a status, and that a question without an answer spoils no other one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch
from ansible_collections.gb10.vllm.plugins.modules import host_status

ASKED = {"engine": False, "proxy": False, "keeper": False, "base_dir": "/b", "port": 8001, "interval_seconds": 2.0}
ASKED |= {"proxy_copy_header": "X-C", "socket": "/s", "folder": "/f"}
RUNNING = {"running": True, "current": {"rank": 0}}


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """With what each part was asked; `engine` is what the engine's part answers."""
    asked: dict[str, Any] = {"engine": RUNNING}

    def note(name: str, answer: Any) -> Any:
        def part(*arguments: Any, **_options: Any) -> Any:
            asked[f"{name} asked"] = arguments
            given = asked["engine"] if name == "engine" else answer
            if isinstance(given, Exception):
                raise given
            return given

        return part

    monkeypatch.setattr(host_status._watch_files, "look", note("watch", {"paused": ""}))
    monkeypatch.setattr(host_status._engine_look, "look", note("engine", None))
    monkeypatch.setattr(host_status.window, "look_twice", note("metrics", {"state": "read"}))
    monkeypatch.setattr(host_status._nginx_look, "look", note("proxy", {"admitted": []}))
    monkeypatch.setattr(host_status._hold_counts, "ask", note("hold", None))
    monkeypatch.setattr(host_status._journal, "look", note("journal", {"lock": None}))
    return asked


@pytest.mark.parametrize(
    ("roles", "engine", "parts"),
    [
        ({}, RUNNING, ["watch"]),
        ({"engine"}, RUNNING, ["watch", "engine", "metrics"]),
        ({"engine"}, {"running": True, "current": None}, ["watch", "engine", "metrics"]),
        ({"engine"}, {"running": True, "current": {"rank": 1}}, ["watch", "engine"]),
        ({"engine"}, {"running": False}, ["watch", "engine"]),
        ({"engine"}, _host.HostError("docker is off"), ["watch", "engine"]),
        ({"proxy"}, RUNNING, ["watch", "proxy", "hold"]),
        ({"keeper"}, RUNNING, ["watch", "journal"]),
    ],
)  # fmt: skip
def test_a_host_is_asked_what_it_can_say(questions: dict[str, Any], roles: Any, engine: Any, parts: list[str]) -> None:
    questions["engine"] = engine
    assert list(host_status.look({**ASKED, **dict.fromkeys(roles, True)})) == parts


def test_options_go_to_the_parts_that_have_them(questions: dict[str, Any]) -> None:
    found = host_status.look({**ASKED, "engine": True, "proxy": True, "keeper": True})
    assert questions["engine asked"] == ("/b", 8001)
    assert questions["metrics asked"] == ("127.0.0.1", 8001, 2.0, 2, "X-C")
    assert questions["hold asked"] == ("/s",)
    assert questions["journal asked"] == ("/f",)
    assert found["hold"] == {"helper": False, "counts": {}}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (_host.HostError("docker is off"), "docker is off"),
        (OSError("disk"), "disk"),
        (fetch.ProxyError("the server calls itself nginx"), "set vllm_port to that of the engine"),
    ],
)
def test_a_question_that_fails_is_an_answer(questions: dict[str, Any], error: Exception, words: str) -> None:
    questions["engine"] = error
    found = host_status.look({**ASKED, "engine": True, "keeper": True})
    assert found["engine"]["failed"] is True
    assert words in found["engine"]["msg"]
    assert found["journal"] == {"lock": None}
