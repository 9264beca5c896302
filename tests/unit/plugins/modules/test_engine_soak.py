# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engines that stay well, end, hang and answer badly after they were admitted; systemd and docker answer from a table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import engine_soak
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server

RUNS = {
    "ActiveState": "active",
    "SubState": "running",
    "Result": "success",
    "ExecMainStatus": "0",
    "InvocationID": "i1",
}
AGAIN = {**RUNS, "ActiveState": "activating", "SubState": "auto-restart"}
NO_CONTAINER = (1, "", "Error response from daemon: No such container: vllm")
DEAD = "(APIServer pid=1) ERROR 11-29 10:11:12 [a.py:1] EngineDeadError: EngineCore encountered an issue."


def container(status: str) -> tuple[int, str, str]:
    state = {"Status": status, "Pid": 1, "StartedAt": "s"}
    return 0, json.dumps([{"Id": "i", "Config": {"Image": "m"}, "State": state}]), ""


class Host:
    """Unit and container by the number of the look; the last one stays."""

    def __init__(self, commands: Any, server: Server, faults: Path) -> None:
        self.server, self.faults, self.commands = server, faults, commands
        self.units: list[dict[str, str]] = [RUNS]
        self.containers = [container("running")]
        commands.answers = {
            "systemctl show": lambda: (0, "\n".join(f"{k}={v}" for k, v in self.next(self.units).items()), ""),
            "docker inspect": lambda: self.next(self.containers),
            "journalctl --sync": (0, "", ""),
            "journalctl _SYSTEMD_INVOCATION_ID=i1": (0, DEAD, ""),
        }

    def next(self, values: list[Any]) -> Any:
        return values.pop(0) if len(values) > 1 else values[0]

    @property
    def looks(self) -> int:
        return len(self.commands.begins("systemctl show"))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    folder = tmp_path_factory.mktemp("engine")
    words = [
        *STAND_IN,
        "serve",
        "/models/tiny",
        "--served-model-name",
        "tiny",
        "--host",
        "127.0.0.1",
        "--port",
        "{port}",
    ]
    settings = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.001"}
    settings["STANDIN_FAULTS_FILE"] = str(folder / "faults")
    with Server(words, folder / "log", settings) as server:
        yield server.wait_ready(), folder / "faults"


@pytest.fixture
def host(commands: Any, running: tuple[Server, Path], monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(engine_soak, "LOOK_SECONDS", 0.05)
    running[1].write_text("{}")
    return Host(commands, *running)


@pytest.fixture
def soak(host: Host, call: Any) -> Any:
    def run(check_mode: bool = False, **options: Any) -> dict[str, Any]:
        defaults = {
            "model": "tiny",
            "deadline_seconds": 10,
            "completion_seconds": 0.5,
            "port": host.server.port,
            "soak_seconds": 1,
        }
        result: dict[str, Any] = call(engine_soak, check_mode, **{**defaults, **options})
        return result

    return run


def test_a_good_engine(host: Host, soak: Any) -> None:
    result = soak()
    assert (result["verdict"], result["reason"], result["failure"], result["changed"]) == ("pass", "", "", False)
    assert result["seconds"] >= 1
    assert host.looks > 5


def test_no_seconds_are_one_look_and_the_proof(host: Host, soak: Any) -> None:
    result = soak(soak_seconds=0)
    assert result["verdict"] == "pass"
    assert host.looks == 2


@pytest.mark.parametrize(
    ("units", "words"),
    [
        ([RUNS, RUNS, AGAIN], "ended with exit status 0 and waits for its restart"),
        ([RUNS, {**RUNS, "InvocationID": "i2"}], "started again by systemd"),
        ([RUNS, {**RUNS, "ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"}], "the unit is failed"),
    ],
)
def test_an_engine_that_ends(host: Host, soak: Any, units: list[dict[str, str]], words: str) -> None:
    host.units = units
    result = soak(soak_seconds=600)
    assert (result["failed"], result["verdict"], result["failure"]) == (True, "gone", "engine_dead")
    assert "the engine's core died" in result["reason"]
    assert words in result["reason"]
    assert result["reason"] in result["msg"]
    assert "What to do: " in result["msg"]
    assert result["log"] == [DEAD]
    assert result["seconds"] < 300


def test_a_start_that_is_not_the_admitted_one(soak: Any, host: Host) -> None:
    host.commands.answers["journalctl _SYSTEMD_INVOCATION_ID=i0"] = (0, "", "")
    result = soak(invocation="i0")
    assert (result["verdict"], result["failure"]) == ("gone", "unknown")


def test_a_container_that_is_gone_under_a_unit_that_runs(host: Host, soak: Any) -> None:
    host.containers = [container("running"), container("exited"), NO_CONTAINER]
    result = soak(soak_seconds=600)
    assert (result["failed"], result["verdict"], result["failure"]) == (True, "fail", "health")
    assert result["reason"] == "the container vllm is not there, 3 times in a row after it was admitted"


def test_two_misses_are_borne(host: Host, soak: Any) -> None:
    host.containers = [NO_CONTAINER, NO_CONTAINER, container("running")]
    assert soak()["verdict"] == "pass"
    host.containers = [NO_CONTAINER, container("running")]
    assert soak(soak_seconds=0)["verdict"] == "pass"


@pytest.mark.parametrize(("fault", "words"), [({"fast_503": 1}, "/health: 503")])
def test_health_that_goes(host: Host, soak: Any, fault: dict[str, Any], words: str) -> None:
    host.faults.write_text(json.dumps(fault))
    result = soak(soak_seconds=600)
    assert (result["verdict"], result["failure"]) == ("fail", "health")
    assert words in result["reason"]


@pytest.mark.parametrize(
    ("fault", "verdict", "failure"),
    [
        ({"garbage": 1}, "fail", "completion"),
        ({"hang": 1}, "fail", "completion"),
        ({"error_event": 1}, "fail", "stream"),
        ({"think": "all"}, "error", "completion"),
    ],
)
def test_the_proof_at_the_end(host: Host, soak: Any, fault: dict[str, Any], verdict: str, failure: str) -> None:
    """A green health is all that there was to see before."""
    host.faults.write_text(json.dumps(fault))
    result = soak(soak_seconds=0)
    assert (result["failed"], result["verdict"], result["failure"]) == (True, verdict, failure)


def test_a_busy_engine_is_asked_until_the_deadline(host: Host, soak: Any) -> None:
    host.faults.write_text('{"fast_503": "generate"}')
    result = soak(soak_seconds=0, deadline_seconds=1)
    assert (result["verdict"], result["failure"]) == ("fail", "completion")
    assert result["reason"].startswith("not proven after 1 s; last: a completion was answered 503")


def test_an_engine_that_ends_during_the_proof(host: Host, soak: Any) -> None:
    host.units = [RUNS, AGAIN]
    assert soak(soak_seconds=0)["verdict"] == "gone"


def test_a_rank_without_a_port(soak: Any) -> None:
    assert soak(has_port=False, port=1)["verdict"] == "pass"


def test_a_host_that_cannot_be_asked(host: Host, soak: Any) -> None:
    host.commands.answers["systemctl show"] = (1, "", "no bus")
    result = soak()
    assert (result["verdict"], result["failure"]) == ("error", "unmeasured")
    assert "no bus" in result["msg"]
    assert host.looks == engine_soak.MOST_MISSES


def test_a_question_that_once_is_not_answered_is_borne(host: Host, soak: Any) -> None:
    host.containers = [(1, "", "docker is busy"), container("running")]
    assert soak(soak_seconds=0)["verdict"] == "pass"


def test_check_mode_and_a_wrong_value(host: Host, soak: Any) -> None:
    result = soak(check_mode=True)
    assert (result["verdict"], result["changed"], result["reason"]) == ("skipped", False, "would watch for 1 s")
    assert "soak_seconds is -1: must be at least 0" in soak(soak_seconds=-1)["msg"]
    assert host.looks == 0
