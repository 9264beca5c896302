# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host is measured."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.metrics_target import metrics_target


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"inventory_hostname": "spark1"}, "spark1:8000"),
        ({"inventory_hostname": "spark1", "ansible_host": "192.0.2.11"}, "192.0.2.11:8000"),
        ({"ansible_host": "192.0.2.11", "vllm_address": "192.0.2.12", "vllm_port": "9000"}, "192.0.2.12:9000"),
        ({"vllm_address": "2001:db8::1"}, "[2001:db8::1]:8000"),
        ({"vllm_address": "", "inventory_hostname": "a"}, "a:8000"),
    ],
)
def test_address_and_port(values: dict[str, Any], wanted: str) -> None:
    assert metrics_target(values, "vllm_port", 8000) == wanted


@pytest.mark.parametrize("port", ["web", 70000, -1])
def test_a_port_that_is_none_is_refused_by_name(port: Any) -> None:
    with pytest.raises(AnsibleFilterError, match=f"host spark1, vllm_port is '{port}'"):
        metrics_target({"inventory_hostname": "spark1", "vllm_port": port}, "vllm_port", 8000)
