# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Firewalls that would lock the wrong ones out, refused by firewall.yml by name before any host is touched."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.unit.playbooks import connections, play

SPARK = {"ansible_host": "192.0.2.1"}
PROXY = {"ansible_host": "192.0.2.90"}


@pytest.mark.parametrize(
    ("engine", "proxies", "message"),
    [
        (SPARK, {}, "The inventory group 'proxies' is empty: behind a firewall nobody would reach the engine of spark1"),
        (SPARK, {"proxy1": {"ansible_host": "proxy1.lan"}}, "host proxy1, ansible_host 'proxy1.lan': not an IP address"),
        ({**SPARK, "vllm_port": 22}, {"proxy1": PROXY}, "vllm_port of spark1 is 22: it must be 1 to 65535 and none of 22"),
        ({**SPARK, "vllm_port": 8080}, {"spark1": SPARK}, "vllm_port of spark1 is 8080.*the proxy of this host"),
        ({**SPARK, "vllm_master_port": 8000}, {"proxy1": PROXY}, "vllm_master_port of spark1 is 8000"),
        ({**SPARK, "vllm_link_interface": 'a" accept'}, {"proxy1": PROXY}, "vllm_link_interface of spark1 is 'a\" accept'"),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, engine: dict[str, Any], proxies: dict[str, Any], message: str) -> None:
    groups = {"engines": {"hosts": {"spark1": engine}}, "proxies": {"hosts": proxies}}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    done = play(tmp_path, "playbooks/firewall.yml", inventory)
    assert done.returncode == 2, done.stdout[-3000:]
    assert connections(tmp_path) == []
    assert re.search(message, re.sub(r"\s+", " ", done.stdout + done.stderr))
