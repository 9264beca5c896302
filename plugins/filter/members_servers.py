# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an engine host reaches the service of each proxy that takes its copy out and puts it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: members_servers
short_description: Where the proxies take word of a copy
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Makes C(address:port) of each proxy host from its variables C(vllm_address) (else C(ansible_host), else the inventory name) and
    C(vllm_proxy_members_port). A host whose C(vllm_proxy_members_enabled) is false is left out.
positional: hostvars
options:
  _input:
    description: Inventory names of the proxies.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  port:
    description: Port of a host that does not set C(vllm_proxy_members_port).
    type: int
    default: 8078
"""

EXAMPLES = r"""
- name: Show where a watchdog tells of its copy
  ansible.builtin.debug:
    msg: "{{ groups['proxies'] | gb10.vllm.members_servers(hostvars) }}"
"""

RETURN = r"""
_value:
  description: One C(address:port) per proxy, in the order of the input.
  type: list
  elements: str
"""


def members_servers(names: Iterable[str], hostvars: Mapping[str, Mapping[str, Any]], port: int = 8078) -> list[str]:
    found = []
    for name in names:
        values = hostvars[name]
        if str(values.get("vllm_proxy_members_enabled", True)).lower() in ("false", "no", "0", "off"):
            continue
        address = str(values.get("vllm_address") or values.get("ansible_host") or name)
        bracketed = f"[{address}]" if ":" in address else address
        found.append(f"{bracketed}:{values.get('vllm_proxy_members_port', port)}")
    return found


class FilterModule:
    def filters(self) -> dict[str, Callable[..., Any]]:
        return {"members_servers": members_servers}
