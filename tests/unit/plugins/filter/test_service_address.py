# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who keeps the service address, and which ones cannot be kept."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.service_address import FilterModule

service_address = FilterModule().filters()["service_address"]

HOSTS: dict[str, Any] = {
    "p1": {"ansible_host": "192.0.2.21"},
    "p2": {"ansible_host": "p2.lan", "vllm_address": "192.0.2.22"},
    "e1": {"ansible_host": "192.0.2.11"},
}


def link(name: str, *addresses: str) -> dict[str, Any]:
    pairs = [address.split("/") for address in addresses]
    return {
        "ifname": name,
        "addr_info": [{"family": "inet", "local": one, "prefixlen": int(length)} for one, length in pairs],
    }


LINKS = [link("lo", "127.0.0.1/8"), {}, link("lan0", "192.0.2.21/24"), link("cx7", "198.51.100.1/30")]


def plan(wanted: str = "192.0.2.50/24", **options: Any) -> dict[str, Any]:
    given = {"names": ["p1", "p2"], "hostvars": HOSTS, "host": "p1", "links": LINKS, "others": ["e1"], **options}
    result: dict[str, Any] = service_address(wanted=wanted, **given)
    return result


def test_the_interface_is_the_one_with_the_hosts_own_address() -> None:
    assert plan() == {
        "address": "192.0.2.50",
        "interface": "lan0",
        "own": "192.0.2.21",
        "own_interface": "lan0",
        "peers": ["192.0.2.22"],
        "priority": 200,
        "live": False,
    }


def test_the_second_proxy_comes_second() -> None:
    second = plan(host="p2", links=[link("eth0", "192.0.2.22/24")])
    assert (second["priority"], second["peers"], second["interface"]) == (199, ["192.0.2.21"], "eth0")


def test_one_proxy_has_no_peers() -> None:
    assert plan(names=["p1"])["peers"] == []


def test_adverts_and_the_address_may_have_different_interfaces() -> None:
    hosts = {"p1": {"vllm_address": "198.51.100.1"}, "p2": {"vllm_address": "198.51.100.2"}}
    found = plan(hostvars=hosts, others=[], interface="lan0")
    assert (found["own_interface"], found["interface"]) == ("cx7", "lan0")


@pytest.mark.parametrize("wanted", ["192.0.2.50/24", "192.0.2.50/32"])
def test_the_address_may_be_on_the_host_when_it_is_ours(wanted: str) -> None:
    links = [link("lan0", "192.0.2.21/24", wanted)]
    live = f"    virtual_ipaddress {{\n        {wanted} dev lan0\n    }}\n"
    assert plan(wanted, links=links, live=live)["live"]
    # With another prefix length it is still ours, but the configuration has to be written again.
    assert not plan(wanted, links=links, live=live.replace(f"/{wanted[-2:]} ", "/25 "))["live"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wanted": "192.0.2.50"}, "vllm_service_address 192.0.2.50 is not an IPv4 address with its prefix length"),
        ({"wanted": "192.0.2.50/255.255.255.0"}, "is not an IPv4 address with its prefix length"),
        ({"wanted": "2001:db8::1/64"}, "is not an IPv4 address with its prefix length"),
        ({"wanted": "proxy.lan/24"}, "is not an IPv4 address with its prefix length"),
        ({"wanted": "192.0.2.21/24"}, "192.0.2.21/24 is the own address of p1"),
        ({"wanted": "192.0.2.22/24"}, "192.0.2.22/24 is the own address of p2"),
        ({"wanted": "192.0.2.11/24"}, "192.0.2.11/24 is the own address of e1"),
        ({"wanted": "203.0.113.9/24"}, "203.0.113.9/24 is outside the network of lan0 on p1 (192.0.2.0/24)"),
        ({"wanted": "192.0.2.50/25"}, "has another prefix length than lan0 on p1 (192.0.2.0/24). Write 192.0.2.50/24."),
        ({"wanted": "192.0.2.0/24"}, "is the network's own or its broadcast address"),
        ({"wanted": "192.0.2.255/24"}, "is the network's own or its broadcast address"),
        ({"interface": "eth7"}, "vllm_service_interface eth7: p1 has no such interface"),
        ({"interface": "cx7"}, "192.0.2.50/24 is outside the network of cx7 on p1 (198.51.100.0/30)"),
        ({"links": [link("lan0", "192.0.2.99/24")]}, "no interface of p1 has its address 192.0.2.21"),
        (
            {"links": [link("lan0", "192.0.2.21/24", "192.0.2.50/24")]},
            "192.0.2.50/24 is set on lan0 of p1 already, by somebody else",
        ),
        ({"hostvars": HOSTS | {"p2": {"ansible_host": "p2.lan"}}}, "host p2, ansible_host 'p2.lan'"),
        ({"hostvars": HOSTS | {"p2": HOSTS["p1"]}}, "p1 and p2 have the same address 192.0.2.21"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=re.escape(message)):
        plan(**options)
