# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Through a load balancer the counters of two copies jump; each read for itself, their sum is what clients got, also through a restart."""

from __future__ import annotations

import json

import article
import pytest
import site_of_lab as lab

# The watchdog asks for tokens too, which no client gets.
SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_watchdog_enabled": False})

pytestmark = pytest.mark.rotating


@pytest.mark.usefixtures("copies")
def test_the_sum_is_what_clients_got() -> None:
    count = article.Count("stand-in")
    article.must_be_right(count, article.tell(count))


@pytest.mark.usefixtures("copies")
def test_the_site_own_proxy_is_refused_by_name() -> None:
    port = lab.base_url().rsplit(":", 1)[1].partition("/")[0]
    found = article.read("stand-in", f"port={port}", hosts="proxy1")["proxy1"]
    assert f"127.0.0.1:{port} is a proxy, not an engine" in found["msg"]


@pytest.mark.usefixtures("copies")
def test_several_looks_at_the_site() -> None:
    asked = {"watch": 0.5, "vllm_status_count": 2, "vllm_status_format": "json"}
    text = SITE.must_play("status", variables=asked)
    looks = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert len(looks) == 2
    for look in looks:
        assert look["traffic"]["sum"]["read"] == 2
        assert {name: host["admitted"] for name, host in look["engines"].items()} == {"spark1": True, "spark2": True}
        assert look["proxies"]["proxy1"]["hold"]["waiting"] == 0
        assert look["watch"].keys() == {"spark1", "spark2", "proxy1"}
