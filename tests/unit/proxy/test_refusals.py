# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that cannot work are refused by their name before the proxy's host is touched, and without a word of a key."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.tests.unit.playbooks import connections, play

KEY = "aKeyThatNobodySees"
PATHS = {"vllm_proxy_tls_certificate": "/etc/ssl/site.pem", "vllm_proxy_tls_certificate_key": "/etc/ssl/site.key"}
# Each is a proxy of its own, so that one run tells of all of them.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"vllm_proxy_fail_timeout_seconds": 3600}, r"vllm_proxy_fail_timeout_seconds of HOST is 3600, must be 1 to 10\. With a long"),
    ({"vllm_proxy_api_keys": [KEY, KEY[:15]]}, r"vllm_proxy_api_keys\[1\] of HOST must have 16 to 256 characters"),
    ({"vllm_proxy_api_keys": [f"{KEY} {KEY}"]}, r"vllm_proxy_api_keys\[0\] of HOST"),
    ({"vllm_proxy_api_keys": [f'{KEY}"']}, r"vllm_proxy_api_keys\[0\] of HOST"),
    ({"vllm_proxy_api_keys": [f"{KEY}\n"]}, r"vllm_proxy_api_keys\[0\] of HOST"),
    ({"vllm_proxy_api_keys": [KEY]}, r"different keys in vllm_api_key, and the proxy HOST sends .* Give all of spark1, spark2 the same"),
    ({"vllm_proxy_tls_certificate": "/etc/ssl/site.pem"}, r"vllm_proxy_tls_certificate of HOST is '/etc/ssl/site.pem', .*Set both"),
    ({"vllm_proxy_tls_server_name": "llm.lan"}, r"vllm_proxy_tls_certificate of HOST is ''.*vllm_proxy_tls_server_name 'llm.lan'"),
    ({**PATHS, "vllm_proxy_tls_server_name": "llm lan"}, r"vllm_proxy_tls_server_name of HOST is 'llm lan'"),
    ({**PATHS, "vllm_proxy_tls_certificate": "site.pem"}, r"vllm_proxy_tls_certificate of HOST is 'site.pem', must be .*absolute path"),
    ({"vllm_proxy_closed_paths": ["/v1/"]}, r"vllm_proxy_closed_paths of HOST contains '/v1/'"),
    ({"vllm_proxy_closed_paths": ["~ x"]}, r"vllm_proxy_closed_paths of HOST contains '~ x'"),
    ({"vllm_proxy_rate_limit_per_second": -1}, r"vllm_proxy_rate_limit_per_second of HOST is -1, must be 0 to 10000"),
    ({"vllm_proxy_connections_per_client": 10001}, r"vllm_proxy_connections_per_client of HOST is 10001"),
    ({"vllm_proxy_affinity_header": "X Session"}, r"vllm_proxy_affinity_header of HOST is 'X Session'"),
    ({"vllm_proxy_members_port": 8080}, r"vllm_proxy_members_port of HOST is 8080, as vllm_proxy_port is\. Choose another"),
    ({"vllm_proxy_members_port": 8079}, r"vllm_proxy_members_port of HOST is 8079, as vllm_proxy_inner_port is"),
    ({"vllm_proxy_members_cut_answers": -1}, r"vllm_proxy_members_cut_answers of HOST is -1, must be 0 to 1000"),
    (
        {"vllm_proxy_read_timeout_seconds": 30, "vllm_proxy_next_upstream_timeout_seconds": 30},
        r"vllm_proxy_read_timeout_seconds of HOST is 30, not more than vllm_proxy_next_upstream_timeout_seconds",
    ),
]  # fmt: skip


def test_refusals(tmp_path: Path) -> None:
    proxies = {
        f"proxy{number}": {**variables, "ansible_host": "192.0.2.90"} for number, (variables, _) in enumerate(REFUSED)
    }
    engines = {
        f"spark{number}": {"ansible_host": f"192.0.2.{number}", "vllm_api_key": f"engine{number}"} for number in (1, 2)
    }
    inventory, playbook = tmp_path / "hosts.json", tmp_path / "preflight.yml"
    groups = {"engines": {"hosts": engines}, "proxies": {"hosts": proxies}}
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    tasks = [{"ansible.builtin.include_role": {"name": "gb10.vllm.proxy", "tasks_from": "preflight.yml"}}]
    playbook.write_text(json.dumps([{"hosts": "proxies", "gather_facts": False, "tasks": tasks}]))
    done = play(tmp_path, playbook, inventory)
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert done.returncode == 2, said[-3000:]
    assert connections(tmp_path) == []
    for number, (_variables, message) in enumerate(REFUSED):
        assert re.search(message.replace("HOST", f"proxy{number}"), said), (message, said[-20000:])
    assert KEY[:15] not in said
