# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copies a proxy can have behind it, from the inventory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError, canonical, is_own_listener

DOCUMENTATION = r"""
name: proxy_copies
short_description: The addresses of all copies of a site, checked
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Makes the table that the proxy's configuration needs from the hosts of a group and their variables.
  - C(vllm_address) (else C(ansible_host), else the inventory name) must be an IP address, because nginx looks names up only when it reloads.
  - Fails with the host and the variable for an address that does not parse, one that two hosts share, and one that is the proxy's own.
positional: hostvars
options:
  _input:
    description: The inventory names of the engine hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  port:
    description: The port of an engine whose host does not set C(vllm_port).
    type: int
    default: 8000
  listen_port:
    description: The port on which the proxy listens.
    type: int
    default: 0
  listen_address:
    description: The address on which the proxy listens, empty for all.
    type: str
    default: ""
  own_addresses:
    description: The addresses of the proxy host.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show the copies
  ansible.builtin.debug:
    msg: "{{ groups['engines'] | gb10.vllm.proxy_copies(hostvars) }}"
"""

RETURN = r"""
_value:
  description: One entry per host, with C(name), C(server) (C(IP:PORT)) and C(pattern) (the server as a regular expression).
  type: list
  elements: dict
"""


def proxy_copies(
    names: list[str],
    hostvars: Mapping[str, Any],
    port: int = 8000,
    listen_port: int = 0,
    listen_address: str = "",
    own_addresses: list[str] | None = None,
) -> list[dict[str, str]]:
    """One checked entry per engine host, in the order of the inventory."""
    owners: dict[str, str] = {}
    copies = []
    for name in names:
        variables = hostvars[name]
        source = next((key for key in ("vllm_address", "ansible_host") if variables.get(key)), "inventory_hostname")
        address = str(variables.get(source) or name)
        engine_port = variables.get("vllm_port", port)
        where = f"host {name}, {source} '{address}', vllm_port {engine_port}"
        try:
            server = canonical(f"[{address}]:{engine_port}" if ":" in address else f"{address}:{engine_port}")
        except NginxError as error:
            raise AnsibleFilterError(f"{where}: {error}. Set vllm_address of {name} to its IP address.") from None
        if server in owners:
            raise AnsibleFilterError(f"{where}: {owners[server]} has the same address. Correct vllm_address of one.")
        local = address in (own_addresses or []) or address.startswith("127.")
        if is_own_listener(server, [(listen_address, listen_port)], local):
            raise AnsibleFilterError(
                f"{where}: the proxy itself listens there. Change vllm_proxy_port ({listen_port}) or the address."
            )
        owners[server] = name
        copies.append({"name": name, "server": server, "pattern": re.escape(server)})
    return copies


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"proxy_copies": proxy_copies}
