# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a watchdog tells of its copy."""

from __future__ import annotations

from typing import Any

from ansible_collections.gb10.vllm.plugins.filter import members_servers as file

members_servers = file.FilterModule().filters()["members_servers"]

HOSTS: dict[str, Any] = {
    "proxy1": {"ansible_host": "198.51.100.21"},
    "proxy2": {"ansible_host": "proxy2.lan", "vllm_address": "2001:db8::21", "vllm_proxy_members_port": 9000},
    "198.51.100.22": {"vllm_proxy_members_enabled": True},
    "proxy3": {"vllm_proxy_members_enabled": False},
    "proxy4": {"vllm_proxy_members_enabled": "no"},
}


def test_each_proxy_that_has_the_service() -> None:
    assert members_servers(list(HOSTS), HOSTS) == [
        "198.51.100.21:8078",
        "[2001:db8::21]:9000",
        "198.51.100.22:8078",
    ]
    assert members_servers([], {}) == []
