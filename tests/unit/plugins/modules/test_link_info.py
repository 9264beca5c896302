# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The direct link of two hosts that name and number everything differently: trees like those of the kernel, and packets to nowhere."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _link_host
from ansible_collections.gb10.vllm.plugins.modules import link_info

LINK_LOCAL = "fe80:0000:0000:0000:4ebb:47ff:fe00:0001"
V1, V2 = "IB/RoCE v1", "RoCE v2"
LIMITS = "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         {}              {}              bytes\n"


def mapped(address: str) -> str:
    one, two, three, four = (int(part) for part in address.split("."))
    return f"0000:0000:0000:0000:0000:ffff:{one:02x}{two:02x}:{three:02x}{four:02x}"


def device(
    root: Path, name: str, interface: str, entries: dict[int, tuple[str, str]], state: str = "4: ACTIVE"
) -> None:
    """As the kernel shows it: unused entries are zeros, and have no type."""
    port = root / "sys/class/infiniband" / name / "ports/1"
    for folder in ("gids", "gid_attrs/types", "gid_attrs/ndevs"):
        (port / folder).mkdir(parents=True)
    (port / "state").write_text(state + "\n")
    for index in range(8):
        gid, kind = entries.get(index, (":".join(["0000"] * 8), ""))
        (port / "gids" / str(index)).write_text(gid + "\n")
        if kind:
            (port / "gid_attrs/types" / str(index)).write_text(kind + "\n")
            (port / "gid_attrs/ndevs" / str(index)).write_text(interface + "\n")


def table(address: str, at: int) -> dict[int, tuple[str, str]]:
    """The link-local address first, then the address as version 1, and as version 2 where it was put."""
    return {0: (LINK_LOCAL, V1), 1: (LINK_LOCAL, V2), 2: (mapped(address), V1), at: (mapped(address), V2)}


class Host:
    """One host's tree, and what `ip` says there."""

    def __init__(self, root: Path, commands: Any, address: str, other_address: str) -> None:
        self.root, self.commands, self.address = root, commands, address
        self.links: list[dict[str, Any]] = []
        self.options: dict[str, Any] = {
            "address": address,
            "root": str(root),
            "rdma": True,
            "memlock": True,
            "head": "192.0.2.1",
            "peers": [other_address],
            "base_dir": str(root),
        }
        (root / "dev/infiniband").mkdir(parents=True)
        (root / "dev/infiniband/uverbs0").write_text("")

    def interface(self, name: str, address: str, mtu: int = 9000, flags: tuple[str, ...] = ("UP", "LOWER_UP")) -> None:
        info = [{"local": address}, {"local": "fe80::1"}]
        self.links.append({"ifname": name, "flags": list(flags), "mtu": mtu, "addr_info": info})

    def look(self, call: Any, **options: Any) -> dict[str, Any]:
        self.commands.answers["ip -json address show"] = (0, json.dumps(self.links), "")
        found: dict[str, Any] = call(link_info, **{**self.options, **options})
        return found


@pytest.fixture
def quiet(commands: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The network: every packet passes and every port answers, unless a test says otherwise."""
    commands.answers["systemctl show"] = (0, "ActiveState=inactive\n", "")
    monkeypatch.setattr(_link_host, "fits", lambda source, peer, mtu: "")
    monkeypatch.setattr(_link_host, "answers", lambda peer, port: "")
    monkeypatch.setattr(_host, "is_listening", lambda port: False)
    return commands


@pytest.fixture
def one(tmp_path: Path, quiet: Any) -> Host:
    host = Host(tmp_path / "one", quiet, "192.0.2.1", "192.0.2.2")
    host.interface("enP7s7", "198.51.100.1", mtu=1500)
    host.interface("enp1s0f0np0", "192.0.2.1")
    device(host.root, "rocep1s0f0", "enp1s0f0np0", table("192.0.2.1", at=4))
    return host


@pytest.fixture
def two(tmp_path: Path, quiet: Any) -> Host:
    host = Host(tmp_path / "two", quiet, "192.0.2.2", "192.0.2.1")
    host.interface("enP2p1s0f1np1", "192.0.2.2")
    device(host.root, "roceP2p1s0f1", "enP2p1s0f1np1", table("192.0.2.2", at=3))
    return host


def test_each_host_gets_its_own_values(call: Any, one: Host, two: Host) -> None:
    seen = one.look(call)
    assert (seen["problems"], seen["interface"], seen["mtu"], seen["gid_index"]) == ([], "enp1s0f0np0", 9000, 4)
    entry = {"name": "rocep1s0f0", "index": 4, "address": "192.0.2.1", "interface": "enp1s0f0np0"}
    assert seen["devices"] == [entry]
    seen = two.look(call)
    assert (seen["problems"], seen["interface"], seen["gid_index"]) == ([], "enP2p1s0f1np1", 3)
    assert [found["name"] for found in seen["devices"]] == ["roceP2p1s0f1"]


def test_a_port_with_two_halves_has_no_one_index(call: Any, one: Host) -> None:
    one.interface("enP2p1s0f0np0", "203.0.113.1")
    device(one.root, "roceP2p1s0f0", "enP2p1s0f0np0", table("203.0.113.1", at=5))
    seen = one.look(call, devices=["rocep1s0f0", "roceP2p1s0f0"])
    assert (seen["problems"], seen["gid_index"]) == ([], None)
    assert {found["name"]: found["index"] for found in seen["devices"]} == {"rocep1s0f0": 4, "roceP2p1s0f0": 5}


def test_without_rdma_no_device_is_looked_at(call: Any, tmp_path: Path, quiet: Any) -> None:
    host = Host(tmp_path, quiet, "192.0.2.1", "192.0.2.2")
    host.interface("host0", "192.0.2.1", mtu=1500)
    seen = host.look(call, rdma=False, interface="host0")
    assert (seen["problems"], seen["devices"], seen["gid_index"], seen["mtu"]) == ([], [], None, 1500)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"address": "192.0.2.9"}, "vllm_link_address 192.0.2.9 is on no interface of this host (enP7s7 198.51.100.1"),
        (
            {"interface": "enp1s0f1np1"},
            "vllm_link_address 192.0.2.1 is on enp1s0f0np0, not on vllm_link_interface enp1s0f1np1",
        ),
        ({"mtu": 9216}, "enp1s0f0np0 has an MTU of 9000, vllm_link_mtu asks for 9216"),
        ({"devices": ["rocep1s0f1"]}, "rocep1s0f1, which is not on this host (it has rocep1s0f0)"),
        ({"memlock": False}, "a container may lock 8388608 bytes of memory only: put --ulimit=memlock=-1 back"),
    ],
)
def test_what_is_wrong_is_named(call: Any, one: Host, options: dict[str, Any], words: str) -> None:
    (one.root / "run").mkdir()
    (one.root / "run/docker.pid").write_text("77\n")
    (one.root / "proc/77").mkdir(parents=True)
    (one.root / "proc/77/limits").write_text(LIMITS.format(8388608, 8388608))
    assert words in "; ".join(one.look(call, **options)["problems"])


def test_an_unlimited_container_engine_is_enough(call: Any, one: Host) -> None:
    (one.root / "run").mkdir()
    (one.root / "run/docker.pid").write_text("77\n")
    (one.root / "proc/77").mkdir(parents=True)
    (one.root / "proc/77/limits").write_text(LIMITS.format("unlimited", "unlimited"))
    assert one.look(call, memlock=False)["problems"] == []


@pytest.mark.parametrize(
    ("entries", "state", "named", "words"),
    [
        (
            {0: (LINK_LOCAL, V1), 2: (mapped("192.0.2.1"), V1)},
            "4: ACTIVE",
            False,
            "no RoCE device of this host has an entry of version 2",
        ),
        ({}, "4: ACTIVE", False, "no RoCE device of this host has an entry of version 2"),
        ({}, "4: ACTIVE", True, "roce7 has no entry of RoCE version 2 for an address of this host (roce7 empty)"),
        (table("192.0.2.1", at=3), "1: DOWN", True, "roce7 is 1: DOWN"),
        (
            table("198.51.100.1", at=3),
            "4: ACTIVE",
            True,
            "none of roce7 has an entry of RoCE version 2 for vllm_link_address 192.0.2.1",
        ),
        (
            table("192.0.2.77", at=3),
            "4: ACTIVE",
            True,
            "roce7 has no entry of RoCE version 2 for an address of this host",
        ),
    ],
)
def test_a_missing_entry_is_refused_by_name(
    call: Any, tmp_path: Path, quiet: Any, entries: dict[int, tuple[str, str]], state: str, named: bool, words: str
) -> None:
    host = Host(tmp_path, quiet, "192.0.2.1", "192.0.2.2")
    host.interface("eth1", "192.0.2.1")
    host.interface("eth2", "198.51.100.1")
    device(host.root, "roce7", "eth1", entries, state)
    seen = host.look(call, devices=["roce7"] if named else [])
    assert len(seen["problems"]) == 1
    assert words in seen["problems"][0]


def test_no_device_files(call: Any, one: Host) -> None:
    (one.root / "dev/infiniband/uverbs0").unlink()
    assert "/dev/infiniband has no uverbs device" in one.look(call)["problems"][0]


def test_a_cable_that_is_out(call: Any, one: Host) -> None:
    one.links[1]["flags"] = ["NO-CARRIER", "UP"]
    assert "enp1s0f0np0 with vllm_link_address 192.0.2.1 is down" in one.look(call)["problems"][0]


def test_a_packet_that_does_not_pass(call: Any, one: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_link_host, "fits", lambda source, peer, mtu: f"{source} {peer} {mtu} no answer")
    (problem,) = one.look(call)["problems"]
    assert "a packet of 9000 bytes does not pass unfragmented from enp1s0f0np0 to 192.0.2.2 and back" in problem
    assert "192.0.2.1 192.0.2.2 9000 no answer" in problem


def test_the_rendezvous_port(call: Any, one: Host, two: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_link_host, "answers", lambda peer, port: f"silent at {peer}:{port}")
    monkeypatch.setattr(_host, "is_listening", lambda port: port == 29501)
    assert "port 29501 (vllm_master_port) is taken" in one.look(call)["problems"][0]
    assert "of 192.0.2.1 cannot be reached over the link (silent at 192.0.2.1:29501)" in two.look(call)["problems"][0]
    # Our own pair has it while it runs.
    (one.root / "current").mkdir()
    (one.root / "current/release.json").write_text('{"topology": "split"}')
    one.commands.answers["systemctl show"] = (0, "ActiveState=active\n", "")
    assert one.look(call)["problems"] == []


@pytest.mark.parametrize(("recorded", "problems"), [("4", 0), ("3", 1), (None, 0)])
def test_a_release_whose_index_has_moved(call: Any, one: Host, recorded: str | None, problems: int) -> None:
    folder = one.root / "releases/split-1"
    folder.mkdir(parents=True)
    environment = {} if recorded is None else {"NCCL_IB_GID_INDEX": recorded}
    (folder / "release.json").write_text(json.dumps({"environment": environment}))
    seen = one.look(call, release="split-1")["problems"]
    assert len(seen) == problems
    assert not problems or "split-1 was made with NCCL_IB_GID_INDEX 3, but rocep1s0f0 has 192.0.2.1 at 4 now" in seen[0]


def test_a_packet_on_loopback_comes_back_whole() -> None:
    """The real thing, without a network: 64 KiB is the largest packet that the loopback interface takes."""
    assert _link_host.fits("127.0.0.1", "127.0.0.1", 9000) == ""
    assert _link_host.fits("127.0.0.1", "127.0.0.1", 65535 + 400) != ""


def test_a_port_that_refuses_has_answered() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert _link_host.answers("127.0.0.1", port) == ""
    assert _link_host.answers("127.0.0.1", port) == ""
