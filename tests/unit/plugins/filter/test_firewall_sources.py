# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where clients come, and where engines are."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter import firewall_sources as sources_file
from ansible_collections.gb10.vllm.plugins.filter import site_engines as engines_file

firewall_sources = sources_file.FilterModule().filters()["firewall_sources"]
site_engines = engines_file.FilterModule().filters()["site_engines"]

HOSTS: dict[str, Any] = {
    "proxy1": {"ansible_host": "198.51.100.21"},
    "proxy2": {"ansible_host": "proxy2.lan", "vllm_address": "2001:DB8::21"},
    "198.51.100.22": {},
}


def test_addresses_are_collected_by_protocol() -> None:
    assert firewall_sources(list(HOSTS), HOSTS) == {
        "ipv4": ["198.51.100.21", "198.51.100.22"],
        "ipv6": ["2001:db8::21"],
    }


@pytest.mark.parametrize(
    ("allow", "seen", "ipv4", "ipv6"),
    [
        (["198.51.100.0/24"], [], ["198.51.100.0/24"], []),
        (["198.51.100.20"], [], ["198.51.100.20/31"], []),
        (["2001:db8::/64"], [], ["198.51.100.21"], ["2001:db8::/64"]),
        ([], ["192.0.2.1", "::ffff:192.0.2.2"], ["192.0.2.1", "192.0.2.2", "198.51.100.21"], []),
        ([], ["fe80::1%eth0"], ["198.51.100.21"], ["fe80::1"]),
        ([], ["127.0.0.1", "::1", "UNKNOWN", ""], ["198.51.100.21"], []),
    ],
)
def test_more_addresses_and_overlaps(allow: list[str], seen: list[str], ipv4: list[str], ipv6: list[str]) -> None:
    assert firewall_sources(["proxy1"], HOSTS, allow=allow, seen=seen) == {"ipv4": ipv4, "ipv6": ipv6}


def test_the_link_comes_first_for_a_pair() -> None:
    hosts = {
        "a": {"vllm_link_address": "192.0.2.1", "ansible_host": "198.51.100.1"},
        "b": {"ansible_host": "198.51.100.2"},
    }
    variables = ["vllm_link_address", "vllm_address", "ansible_host"]
    assert firewall_sources(["a", "b"], hosts, variables=variables)["ipv4"] == ["192.0.2.1", "198.51.100.2"]


@pytest.mark.parametrize(
    ("hosts", "allow", "message"),
    [
        (
            {"a": {"ansible_host": "a.lan"}},
            [],
            "host a, ansible_host 'a.lan': not an IP address.*Set vllm_address of a",
        ),
        ({"a": {}}, [], "host a, inventory_hostname 'a'"),
        ({}, ["10.0.0.1/8"], r"vllm_firewall_allow contains '10.0.0.1/8'.*host bits"),
        ({}, ["lan"], "vllm_firewall_allow contains 'lan'"),
        ({}, ["0.0.0.0/0"], "which is everybody.*vllm_firewall_enabled"),
        ({}, ["::/0"], "which is everybody"),
    ],
)
def test_what_does_not_parse_is_named(hosts: dict[str, Any], allow: list[str], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        firewall_sources(list(hosts), hosts, allow=allow)


def test_engines_have_every_address_they_are_known_by() -> None:
    hosts = {
        "spark1": {"ansible_host": "198.51.100.1", "vllm_address": "198.51.100.1", "vllm_link_address": "192.0.2.1"},
        "spark2": {"vllm_port": "8001"},
    }
    assert site_engines(["spark1", "spark2"], hosts) == [
        {"name": "spark1", "places": ["198.51.100.1", "192.0.2.1", "spark1"], "port": 8000},
        {"name": "spark2", "places": ["spark2"], "port": 8001},
    ]
