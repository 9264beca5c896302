# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program of the memory guard, on a host made of files: what it reads, kills, runs and writes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _guard_host, _host
from ansible_collections.gb10.vllm.plugins.module_utils._guard_settings import Settings
from ansible_collections.gb10.vllm.plugins.module_utils._programs import memory_guard

GIB = 1 << 20  # in kB, as meminfo counts


class Ended(Exception):
    """No more samples."""


class Group:
    """An engine's processes."""

    def __init__(self) -> None:
        self.alive, self.killed_at = True, 0

    def populated(self) -> bool:
        return self.alive

    def kill(self) -> None:
        self.alive = False

    def close(self) -> None:
        pass


class Host:
    """Samples for a program, one for each time it sleeps, and what it ran."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.group, self.commands = folder, Group(), []  # type: Path, Group, list[list[str]]
        self.unit = {"ActiveState": "active", "UnitFileState": "enabled", "InvocationID": "1", "MainPID": "7"}
        self.clock = 0.0
        self.killed_after: int | None = None
        (folder / "pause").mkdir()
        (folder / "current").mkdir()
        self.release({"ranks": 1, "model": "/nowhere", "volumes": [], "command": []})
        self.sample(30)
        settings = Settings(
            warn_gib=10, floor_gib=6, kill_gib=3, resume_gib=90, resume_seconds=20, hook=["/hook"], meminfo=str(folder / "meminfo"),
            base_dir=str(folder), state_dir=str(folder), run_dir=str(folder / "run"),
        )  # fmt: skip
        (folder / "run").mkdir()
        monkeypatch.setattr(_host, "run", lambda command, **_more: self.commands.append(command))
        monkeypatch.setattr(_guard_host, "unit_state", lambda _unit: self.unit)
        monkeypatch.setattr(_guard_host, "find_groups", lambda *_more: [self.group])
        monkeypatch.setattr(_guard_host, "drop_page_cache", lambda _folders: "pages")
        monkeypatch.setattr(_guard_host, "largest_consumers", lambda: "9 GiB a build")
        monkeypatch.setattr(time, "monotonic", lambda: self.clock)
        self.program = memory_guard.Program(settings)
        # Each task at once, and in the order in which it was asked for.
        monkeypatch.setattr(memory_guard.Worker, "ask", lambda _self, task: task())
        self.program.groups = [self.group]  # type: ignore[list-item]
        self.monkeypatch = monkeypatch

    def release(self, record: dict[str, Any]) -> None:
        (self.folder / "current" / "release.json").write_text(json.dumps(record))

    def sample(self, available: float) -> None:
        size = round(available * GIB)
        (self.folder / "meminfo").write_text(f"MemFree: {size} kB\nMemAvailable: {size} kB\n")

    def watch(self, samples: list[float], seconds: float = 1) -> None:
        left = list(samples)

        def sleep(_pace: float) -> None:
            if not self.group.alive and self.killed_after is None:
                self.killed_after = len(samples) - len(left)
            if not left:
                raise Ended
            self.clock += seconds
            self.sample(left.pop(0))

        self.monkeypatch.setattr(time, "sleep", sleep)
        with pytest.raises(Ended):
            self.program.watch()

    def state(self) -> dict[str, Any]:
        return json.loads((self.folder / "run" / "memory_guard.json").read_text())

    def did(self) -> list[str]:
        return [act["act"] for act in self.program.acts if act["act"] not in ("warn", "eased")]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path, monkeypatch)


def test_a_fall_kills_on_the_fourth_sample(host: Host) -> None:
    host.watch([30, 22, 9, 3])
    assert host.killed_after == 4
    assert host.did() == ["kill", "refuse"]
    assert ["systemctl", "stop", "--no-block", "vllm.service"] in host.commands
    assert host.commands[-1][-2:] == ["/hook", "refuse"]


def test_noise_does_nothing(host: Host) -> None:
    host.watch([30, 30, 5, 30, 2, 30, 30, 7, 7, 5.9, 7, 5.9, 7])
    assert host.killed_after is None
    assert host.did() == []
    assert host.commands == []


def test_what_is_held_comes_back(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000 + host.clock)
    host.watch([30, 22, 9, 3])
    host.unit["ActiveState"] = "inactive"
    (host.folder / "pause" / "rollout.json").write_text("{}")
    host.watch([110] * 60)
    state = host.state()
    assert state["hold"]["held"]
    assert "paused by rollout.json" in state["hold"]["words"]
    own = json.loads((host.folder / "pause" / "memory-guard.json").read_text())
    assert own["until"] > 1000 + host.clock
    (host.folder / "pause" / "rollout.json").unlink()
    host.watch([110] * 5)
    assert host.did()[-1] == "start"
    assert host.commands[-2:] == [
        ["systemctl", "reset-failed", "vllm.service"],
        ["systemctl", "start", "--no-block", "vllm.service"],
    ]
    assert not (host.folder / "pause" / "memory-guard.json").exists()
    assert 'acts_total{act="start"} 1' in (host.folder / "metrics" / "memory_guard.prom").read_text()


def test_a_rank_of_a_pair_is_started_by_who_keeps_the_pair(host: Host) -> None:
    host.release({"ranks": 2})
    host.watch([30, 22, 9, 3])
    host.unit["ActiveState"] = "inactive"
    host.watch([110] * 5)
    host.monkeypatch.setattr(time, "time", lambda: 2e12)
    host.watch([110] * 5)
    host.monkeypatch.setattr(time, "time", lambda: 2e12 + 60)
    host.watch([110] * 5)
    assert "memory guard" in json.loads((host.folder / "run" / "pair-restart").read_text())["reason"]
    assert ["systemctl", "start", "--no-block", "vllm.service"] not in host.commands


def test_a_warning_names_who_holds_the_most(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    host.watch([9] * 8)
    assert host.state()["level"] == "warn"
    assert (
        "<4>warn: 9.00 GiB available, 9.00 GiB free, floor 6 GiB; the largest are 9 GiB a build"
        in capsys.readouterr().err
    )
    assert host.did() == []


def test_a_hold_outlives_the_program(host: Host) -> None:
    host.watch([30, 22, 9, 3])
    host.watch([3] * 3)
    again = memory_guard.Program(host.program.settings)
    assert again.hold.since is not None
    assert again.hold.since == host.program.hold.since


def test_what_fails_is_told_and_forgotten(capsys: pytest.CaptureFixture[str]) -> None:
    worker = memory_guard.Worker()
    done: list[int] = []

    def breaks() -> None:
        raise ValueError("no")

    worker.start()
    worker.ask(breaks)
    worker.ask(lambda: done.append(1))
    deadline = time.monotonic() + 10
    while not done and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done == [1]
    assert "<3>breaks failed: no" in capsys.readouterr().err


def test_the_way_to_a_kill_can_be_rehearsed(host: Host) -> None:
    memory_guard.rehearse(host.program.settings)
    assert host.group.alive
