# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host lacks, each with the way out; docker and ip answer from a table."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.modules import host_info

INFO = {"ServerVersion": "28.3", "Runtimes": {"runc": {}, "nvidia": {}}}
LINKS = [
    {"ifname": "lo", "flags": ["UP"], "addr_info": [{"local": "127.0.0.1"}, {"local": "::1"}]},
    {"ifname": "enp1", "flags": ["UP", "LOWER_UP"], "addr_info": [{"local": "192.0.2.1"}]},
    {"ifname": "enp2", "flags": ["BROADCAST"]},
]


@pytest.fixture
def host(commands: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(host_info, "has_gpu_description", lambda: False)
    commands.answers = {
        "docker info": (0, json.dumps(INFO), ""),
        "ip -json address show": (0, json.dumps(LINKS), ""),
        "systemctl show": (0, "ActiveState=inactive\n", ""),
        "docker inspect": (1, "[]", "No such container"),
    }
    return commands


@pytest.mark.parametrize(
    ("answer", "version", "problem"),
    [
        ((0, json.dumps(INFO), ""), "28.3", ""),
        (
            (0, json.dumps({"ServerVersion": "28.3", "Runtimes": None}), ""),
            "28.3",
            "has no GPU runtime: install nvidia-container-toolkit",
        ),
        ((1, "", "permission denied\n"), "", "does not answer (permission denied)"),
        ((0, json.dumps({"ServerErrors": ["Cannot connect"]}), ""), "", "does not answer (Cannot connect)"),
        ((0, "", ""), "", "does not answer (no answer)"),
    ],
)
def test_docker(host: Any, answer: tuple[int, str, str], version: str, problem: str) -> None:
    host.answers["docker info"] = answer
    seen, problems = host_info.docker_problems(gpus=True)
    assert (seen, len(problems)) == (version, 1 if problem else 0)
    assert problem in "".join(problems)


def test_gpus_only_where_they_are_asked_for(host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    host.answers["docker info"] = (0, json.dumps({"ServerVersion": "28.3", "Runtimes": {"runc": {}}}), "")
    assert host_info.docker_problems(gpus=False) == ("28.3", [])
    monkeypatch.setattr(host_info, "has_gpu_description", lambda: True)
    assert host_info.docker_problems(gpus=True) == ("28.3", [])


def test_no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    version, (problem,) = host_info.docker_problems(gpus=True)
    assert version == ""
    assert problem.startswith("docker is not installed on this host: install Docker")


@pytest.mark.parametrize(
    ("address", "interface", "problem"),
    [
        ("192.0.2.1", "enp1", ""),
        ("", "", ""),
        ("192.0.2.2", "", "vllm_address 192.0.2.2 is not an address of this host (it has 127.0.0.1, 192.0.2.1, ::1)"),
        ("", "enp9", "vllm_link_interface enp9 does not exist on this host (it has enp1, enp2, lo)"),
        ("", "enp2", "vllm_link_interface enp2 is down"),
    ],
)
def test_network(host: Any, address: str, interface: str, problem: str) -> None:
    problems = host_info.network_problems(address, interface)
    assert len(problems) == (1 if problem else 0)
    assert problem in "".join(problems)


def test_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refusing is answering; silence is not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        open_port = server.getsockname()[1]
        monkeypatch.setattr(host_info, "PEER_PORTS", (open_port,))
        assert host_info.answers("127.0.0.1")
    assert host_info.answers("127.0.0.1"), "a refusal is an answer"

    def silent(*_arguments: Any, **_options: Any) -> Any:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    assert not host_info.answers("127.0.0.1")


@pytest.mark.parametrize(
    ("state", "container", "taken"),
    [("inactive", False, True), ("active", False, False), ("activating", False, False), ("failed", True, False)],
)
def test_port(host: Any, state: str, container: bool, taken: bool) -> None:
    """An open port is a problem only when it is not our own engine's."""
    found = '[{"Id": "i", "Config": {"Image": "m"}, "State": {"Status": "running", "Pid": 7, "StartedAt": "s"}}]'
    host.answers["systemctl show"] = (0, f"ActiveState={state}\n", "")
    if container:
        host.answers["docker inspect"] = (0, found, "")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        problems = host_info.port_problems(port)
    assert bool(problems) is taken
    assert not taken or f"port {port} is taken by something else" in problems[0]
    assert host_info.port_problems(port) == []


def test_disk(tmp_path: Path) -> None:
    assert host_info.disk_problems(str(tmp_path / "not" / "yet"), 0) == []
    (problem,) = host_info.disk_problems(str(tmp_path / "not" / "yet"), 10**9)
    assert problem.startswith(f"{tmp_path} has ")
    assert "1e+09 GiB are needed" in problem


def test_everything_at_once(call: Any, host: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_info.os.path, "isdir", lambda path: True)
    monkeypatch.setattr(host_info, "answers", lambda peer: False)
    result = call(
        host_info, address="192.0.2.9", interface="enp2", devices=["/dev/none", "/dev/null"], peers=["192.0.2.2"],
        folder=str(tmp_path), free_gib=10**9,
    )  # fmt: skip
    assert (result["changed"], result["docker_version"], len(result["problems"])) == (False, "28.3", 5)
    assert result["problems"][0].startswith("device /dev/none does not exist")
    assert any(
        "the host of the pair at vllm_link_address 192.0.2.2 does not answer" in problem
        for problem in result["problems"]
    )


def test_no_systemd(call: Any, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_info.os.path, "isdir", lambda path: False)
    assert call(host_info)["problems"] == ["this host does not run systemd: the engine is a systemd unit"]
    assert host.asked == []


def test_a_host_that_cannot_be_looked_at(call: Any, host: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_info.os.path, "isdir", lambda path: True)
    host.answers["ip -json"] = (1, "", "broken")
    host.answers.pop("ip -json address show")
    result = call(host_info)
    assert result["failed"] is True
    assert "the host could not be looked at" in result["msg"]
    with pytest.raises(_host.HostError):
        host_info.network_problems("", "")
