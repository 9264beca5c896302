# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One slice of the wait: what the unit and /health say, in how many seconds, and what is learned from it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _gate_probe, _loads
from ansible_collections.gb10.vllm.plugins.modules import engine_ready

WEIGHTS = "(EngineCore pid=9) INFO 11-29 10:11:12 [model.py:1] Starting to load model /models/tiny..."
REFUSED = (
    "(EngineCore pid=9) ERROR 11-29 10:11:12 [core.py:9] ValueError: Free memory on device cuda:0 (40.12/121.63 GiB) on startup is "
    "less than desired GPU memory utilization (0.8, 97.3 GiB)."
)
RUNS = {"ActiveState": "active", "SubState": "running", "Result": "success", "ExecMainStatus": "0"}


class Engine:
    """`looks` is what /health says, one entry per look, the last one for ever; it runs unless `unit` says otherwise."""

    def __init__(self, commands: Any) -> None:
        self.commands, self.looks = commands, [False]
        self.asked = ""
        commands.answers["journalctl --sync"] = (0, "", "")
        self.logs(WEIGHTS)
        self.unit()

    def unit(self, invocation: str = "i1", **changes: str) -> None:
        lines = [f"{name}={value}" for name, value in {**RUNS, "InvocationID": invocation, **changes}.items()]
        self.commands.answers["systemctl show"] = (0, "\n".join(lines), "")

    def logs(self, *lines: str) -> None:
        self.commands.answers["journalctl --unit=vllm.service"] = (0, "\n".join(lines), "")

    def health(self, base: str) -> _gate.Step:
        self.asked = base
        good = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return _gate.Step("health", good=good, reason="/health: 503")


@pytest.fixture
def engine(commands: Any, monkeypatch: pytest.MonkeyPatch) -> Engine:
    engine = Engine(commands)
    monkeypatch.setattr(_gate_probe, "health", engine.health)
    monkeypatch.setattr(_gate_probe, "LOOK_INTERVAL", 0.01)
    monkeypatch.setattr(_loads, "boot_id", lambda: "b1")
    return engine


@pytest.fixture
def wait(engine: Engine, call: Any, tmp_path: Path) -> Any:
    def run(check_mode: bool = False, **options: Any) -> dict[str, Any]:
        defaults = {"deadline_seconds": 1800, "heartbeat_seconds": 0.05, "loads_file": str(tmp_path / "loads.json")}
        result: dict[str, Any] = call(engine_ready, check_mode, **{**defaults, **options})
        return result

    return run


def loads(tmp_path: Path) -> Any:
    path = tmp_path / "loads.json"
    return json.loads(path.read_text()) if path.exists() else {}


def test_ready(engine: Engine, wait: Any) -> None:
    engine.looks = [False, False, True]
    result = wait(address="2001:db8::1", port=8001)
    assert (result["verdict"], result["reason"], result["failure"]) == ("pass", "", "")
    assert (result["invocation"], result["deadline_seconds"], result["expected_seconds"]) == ("i1", 1800, None)
    assert engine.asked == "http://[2001:db8::1]:8001"
    assert result["seconds"] > 0
    assert not result["changed"]


def test_a_slice_that_is_over_says_where_the_start_is(wait: Any) -> None:
    result = wait()
    assert (result["verdict"], result["phase"], result["failure"]) == ("pending", "loading weights", "")
    assert result["last_log_line"] == "Starting to load model /models/tiny..."
    assert result["started_at"] == pytest.approx(time.time(), abs=5)


def test_late(engine: Engine, wait: Any) -> None:
    result = wait(started_at=time.time() - 2000)
    assert (result["verdict"], result["failure"]) == ("fail", "deadline")
    assert result["reason"] == "not ready after 1800 s, the start is at 'loading weights' (/health: 503)"
    assert "expected_load_seconds" in result["advice"]


def test_late_for_a_reason_that_the_log_names(engine: Engine, wait: Any) -> None:
    engine.logs(WEIGHTS, "RuntimeError: NCCL error: unhandled system error")
    result = wait(started_at=time.time() - 2000)
    assert (result["verdict"], result["failure"]) == ("fail", "pair")
    assert "(not ready after 1800 s)" in result["reason"]


@pytest.mark.parametrize(
    ("unit", "lines", "failure", "reason"),
    [
        (
            {"ActiveState": "activating", "SubState": "auto-restart", "ExecMainStatus": "1"},
            [REFUSED],
            "memory_refused",
            "the memory was refused: 40.12 of 121.63 GiB were free, gpu-memory-utilization 0.8 asks for 97.3 GiB "
            "(the engine ended with exit status 1 and waits for its restart)",
        ),
        (
            {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"},
            ["RuntimeError: odd"],
            "unknown",
            "the unit is failed (result exit-code, exit status 1); its last words: RuntimeError: odd",
        ),
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"}, [], "unknown", "the unit is failed"),
    ],
)
def test_gone(engine: Engine, wait: Any, unit: dict[str, str], lines: list[str], failure: str, reason: str) -> None:
    engine.unit(**unit)
    engine.logs(*lines)
    result = wait()
    assert (result["verdict"], result["failure"]) == ("gone", failure)
    assert result["reason"].startswith(reason)
    assert engine.commands.begins("journalctl --sync"), "the last lines were not waited for"


def test_another_start_than_the_first_one_seen_is_gone(engine: Engine, wait: Any) -> None:
    engine.looks = [True]
    engine.unit("i2")
    result = wait(invocation="i1")
    assert result["verdict"] == "gone"
    assert "started again by systemd" in result["reason"]


def test_a_host_that_cannot_be_asked(engine: Engine, wait: Any) -> None:
    engine.commands.answers["systemctl show"] = (1, "", "no bus")
    result = wait()
    assert (result["verdict"], result["failure"]) == ("error", "unmeasured")
    assert "no bus" in result["reason"]


# --- What is learned -------------------------------------------------------------------------------------------------


def test_a_start_is_learned_and_expected_next_time(engine: Engine, wait: Any, tmp_path: Path) -> None:
    engine.looks = [True]
    wait(release="r1", started_at=time.time() - 600, invocation="i1")
    assert loads(tmp_path)["r1"]["cold"] == pytest.approx(600, abs=5)
    engine.unit("i2")
    engine.looks = [False]
    result = wait(release="r1", started_at=time.time() - 10)
    assert result["expected_seconds"] == pytest.approx(600, abs=5)
    assert result["deadline_seconds"] == pytest.approx(1800, abs=5)
    engine.looks = [True]
    wait(release="r1", started_at=time.time() - 60, invocation="i2")
    assert loads(tmp_path)["r1"]["warm"] == pytest.approx(60, abs=5)
    engine.unit("i3")
    engine.looks = [False]
    result = wait(release="r1", started_at=time.time() - 10)
    assert result["expected_seconds"] == pytest.approx(60, abs=5)


def test_a_release_that_once_was_quick_is_not_waited_for_so_long(engine: Engine, wait: Any, tmp_path: Path) -> None:
    (tmp_path / "loads.json").write_text('{"r1": {"boot": "b1", "cold": 200, "warm": 40}}')
    result = wait(release="r1", started_at=time.time() - 661)
    assert (result["verdict"], result["deadline_seconds"], result["expected_seconds"]) == ("fail", 660, 40)
    assert result["reason"].startswith("not ready after 660 s, where its loads here take 40 s, the start is at")
    assert wait(release="r1", started_at=time.time() - 600)["verdict"] == "pending"
    assert wait(started_at=time.time() - 661)["verdict"] == "pending", "nothing is expected of an unnamed release"


@pytest.mark.parametrize(
    ("looks", "options"),
    [
        ([True], {"release": ""}),
        ([True], {"started_at": None}),
        ([True], {"started_at": 1000.0}),
        ([False], {}),
        ([True], {"check_mode": True}),
    ],
    ids=["no release", "no moment", "seen too late", "not ready", "check mode"],
)
def test_nothing_is_learned(
    engine: Engine, wait: Any, tmp_path: Path, looks: list[bool], options: dict[str, Any]
) -> None:
    engine.looks = looks
    wait(**{"release": "r1", "started_at": time.time() - 5, **options})
    assert loads(tmp_path) == {}


def test_the_second_look_at_a_start_changes_nothing(engine: Engine, wait: Any, tmp_path: Path) -> None:
    engine.looks = [True]
    wait(release="r1", started_at=time.time() - 5)
    before = loads(tmp_path)
    wait(release="r1", started_at=time.time() - 20)
    assert loads(tmp_path) == before


def test_a_file_that_cannot_be_written_is_a_warning(
    engine: Engine, wait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[str] = []
    monkeypatch.setattr(engine_ready.AnsibleModule, "warn", lambda _module, words: warned.append(words))
    engine.looks = [True]
    (tmp_path / "file").write_text("")
    result = wait(release="r1", started_at=time.time() - 5, loads_file=str(tmp_path / "file" / "loads.json"))
    assert result["verdict"] == "pass"
    (words,) = warned
    assert words.startswith("the load time could not be kept in")
