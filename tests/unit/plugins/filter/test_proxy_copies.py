# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of copies from an inventory."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.proxy_copies import FilterModule

proxy_copies = FilterModule().filters()["proxy_copies"]


def test_addresses_come_from_the_most_specific_variable() -> None:
    hostvars: dict[str, Any] = {
        "spark1": {"vllm_address": "198.51.100.1", "ansible_host": "spark1.lan", "vllm_port": 8001},
        "spark2": {"ansible_host": "198.51.100.2"},
        "198.51.100.3": {},
        "six": {"vllm_address": "2001:DB8::1"},
    }
    copies = proxy_copies(list(hostvars), hostvars)
    assert [{key: copy[key] for key in ("name", "server", "pattern")} for copy in copies] == [
        {"name": "spark1", "server": "198.51.100.1:8001", "pattern": r"198\.51\.100\.1:8001"},
        {"name": "spark2", "server": "198.51.100.2:8000", "pattern": r"198\.51\.100\.2:8000"},
        {"name": "198.51.100.3", "server": "198.51.100.3:8000", "pattern": r"198\.51\.100\.3:8000"},
        {"name": "six", "server": "[2001:db8::1]:8000", "pattern": r"\[2001:db8::1\]:8000"},
    ]


def test_a_share_is_the_hosts_own_else_the_one_for_all() -> None:
    hostvars = {
        "a": {"vllm_address": "198.51.100.1", "vllm_proxy_weight": 3},
        "b": {"vllm_address": "198.51.100.2", "vllm_proxy_max_conns": 0},
    }
    copies = proxy_copies(list(hostvars), hostvars, max_conns=16)
    assert [(copy["weight"], copy["max_conns"]) for copy in copies] == [(3, 16), (1, 0)]


@pytest.mark.parametrize(
    ("hostvars", "message"),
    [
        ({"a": {"ansible_host": "a.lan"}}, "host a, ansible_host 'a.lan'.*not an IP address.*Set vllm_address of a"),
        ({"a": {}}, "host a, inventory_hostname 'a'"),
        ({"a": {"vllm_address": "198.51.100.1", "vllm_port": 0}}, "vllm_port 0.*0 is not a port"),
        (
            {"a": {"vllm_address": "198.51.100.1"}, "b": {"ansible_host": "198.51.100.1"}},
            "host b.*a has the same address",
        ),
        ({"a": {"vllm_address": "198.51.100.7", "vllm_port": 8080}}, "the proxy itself listens there.*vllm_proxy_port"),
        ({"a": {"vllm_address": "127.0.0.1", "vllm_port": 8080}}, "the proxy itself listens there"),
        ({"a": {"vllm_address": "::1", "vllm_port": 8080}}, "the proxy itself listens there"),
        ({"a": {"vllm_address": "127.0.0.1", "vllm_port": 8079}}, r"the proxy itself.*vllm_proxy_inner_port \(8079\)"),
        ({"a": {"vllm_address": "198.51.100.1", "vllm_proxy_weight": 0}}, "host a, vllm_proxy_weight '0'.*1 to 100"),
        ({"a": {"vllm_address": "198.51.100.1", "vllm_proxy_max_conns": "x"}}, "host a, vllm_proxy_max_conns 'x'"),
    ],
)
def test_an_address_that_cannot_work_is_refused_by_host_and_variable(hostvars: dict[str, Any], message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        proxy_copies(list(hostvars), hostvars, listen_port=8080, inner_port=8079, own_addresses=["198.51.100.7"])


def test_the_same_host_may_carry_proxy_and_copy() -> None:
    hostvars = {"a": {"vllm_address": "198.51.100.7"}}
    assert proxy_copies(["a"], hostvars, listen_port=8080, own_addresses=["198.51.100.7"])[0]["name"] == "a"
