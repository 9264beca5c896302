# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's side of the modules; only the call to a host is replaced."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.playbook.task import Task
from ansible_collections.gb10.vllm.plugins.action import (
    engine,
    engine_ready,
    engine_validate,
    proxy_server,
    release,
    rollout_lock,
    rollout_plan,
    rollout_settle,
    site_validate,
    sweep_report,
)

IMAGE = f"eugr/vllm@sha256:{'1' * 64}"


def action(plugin: Any, arguments: dict[str, Any], check_mode: bool = False) -> Any:
    task = Task()
    task.args = arguments
    task.check_mode = check_mode
    return plugin.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())


class Host:
    """Answers calls of the module with the given results and keeps what it was called with."""

    def __init__(self, *results: dict[str, Any]) -> None:
        self.results = list(results)
        self.calls: list[dict[str, Any]] = []

    def __call__(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        self.calls.append({"module": module_name, **module_args})
        return self.results.pop(0)


def look(verdict: str, **more: Any) -> dict[str, Any]:
    return {
        "changed": False, "verdict": verdict, "reason": "/health: 503", "failure": "deadline", "advice": "look at the host", "seconds": 12.4,
        "deadline_seconds": 60, "expected_seconds": None, "started_at": 1000.0, "phase": "loading weights",
        "last_log_line": "shard 1 of 2", "log": [f"line {n}" for n in range(20)], "invocation": "abc", **more,
    }  # fmt: skip


def ready(
    monkeypatch: pytest.MonkeyPatch, host: Host, check_mode: bool = False, **arguments: Any
) -> tuple[dict[str, Any], list[str]]:
    """Result of the action, and what the person at the terminal saw."""
    shown: list[str] = []
    monkeypatch.setattr(engine_ready.display, "display", lambda words, color=None: shown.append(words))
    monkeypatch.setattr(engine_ready, "RETRY_SECONDS", 0)
    plugin = action(engine_ready, {"deadline_seconds": 60, **arguments}, check_mode)
    plugin._execute_module = host
    return plugin.run(task_vars={"inventory_hostname": "spark1"}), shown


def test_ready_shows_a_heartbeat_per_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(
        look("pending"),
        look("pending", phase="compiling", last_log_line="", seconds=22.6, expected_seconds=31.2, deadline_seconds=153),
        look("pass", seconds=31.0),
    )
    result, shown = ready(monkeypatch, host)
    assert shown == [
        "  spark1: loading weights, 12 s (at most 60 s): shard 1 of 2",
        "  spark1: compiling, 23 s (expected 31 s, at most 153 s)",
        "  spark1: loaded after 31 s",
    ]
    assert not result.get("failed")
    assert (result["verdict"], result["seconds"]) == ("pass", 31.0)
    assert "log" not in result
    assert [call.get("started_at") for call in host.calls] == [None, 1000.0, 1000.0], "the host's clock counts, once"
    assert [call.get("invocation") for call in host.calls] == [None, "abc", "abc"]


@pytest.mark.parametrize(("given", "release"), [({"started_at": 5.0}, "r1"), ({}, None)])
def test_ready_learns_only_from_a_start_whose_moment_is_known(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], release: str | None
) -> None:
    host = Host(look("pass"))
    ready(monkeypatch, host, release="r1", **given)
    (call,) = host.calls
    assert (call["module"], call.get("started_at"), call.get("release")) == (
        "gb10.vllm.engine_ready",
        given.get("started_at"),
        release,
    )


@pytest.mark.parametrize(
    ("verdict", "meaning"),
    [("fail", "is not ready in time"), ("gone", "process ended"), ("error", "could not be looked at")],
)
def test_ready_explains(monkeypatch: pytest.MonkeyPatch, verdict: str, meaning: str) -> None:
    monkeypatch.setattr(engine_ready, "LOST_SECONDS", 0)
    result, shown = ready(monkeypatch, Host(look(verdict)))
    assert result["failed"] is True
    assert shown == []
    for words in (
        "spark1 is not ready after 12 s",
        verdict,
        meaning,
        "/health: 503. What to do: look at the host. It was not admitted",
        "Last phase: loading weights",
        "line 19",
        "journalctl",
    ):
        assert words in result["msg"]
    assert "line 7\n" not in result["msg"], "more than the last lines of the log"


def test_ready_explains_an_engine_that_said_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _shown = ready(monkeypatch, Host(look("gone", log=[], advice="")))
    assert "/health: 503. It was not admitted. Last phase: loading weights; it logged nothing. More" in result["msg"]


def test_ready_hands_on_that_the_module_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _shown = ready(monkeypatch, Host(look("pending"), {"failed": True, "msg": "x"}))
    assert (result["failed"], result["msg"]) == (True, "x")


class Unreachable(Host):
    """A result of None is a host that cannot be reached."""

    def __call__(self, module_name: str, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        result = super().__call__(module_name, module_args, task_vars)
        if not result:
            raise AnsibleConnectionFailure("no route to host")
        return result


def test_ready_bears_a_short_loss_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Unreachable({}, look("pending"), {}, {}, look("pass"))
    result, shown = ready(monkeypatch, host, started_at=5.0)
    assert (result["verdict"], result.get("failed")) == ("pass", None)
    assert [line for line in shown if "no connection" in line] == ["  spark1: no connection for 0 s, trying again"] * 3
    assert len(host.calls) == 5


def test_ready_looks_again_when_the_host_could_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    error = look("error", reason="docker did not answer", failure="unmeasured")
    result, shown = ready(monkeypatch, Host(look("pending"), error, look("pass")))
    assert result["verdict"] == "pass"
    assert "  spark1: docker did not answer for 0 s, trying again" in shown


def test_ready_calls_a_host_lost_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_ready, "LOST_SECONDS", 0.2)
    monkeypatch.setattr(engine_ready.time, "sleep", lambda seconds: None)
    result, _shown = ready(monkeypatch, Unreachable(look("pending"), *[{}] * 2_000_000))
    assert (result["failed"], result["verdict"], result["failure"]) == (True, "error", "unreachable")
    assert result["unreachable_host"] is True
    assert "unreachable" not in result, "Ansible would run no rescue"
    assert "spark1 could not be reached: no route to host; tried for" in result["msg"]
    assert "Last seen: loading weights" in result["msg"]
    assert (result["phase"], result["seconds"]) == ("loading weights", 12.4)


def test_ready_in_check_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _shown = ready(monkeypatch, Host(), check_mode=True)
    assert (result["verdict"], result["changed"], result["reason"]) == ("skipped", False, "would wait for up to 60 s")


def test_release_reads_the_mods(tmp_path: Path) -> None:
    (tmp_path / "mod").mkdir()
    (tmp_path / "mod" / "run.sh").write_text("echo\n")
    plugin = action(release, {"model": "m", "mods": [str(tmp_path / "mod")]})
    plugin._execute_module = host = Host({"changed": True, "id": "x"})
    assert plugin.run(task_vars={})["id"] == "x"
    (call,) = host.calls
    assert call["mods_content"] == {"mod": {"run.sh": {"content": "echo\n", "executable": False}}}
    assert "@" in call["made_by"]
    assert call["model"] == "m"


def test_release_without_mods() -> None:
    plugin = action(release, {"made_by": "ann"})
    plugin._execute_module = host = Host({})
    plugin.run(task_vars={})
    assert host.calls == [{"module": "gb10.vllm.release", "mods_content": {}, "made_by": "ann"}]


def test_release_with_a_mod_that_is_none(tmp_path: Path) -> None:
    plugin = action(release, {"mods": [str(tmp_path)]})
    plugin._execute_module = Host()
    with pytest.raises(AnsibleActionFail, match="has no run.sh"):
        plugin.run(task_vars={})


def validate(**changes: Any) -> dict[str, Any]:
    wanted = {
        "topology": "replicated", "image": IMAGE, "model": "m", "arguments": {}, "environment": {"A": "1"}, "container_options": [],
        "volumes": [], "mods": [], "port": 8000, "master_port": 1, "listen_address": "0.0.0.0", "expected_load_seconds": 60,
        "shutdown_seconds": 20, "ranks": 1,
    }  # fmt: skip
    arguments = {
        "host": "a", "engines": ["a"], "address": "192.0.2.1", "link_address": "192.0.2.2", "secret_names": changes.pop("secret_names", []),
        "release": {**wanted, **changes},
    }  # fmt: skip
    return action(engine_validate, arguments).run(task_vars={})


def test_validate() -> None:
    result = validate()
    assert not result.get("failed")
    assert result["entry"] == {
        "name": "a", "topology": "replicated", "address": "192.0.2.1", "link_address": "192.0.2.2", "port": 8000,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": "x", "port": 0}, ["vllm_image is 'x' on a", "vllm_port is 0 on a"]),
        (
            {"mods": ["/nowhere/x"]},
            ["vllm_replicated_mods of a: mod folder /nowhere/x on the controller has no run.sh"],
        ),
        ({"mods": "/nowhere/x"}, ["vllm_replicated_mods is '/nowhere/x' on a"]),
        (
            {"secret_names": ["A", "B"]},
            ["environment name A on a stands in vllm_secret_environment and in the engine's"],
        ),
    ],
)
def test_validate_says_everything(changes: dict[str, Any], words: list[str]) -> None:
    result = validate(**changes)
    assert result["failed"] is True
    assert len(result["problems"]) == len(words)
    for problem, expected in zip(sorted(result["problems"]), sorted(words), strict=True):
        assert problem.startswith(expected)
        assert problem in result["msg"]


def test_site_validate() -> None:
    host = {"name": "a", "topology": "replicated", "address": "192.0.2.1", "link_address": "192.0.2.1", "port": 8000}
    groups = {"all": ["a"], "ungrouped": [], "engines": ["a"], "proxies": ["a"]}
    assert not action(site_validate, {"hosts": [host], "groups": groups}).run(task_vars={}).get("failed")
    result = action(site_validate, {"hosts": [host], "groups": {**groups, "proxies": []}}).run(task_vars={})
    assert result["failed"] is True
    assert "the group proxies" in result["msg"]


def facts(current: str | None, staged: str, previous: str | None = None) -> dict[str, Any]:
    def record(identity: str | None) -> dict[str, Any] | None:
        return {"id": identity, "topology": "replicated", "rank": 0, "ranks": 1} if identity else None

    return {
        "name": "a", "rank": 0, "staged": {"id": staged, "manifest": {"topology": "replicated", "rank": 0, "ranks": 1, "id": ""}},
        "engine": {
            "current": record(current), "previous": record(previous), "running": True, "healthy": True,
            "stable": [{"rollout": "1-cutover", "release": previous}] if previous else [],
            "records": {str(previous): record(previous)},
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "path", "goes_to"), [("staged", "switch", "replicated-new"), ("stable", "switch", "replicated-old")]
)
def test_plan(target: str, path: str, goes_to: str) -> None:
    engines = [facts("replicated-now", "replicated-new", "replicated-old")]
    result = action(rollout_plan, {"engines": engines, "admitted": ["a"], "target": target}).run(task_vars={})
    assert (result["path"], result["hosts"]["a"]["release"], result["changed"]) == (path, goes_to, False)


def test_plan_refused() -> None:
    result = action(rollout_plan, {"engines": [facts("x", "x")], "admitted": [], "target": "stable"}).run(task_vars={})
    assert result["failed"] is True
    assert "host a has never run a release that became stable" in result["msg"]


def test_settle_does_not_fail_by_itself() -> None:
    """The word failed in a result would end the play before anything is put right."""
    plan = {"topology": "replicated", "path": "switch", "hosts": {"a": {"admit": True, "back": None}}}
    result = action(rollout_settle, {"plan": plan, "results": {}}).run(task_vars={})
    assert "failed" not in result
    assert (result["ok"], result["failed_hosts"]) == (False, {"a": "the host could not be reached"})


class Site:
    """Answers the lock module; keeps what it was asked."""

    def __init__(self, holder: dict[str, Any] | None) -> None:
        self.holder = holder
        self.calls: list[dict[str, Any]] = []

    def __call__(self, module_name: str | None, module_args: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        self.calls.append(module_args)
        return {"holder": self.holder, "changed": module_args["state"] != "seen"}


def ended_process() -> dict[str, Any]:
    """What the lock of a process says that has ended since."""
    process = subprocess.Popen(["sleep", "60"])
    seen = rollout_lock.controller(process.pid)
    process.kill()
    process.wait()
    return seen


@pytest.mark.parametrize(
    ("controller", "gone"),
    [
        (lambda: rollout_lock.controller(os.getpid()), False),
        (ended_process, True),
        (lambda: {**rollout_lock.controller(os.getpid()), "started": "another time"}, True),
        (lambda: {**rollout_lock.controller(os.getpid()), "boot": "an earlier one"}, True),
        (lambda: {**rollout_lock.controller(os.getpid()), "host": "another"}, None),
        (dict, None),
    ],
)
def test_lock_looks_for_the_process_that_holds_it(controller: Any, gone: bool | None) -> None:
    site = Site({"rollout": "1-cutover", "controller": controller()})
    plugin = action(rollout_lock, {"state": "held", "rollout": "2-resume"})
    plugin._execute_module = site
    plugin.run(task_vars={})
    assert [call["state"] for call in site.calls] == ["seen", "held"]
    assert site.calls[1].get("gone") is gone
    assert site.calls[1]["controller"]["pid"] == os.getppid()
    assert site.calls[1]["who"].endswith(f"@{socket.gethostname()}")


def test_a_host_that_cannot_be_reached_is_a_failure() -> None:
    def lost(**_arguments: Any) -> dict[str, Any]:
        raise AnsibleConnectionFailure("No route to host")

    plugin = action(engine, {"state": "stopped"})
    plugin._task.delegate_to = None
    plugin._execute_module = lost
    result = plugin.run(task_vars={"inventory_hostname": "spark2"})
    assert (result["failed"], result["unreachable_host"]) == (True, True)
    assert result["msg"] == "spark2 could not be reached: No route to host"
    assert not result.get("unreachable")


def drained(seconds: float, connections: int) -> dict[str, Any]:
    return {
        "changed": True, "drained": connections == 0, "connections": connections, "waited_seconds": seconds,
        "reloaded_at": 1.0, "done_at": seconds, "msg": "spark1 is withdrawn; more",
    }  # fmt: skip


def test_a_drain_is_waited_for_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(proxy_server.display, "display", lambda words, color=None: shown.append(words))
    host = Host(drained(10, 3), drained(10, 1), {**drained(2, 0), "changed": False})
    plugin = action(proxy_server, {"name": "spark1", "state": "withdrawn", "drain_seconds": 25})
    plugin._execute_module = host
    result = plugin.run(task_vars={})
    assert [call["drain_seconds"] for call in host.calls] == [10, 10, 5]
    assert (result["drained"], result["waited_seconds"], result["reloaded_at"], result["changed"]) == (
        True,
        22,
        1.0,
        True,
    )
    assert shown == [
        "  spark1 is withdrawn: 3 connections left after 10 of at most 25 s",
        "  spark1 is withdrawn: 1 connections left after 20 of at most 25 s",
    ]


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (4, 4), (-1, -1)])
def test_a_short_drain_is_one_call(asked: int, given: int) -> None:
    host = Host(drained(max(asked, 0), 2))
    plugin = action(proxy_server, {"name": "spark1", "state": "withdrawn", "drain_seconds": asked})
    plugin._execute_module = host
    assert plugin.run(task_vars={})["drained"] is False
    assert [call["drain_seconds"] for call in host.calls] == [given]


def test_the_page_of_an_evaluation_has_the_record_for_another_site_beside_it(tmp_path: Path) -> None:
    score = {"time": 1.0, "score": 86, "verdict": "accepted", "label": "spark3"}
    arguments = {"title": "Scores", "name": "evaluation-x", "scores": [score], "local_folder": str(tmp_path / "new")}
    assert action(sweep_report, {**arguments, "record": {"id": "x"}}, check_mode=True).run(task_vars={})["local"]
    assert not (tmp_path / "new").exists()
    found = action(sweep_report, {**arguments, "record": {"id": "x"}}).run(task_vars={})
    assert found["local"] == f"{tmp_path}/new/evaluation-x.html"
    assert json.loads((tmp_path / "new" / "evaluation-x.record.json").read_text()) == {"id": "x"}
    action(sweep_report, {**arguments, "name": "tune"}).run(task_vars={})
    assert not (tmp_path / "new" / "tune.record.json").exists(), "what has no record has no such file"
