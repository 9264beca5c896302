# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The direct link of two hosts that name and number it differently: each gets its own values, and a missing one stops nothing.

Each host gets a second interface under a name of its own, which the lab's wire carries, and a tree like the kernel's table of RDMA devices;
the lab has none.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import observe
import pytest
import site_of_lab as lab

pytestmark = pytest.mark.rotating


class End(NamedTuple):
    """One end of the link, and where its table has the address."""

    interface: str
    address: str
    device: str
    entry: int

    @property
    def gid(self) -> str:
        last = int(self.address.rpartition(".")[2])
        return f"0000:0000:0000:0000:0000:ffff:c000:{0x0200 + last:04x}"


ENDS = {
    "spark1": End("enp1s0f0np0", "192.0.2.1", "rocep1s0f0", 4),
    "spark2": End("enP2p1s0f1np1", "192.0.2.2", "roceP2p1s0f1", 3),
}
CHECK = "../tests/e2e/link_check"
PORT = "/fake/sys/class/infiniband/{device}/ports/1"
SITE = lab.Site(
    "stand-in",
    {
        "ends": {host: end._asdict() for host, end in ENDS.items()},
        "__vllm_link_root": "/fake",
        "vllm_topology": "split",
        "vllm_link_address": "{{ ends[inventory_hostname].address }}",
        "vllm_link_interface": "",
        "vllm_split_container_options": ["--device=/dev/infiniband", "--ulimit=memlock=-1"],
    },
)


def put_end(host: str) -> None:
    (peer,) = set(ENDS) - {host}
    end, other = ENDS[host], ENDS[peer]
    port = PORT.format(device=end.device)
    lab.on(
        host,
        f"set -e; ip link delete {end.interface} 2>/dev/null || true; ip link add {end.interface} type veth peer name cable; ip link set cable up; "
        f"ip address add {end.address}/32 dev {end.interface}; ip link set {end.interface} up; "
        f"ip route replace {other.address} via {lab.describe()['hosts'][peer]['address']} src {end.address}; "
        f"mkdir -p {port}/gids {port}/gid_attrs/types {port}/gid_attrs/ndevs /fake/dev/infiniband /dev/infiniband; "
        f"touch /fake/dev/infiniband/uverbs0; echo '4: ACTIVE' > {port}/state; "
        f"echo {end.gid} > {port}/gids/2; echo 'IB/RoCE v1' > {port}/gid_attrs/types/2; "
        f"echo {end.gid} > {port}/gids/{end.entry}; echo 'RoCE v2' > {port}/gid_attrs/types/{end.entry}; "
        f"echo {end.interface} > {port}/gid_attrs/ndevs/{end.entry}",
    )


@pytest.fixture(scope="module")
def link(hosts: None) -> Any:
    for host in observe.HOSTS:
        put_end(host)
    yield
    for host, end in ENDS.items():
        (peer,) = set(ENDS) - {host}
        lab.on(
            host, f"ip route delete {ENDS[peer].address}; ip link delete {end.interface}; rm -rf /fake /dev/infiniband"
        )


def newest_release(host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        lab.on(host, "cat $(ls -td /etc/gb10-vllm/releases/split-*/ | head -n 1)release.json")
    )
    return found


def test_each_host_gets_its_own_values(link: None) -> None:
    SITE.must_play(CHECK)
    for host, end in ENDS.items():
        environment = newest_release(host)["environment"]
        assert environment["NCCL_SOCKET_IFNAME"] == end.interface
        assert environment["GLOO_SOCKET_IFNAME"] == end.interface
        assert environment["NCCL_IB_HCA"] == end.device
        assert environment["NCCL_IB_GID_INDEX"] == str(end.entry)
        assert environment["VLLM_HOST_IP"] == end.address


def test_a_missing_entry_is_refused_by_name(link: None) -> None:
    before = newest_release("spark1")
    end = ENDS["spark2"]
    lab.on("spark2", f"mv {PORT.format(device=end.device)}/gid_attrs/types/{end.entry} /fake/{end.entry}")
    refused(
        "spark2 cannot be a rank of a pair: no RoCE device of this host has an entry of version 2 for vllm_link_address 192.0.2.2"
    )
    lab.on("spark2", f"mv /fake/{end.entry} {PORT.format(device=end.device)}/gid_attrs/types/{end.entry}")
    lab.on("spark2", f"ip link set {end.interface} mtu 1280")
    refused("The ends of the direct link differ in their MTU (spark1 has 1500, spark2 has 1280)")
    assert newest_release("spark1") == before, "nothing was staged, let alone stopped"


def refused(reason: str) -> None:
    done = SITE.play(CHECK)
    assert done.returncode != 0
    assert reason in observe.in_words(done)
