# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watchdog's loop with hands of the test's own: what is done in which order, and what is written down before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import (
    _gate,
    _gate_probe,
    _members_client,
    _watchdog_look,
    _watchdog_report,
)
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog as w
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog_decide as d
from ansible_collections.gb10.vllm.plugins.module_utils._programs import watchdog

RECORD = {
    "port": 8000,
    "served_model_name": "tiny",
    "max_model_len": 2048,
    "secrets_file": "/nonexistent",
    "rank": 0,
    "budgets": {"gate_deadline": 100, "unit_stop": 50},
}
PROXIES = ["192.0.2.1:8078", "192.0.2.2:8078"]


class World:
    """One engine host and two proxies, as the watchdog meets them."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        self.standing = d.Standing("r1", True, "1-cutover")
        self.sample: dict[str, Any] = {"invocation": "a", "figures": w.Figures()}
        self.at = 0.0
        self.replies = dict.fromkeys(PROXIES, _members_client.Reply(True, "done"))
        self.good = True
        self.config = {
            "base_dir": str(folder),
            "state_dir": str(folder / "state"),
            "run_dir": str(folder / "run"),
            "pause_dir": str(folder / "pause"),
            "address": "127.0.0.1",
            "proxies": PROXIES,
            "gate": {},
            "look_seconds": 5,
            "completion_interval_seconds": 15,
            "stalled_seconds": 120,
            "refused_seconds": 10,
            "working_watts": 0,
            "restarts": 2,
            "window_seconds": 3600,
            "pause_seconds": 0,
        }
        patch.setattr(_watchdog_look, "standing", lambda *_about: (self.standing, RECORD))
        patch.setattr(_watchdog_look, "sample", lambda *_about: w.Sample(at=self.at, **self.sample))
        patch.setattr(_watchdog_look.Asker, "ask", lambda *_about: None)
        patch.setattr(_members_client, "tell_all", self.tell)
        patch.setattr(_gate_probe, "look", self.prove)
        patch.setattr(watchdog, "restart", self.restart)
        self.begin()

    def begin(self) -> None:
        self.dog = watchdog.Watchdog(self.config)

    def tell(self, servers: set[str], state: str, _reason: str) -> dict[str, _members_client.Reply]:
        self.done += [f"{state} {server}" for server in sorted(servers)]
        return {server: self.replies[server] for server in servers}

    def prove(self, *_about: Any) -> _gate.Look:
        self.done.append("gate")
        return _gate.Look(0, [_gate.Step("completion", good=self.good, reason="garbage")])

    def restart(self, _budget: float) -> str:
        remembered = json.loads(Path(self.dog.files.memory).read_text())
        self.done.append(f"restart {len(remembered['acts'])}")
        return ""

    def look(self, seconds: float = 5, **sample: Any) -> list[str]:
        """What is done in so many seconds of looks."""
        self.sample.update(sample)
        self.done = []
        end = self.at + seconds
        while self.at < end:
            self.at += 5
            self.dog.look()
        return self.done

    def acts(self) -> list[str]:
        return [json.loads(line)["act"] for line in Path(self.dog.files.log).read_text().splitlines()]

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(self.dog.files.state).read_text())
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


WITHDRAWN = [f"withdrawn {proxy}" for proxy in PROXIES]
READY = [f"ready {proxy}" for proxy in PROXIES]


def test_every_proxy_is_told_before_the_restart_and_after_the_gate(world: World) -> None:
    assert world.look(20) == []
    assert world.look(15, health="refused") == [*WITHDRAWN, "restart 1"]
    assert world.look(20, invocation="b", began=world.at) == []
    assert world.look(5, health="ok") == ["gate", *READY]
    assert world.look(20) == []
    assert world.acts() == [
        "seen",
        "seen",
        "told",
        "told",
        "seen",
        "restart",
        "restarted",
        "seen",
        "seen",
        "gate",
        "told",
        "told",
    ]


def test_a_proxy_that_does_not_answer_blocks_nothing_and_is_told_later(world: World) -> None:
    world.look(5)
    world.replies[PROXIES[1]] = _members_client.Reply(False, "no answer")
    assert world.look(5, active="activating", sub="auto-restart") == WITHDRAWN
    assert world.look(5) == WITHDRAWN[1:]
    assert world.look(5, active="active", invocation="b") == [WITHDRAWN[1], "gate", *READY]
    assert world.look(5) == READY[1:]
    assert world.state()["untold"] == PROXIES[1:]
    world.replies[PROXIES[1]] = _members_client.Reply(True, "done")
    assert world.look(5) == READY[1:]
    assert world.look(5) == []


def test_a_copy_that_fails_its_gate_is_not_called_ready(world: World) -> None:
    world.look(5)
    world.good = False
    assert world.look(10, invocation="b") == [*WITHDRAWN, "gate", "gate"]
    assert world.acts().count("gate") == 1, "the same reason is said once"
    world.good = True
    assert world.look(5) == ["gate", *READY]


def test_a_watchdog_that_is_killed_goes_on_with_what_it_owes(world: World) -> None:
    world.look(5)
    world.look(5, active="activating", sub="auto-restart")
    world.begin()
    assert world.look(5, active="active", invocation="b") == [*WITHDRAWN, "gate", *READY]


def test_a_reboot_that_it_slept_through_is_gated_as_well(world: World) -> None:
    world.look(5)
    world.begin()
    assert world.look(5, invocation="b") == [*WITHDRAWN, "gate", *READY]


def test_a_new_watchdog_takes_what_runs_as_it_is(world: World) -> None:
    assert world.look(10) == []


def test_it_gives_up_once(world: World) -> None:
    world.look(5)
    assert world.look(60, health="refused") == [*WITHDRAWN, "restart 1", "restart 2"]
    assert world.acts().count("gave_up") == 1
    assert "gave up after 2 restarts" in world.state()["gave_up"]
    world.begin()
    assert world.look(60) == WITHDRAWN, "silent, also after its own restart; a proxy may be told twice"
    assert world.acts().count("gave_up") == 1


def test_paused_it_tells_nobody_anything(world: World) -> None:
    world.look(5)
    world.standing = d.Standing("r1", True, "1-cutover", paused="mine")
    assert world.look(60, health="refused") == []
    assert (world.state()["paused"], world.state()["why_not"]) == ("mine", "paused by mine")


def test_a_rank_of_a_pair_asks_for_the_pair(world: World) -> None:
    world.standing = d.Standing("r1", True, "1-cutover", ranks=2)
    world.look(5)
    assert world.look(15, health="refused") == WITHDRAWN
    request = json.loads(Path(world.dog.files.pair_request).read_text())
    assert request["reason"] == "dead: it was ready, and its port refuses connections"


def test_a_disk_that_takes_nothing_keeps_it_from_restarting_but_not_from_telling(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.look(5)

    def full(*_about: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_watchdog_report.Files, "remember", full)
        assert world.look(60, health="refused") == WITHDRAWN
        assert "No space left" in world.state()["why_not"]
        assert world.acts().count("unsaved") == 1
    assert world.look(5) == ["restart 1"]


@pytest.mark.parametrize(
    ("sample", "asks"),
    [
        ({}, True),
        ({"health": "silent"}, True),
        ({"health": "refused"}, False),
        ({"active": "activating", "health": ""}, False),
    ],
)
def test_whom_it_asks_for_a_token(
    world: World, monkeypatch: pytest.MonkeyPatch, sample: dict[str, Any], asks: bool
) -> None:
    asked: list[str] = []
    world.look(5)
    monkeypatch.setattr(_watchdog_look.Asker, "ask", lambda _self, base, _options, _start: asked.append(base))
    world.look(5, **sample)
    assert asked == (["http://127.0.0.1:8000"] if asks else [])
