# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The copies a proxy can have behind it, from the inventory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import (
    NginxError,
    canonical,
    check_limits,
    is_own_listener,
    split,
)
from ansible_collections.gb10.vllm.plugins.plugin_utils._address import address_of

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
  - C(vllm_proxy_weight) and C(vllm_proxy_max_conns) of a host are its share of the requests.
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
  inner_port:
    description: The port on 127.0.0.1 on which the proxy listens for its own host.
    type: int
    default: 0
  own_addresses:
    description: The addresses of the proxy host.
    type: list
    elements: str
    default: []
  weight:
    description: The weight of a host that does not set C(vllm_proxy_weight).
    type: int
    default: 1
  max_conns:
    description: The cap of a host that does not set C(vllm_proxy_max_conns), 0 for none.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Show the copies
  ansible.builtin.debug:
    msg: "{{ groups['engines'] | gb10.vllm.proxy_copies(hostvars) }}"
"""

RETURN = r"""
_value:
  description: One entry per host, with C(name), C(server) (C(IP:PORT)), C(pattern) (the server as a regular expression), C(weight) and C(max_conns).
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
    weight: int = 1,
    max_conns: int = 0,
    inner_port: int = 0,
) -> list[dict[str, Any]]:
    """One checked entry per engine host, in the order of the inventory."""
    owners: dict[str, str] = {}
    copies = []
    for name in names:
        variables = hostvars[name]
        source, address = address_of(name, variables)
        engine_port = variables.get("vllm_port", port)
        where = f"host {name}, {source} '{address}', vllm_port {engine_port}"
        try:
            server = canonical(f"[{address}]:{engine_port}" if ":" in address else f"{address}:{engine_port}")
        except NginxError as error:
            raise AnsibleFilterError(f"{where}: {error}. Set vllm_address of {name} to its IP address.") from None
        if server in owners:
            raise AnsibleFilterError(f"{where}: {owners[server]} has the same address. Correct vllm_address of one.")
        local = address in (own_addresses or []) or split(server)[0].is_loopback
        if is_own_listener(server, [(listen_address, listen_port), ("127.0.0.1", inner_port)], local):
            raise AnsibleFilterError(
                f"{where}: the proxy itself listens there. Change vllm_proxy_port ({listen_port}), "
                f"vllm_proxy_inner_port ({inner_port}) or the address."
            )
        owners[server] = name
        share = {
            "weight": variables.get("vllm_proxy_weight", weight),
            "max_conns": variables.get("vllm_proxy_max_conns", max_conns),
        }
        for key, value in share.items():
            try:
                check_limits(**{key: int(value)})
            except (NginxError, ValueError) as error:
                raise AnsibleFilterError(f"host {name}, vllm_proxy_{key} '{value}': {error}") from None
        copies.append({"name": name, "server": server, "pattern": re.escape(server), **share})
    return copies


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"proxy_copies": proxy_copies}
