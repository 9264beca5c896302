# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs first, admission after: with a stand-in engine on loopback; only nginx is replaced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_membership
from ansible_collections.gb10.vllm.plugins.modules import proxy_admit
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server

OPTIONS = {
    "name": "spark1", "model": "tiny", "deadline_seconds": 20, "successes": 2, "minimum_healthy_seconds": 0.1, "completion_seconds": 1,
    "loaded": True,
}  # fmt: skip


class Site:
    def __init__(self, server: Server, faults: Path) -> None:
        self.server, self.faults = server, faults
        self.admitted: list[dict[str, Any]] = []

    def admit(self, call: Any, check_mode: bool = False, **more: Any) -> dict[str, Any]:
        options = {**OPTIONS, "server": f"127.0.0.1:{self.server.port}", **more}
        result: dict[str, Any] = call(proxy_admit, check_mode, **options)
        return result


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    folder = tmp_path_factory.mktemp("engine")
    words = [*STAND_IN, "serve", "/models/tiny", "--served-model-name", "tiny", "--host", "127.0.0.1"]
    words += ["--port", "{port}", "--api-key", "right"]
    settings = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.001"}
    settings["STANDIN_FAULTS_FILE"] = str(folder / "faults")
    with Server(words, folder / "log", settings) as server:
        yield server.wait_ready(), folder / "faults"


@pytest.fixture
def site(running: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(*running)
    site.faults.write_text("{}")

    def change(options: dict[str, Any], check_mode: bool, program: Any) -> dict[str, Any]:
        site.admitted.append(options)
        return {"changed": True, "admitted": [], "done_at": 1.0}

    monkeypatch.setattr(_nginx_membership, "change", change)
    return site


def test_a_good_copy_is_admitted(site: Site, call: Any) -> None:
    result = site.admit(call, api_key="right")
    assert (result["verdict"], result["changed"]) == ("pass", True)
    assert result["passed_at"] > 1e9
    (asked,) = site.admitted
    assert (asked["name"], asked["state"]) == ("spark1", "admitted")


@pytest.mark.parametrize(
    ("fault", "proof", "words"),
    [
        ({"garbage": 1}, "completion", "the answer"),
        ({"repeat": 1}, "completion", "repeats 'paris'"),
        ({"empty": 1}, "completion", "is empty"),
        ({"abort": 1}, "completion", "ended with abort"),
        ({"error_event": 1}, "stream", "carried an error event"),
        ({"hang": 1}, "completion", "answered not at all"),
        ({"fast_503": "generate"}, "completion", "answered 503"),
    ],
)
def test_a_bad_copy_is_not_admitted(site: Site, call: Any, fault: dict[str, Any], proof: str, words: str) -> None:
    site.faults.write_text(json.dumps(fault))
    result = site.admit(call, api_key="right", completion_seconds=0.3)
    assert (result["failed"], result["verdict"], result["proof"]) == (True, "fail", proof)
    assert words in result["reason"]
    assert result["msg"] == f"spark1 did not pass the gate: {result['reason']}. It was not admitted"
    assert site.admitted == []


def test_a_thinking_model_is_admitted(site: Site, call: Any) -> None:
    site.faults.write_text('{"think": 1}')
    assert site.admit(call, api_key="right")["verdict"] == "pass"


@pytest.mark.parametrize(
    ("fault", "key", "words"),
    [
        ({"think": "all"}, "right", "raise vllm_gate_max_tokens"),
        ({}, "wrong", "vllm_api_key is not the key"),
        ({}, "", "vllm_api_key is not set"),
    ],
)
def test_a_copy_that_cannot_be_measured(site: Site, call: Any, fault: dict[str, Any], key: str, words: str) -> None:
    site.faults.write_text(json.dumps(fault))
    result = site.admit(call, api_key=key)
    assert (result["failed"], result["verdict"]) == (True, "error")
    assert result["msg"].startswith("spark1 could not be proven: ")
    assert words in result["msg"]
    assert site.admitted == []


def test_an_engine_that_ended(site: Site, call: Any) -> None:
    result = site.admit(call, server="127.0.0.1:1")
    assert (result["failed"], result["verdict"]) == (True, "gone")
    assert "its process ended" in result["msg"]


def test_the_way_through_the_proxy(site: Site, call: Any) -> None:
    """The engine itself stands for a proxy that names no copy."""
    through = f"http://127.0.0.1:{site.server.port}"
    assert site.admit(call, api_key="right", through=through, copy_header="")["verdict"] == "pass"
    result = site.admit(call, api_key="right", through=through, through_seconds=1)
    assert result["failed"] is True
    assert "spark1 is admitted, but within 1 s no answer of it came" in result["msg"]
    assert "(the last one: 200 from no copy)" in result["msg"]


def test_check_mode_asks_nothing(site: Site, call: Any) -> None:
    result = site.admit(call, check_mode=True, server="127.0.0.1:1")
    assert result["changed"] is True
    assert "verdict" not in result
