# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, and stop with its proof; systemd and docker answer from a table."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.modules import engine

NO_CONTAINER = (1, "[]", "Error response from daemon: No such container: vllm")
CONTAINER = (
    0,
    '[{"Id": "i", "Config": {"Image": "m"}, "State": {"Status": "running", "Pid": 7, "StartedAt": "s"}}]',
    "",
)


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def host(commands: Any) -> Any:
    """A host with a unit and a container that start and stop as they should; `state` is theirs."""
    commands.state = {"unit": "inactive", "file": "disabled", "load": "loaded", "container": False}
    state = commands.state

    def do(**changes: Any) -> Any:
        return lambda: (state.update(changes), (0, "", ""))[1]

    commands.answers = {
        "systemctl show": lambda: (
            0,
            f"LoadState={state['load']}\nActiveState={state['unit']}\nUnitFileState={state['file']}\n",
            "",
        ),
        "docker inspect": lambda: CONTAINER if state["container"] else NO_CONTAINER,
        "docker rm": do(container=False),
        "systemctl reset-failed": (0, "", ""),
        "systemctl enable": do(file="enabled"),
        "systemctl disable": do(file="disabled"),
        "systemctl start": do(unit="active", container=True),
        "systemctl stop": do(unit="inactive", container=False),
    }
    return commands


FAST = {"settle_interval": 0.01, "settle_bytes": 2**40, "stop_seconds": 5}


def test_start(call: Any, host: Any, port: int) -> None:
    result = call(engine, state="started", port=port)
    assert result["changed"] is True
    assert result["started_at"] > 1e9
    acts = [line for line in host.asked if not line.startswith(("systemctl show", "docker inspect"))]
    assert [line.split()[1] for line in acts] == ["reset-failed", "enable", "start"]
    again = call(engine, state="started", port=port)
    assert again["changed"] is False
    assert "started_at" not in again


def test_start_of_another_release(call: Any, host: Any, port: int, tmp_path: Path) -> None:
    host.answers["systemctl daemon-reload"] = (0, "", "")
    for name in ("a", "b"):
        (tmp_path / "releases" / name).mkdir(parents=True)
        (tmp_path / "releases" / name / "start").write_text("")
    options = {"state": "started", "port": port, "base_dir": str(tmp_path)}
    assert call(engine, check_mode=True, release="a", **options)["changed"] is True
    assert _host.linked_release(str(tmp_path), "current") is None
    assert call(engine, release="a", **options)["changed"] is True
    acts = [line.split()[1] for line in host.asked if not line.startswith(("systemctl show", "docker inspect"))]
    assert acts == ["daemon-reload", "reset-failed", "enable", "start"], "systemd knows the release before it starts"
    again = call(engine, release="a", **options)
    assert again["changed"] is False
    refused = call(engine, release="b", **options)
    assert refused["failed"] is True
    assert "vllm.service is active on release a; it is stopped before the release is switched" in refused["msg"]
    assert _host.linked_release(str(tmp_path), "current") == "a"
    missing = call(engine, release="c", **options)
    assert "release c is not on this host" in missing["msg"]


def test_a_running_engine_that_boot_would_forget(call: Any, host: Any, port: int) -> None:
    host.state.update(unit="active", file="disabled")
    assert call(engine, state="started", port=port)["changed"] is True
    assert host.state["file"] == "enabled"


def test_stop(call: Any, host: Any, port: int) -> None:
    host.state.update(unit="active", file="enabled", container=True)
    result = call(engine, state="stopped", port=port, **FAST)
    assert result["changed"] is True
    assert result["memory_available_bytes"] > 0
    acts = [line.split()[1] for line in host.asked if not line.startswith(("systemctl show", "docker inspect"))]
    assert acts == ["disable", "stop"], "disabled first, or a boot in between would start it again"
    assert call(engine, state="stopped", port=port, **FAST)["changed"] is False


@pytest.mark.parametrize("state", ["started", "stopped"])
def test_check_mode(call: Any, host: Any, port: int, state: str) -> None:
    host.state.update({"unit": "active", "file": "enabled"} if state == "stopped" else {})
    assert call(engine, check_mode=True, state=state, port=port)["changed"] is True
    assert {line.split()[1] for line in host.asked} <= {"show", "inspect"}


def test_an_enabled_unit_that_does_not_run_is_disabled(call: Any, host: Any, port: int) -> None:
    host.state.update(unit="failed", file="enabled")
    assert call(engine, state="stopped", port=port, **FAST)["changed"] is True
    assert host.state["file"] == "disabled"


def test_a_host_without_the_unit_is_stopped(call: Any, host: Any, port: int) -> None:
    host.state.update(load="not-found", file="")
    assert call(engine, state="stopped", port=port, **FAST)["changed"] is False


def test_a_container_without_the_unit_is_removed(call: Any, host: Any, port: int) -> None:
    """As an engine that was started by hand leaves it."""
    host.state.update(load="not-found", file="", container=True)
    assert call(engine, state="stopped", port=port, **FAST)["changed"] is True
    assert host.state["container"] is False
    assert not host.begins("systemctl stop")


@pytest.mark.parametrize(
    ("what", "words"),
    [("unit", "unit vllm.service is deactivating"), ("container", "container vllm is running"), ("port", "is open")],
)
def test_not_proven(call: Any, host: Any, port: int, what: str, words: str) -> None:
    """Whatever is left is named, and it is a failure."""
    host.state.update(unit="active", file="enabled", container=True)
    if what == "unit":
        host.answers["systemctl stop"] = lambda: (host.state.update(unit="deactivating", container=False), (0, "", ""))[
            1
        ]
    if what == "container":
        host.answers["systemctl stop"] = lambda: (host.state.update(unit="inactive"), (0, "", ""))[1]
        host.answers["docker rm"] = (1, "", "device busy")
    options = {**FAST, "stop_seconds": 1, "state": "stopped", "port": port}
    if what == "port":
        with socket.create_server(("127.0.0.1", port)):
            result = call(engine, **options)
    else:
        result = call(engine, **options)
    assert result["failed"] is True
    assert "the engine is not proven stopped" in result["msg"]
    assert words in result["msg"]


def test_stop_waits_for_the_memory(call: Any, host: Any, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal samples, not one."""
    host.state.update(unit="active", file="enabled")
    samples = [10, 20, 60, 100, 101, 101]
    monkeypatch.setattr(_host, "memory_available_bytes", lambda: samples.pop(0) if len(samples) > 1 else samples[0])
    result = call(engine, state="stopped", port=port, **{**FAST, "settle_bytes": 1})
    assert result["changed"] is True
    assert result["memory_available_bytes"] == 101
    assert len(samples) == 1


def test_memory_that_never_settles(call: Any, host: Any, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    host.state.update(unit="active", file="enabled")
    samples = iter(range(0, 10**9, 1000))
    monkeypatch.setattr(_host, "memory_available_bytes", lambda: next(samples))
    result = call(engine, state="stopped", port=port, **{**FAST, "settle_bytes": 1, "stop_seconds": 1})
    assert "the free memory still changes" in result["msg"]


def test_a_failed_start_is_explained(call: Any, host: Any, port: int) -> None:
    host.answers["systemctl start"] = (1, "", "Unit docker.service not found.")
    result = call(engine, state="started", port=port)
    assert result["failed"] is True
    assert "Unit docker.service not found." in result["msg"]
