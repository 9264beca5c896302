# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From where the hosts of a group come, as a firewall has to know it."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.plugin_utils._address import address_of

DOCUMENTATION = r"""
name: firewall_sources
short_description: The addresses from which the hosts of a group come, checked
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Collects the addresses of hosts, and more addresses and networks, for the sets of a firewall. Overlapping ones become one.
  - A host's address is the first of O(variables) that it sets, else its inventory name. It must be an IP address, because nftables
    looks names up only when it loads.
  - Fails with the host and the variable for an address that does not parse.
positional: hostvars
options:
  _input:
    description: Inventory names.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  variables:
    description: Which variables hold a host's address, the most specific first.
    type: list
    elements: str
    default: [vllm_address, ansible_host]
  allow:
    description: More addresses and networks, C(vllm_firewall_allow).
    type: list
    elements: str
    default: []
  seen:
    description: Addresses that hosts said or showed themselves. What is no IP address is left out, and so is a zone.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show from where the proxies come
  ansible.builtin.debug:
    msg: "{{ groups['proxies'] | gb10.vllm.firewall_sources(hostvars) }}"
"""

RETURN = r"""
_value:
  description: The lists C(ipv4) and C(ipv6) of addresses and networks, sorted.
  type: dict
"""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _collapsed(networks: Iterable[Network], version: int) -> list[str]:
    wanted: Any = [network for network in networks if network.version == version]
    return [
        str(network.network_address if network.num_addresses == 1 else network)
        for network in ipaddress.collapse_addresses(wanted)
    ]


def _parse(text: str) -> Network:
    """An address or a network. One IPv4 address in the clothes of IPv6 is the IPv4 address."""
    network = ipaddress.ip_network(text)
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    return ipaddress.ip_network(mapped) if mapped and network.num_addresses == 1 else network


def firewall_sources(
    names: list[str],
    hostvars: Mapping[str, Any],
    variables: Iterable[str] = ("vllm_address", "ansible_host"),
    allow: Iterable[str] = (),
    seen: Iterable[str] = (),
) -> dict[str, list[str]]:
    """Checked and collapsed addresses by protocol."""
    networks: list[Network] = []
    for name in names:
        values = hostvars[name]
        source, address = address_of(name, values, variables)
        try:
            networks.append(_parse(str(ipaddress.ip_address(address))))
        except ValueError:
            raise AnsibleFilterError(
                f"host {name}, {source} '{address}': not an IP address, and a firewall looks names up only when it loads. "
                f"Set vllm_address of {name} to its IP address."
            ) from None
    for text in allow:
        try:
            network = _parse(str(text))
        except ValueError as error:
            raise AnsibleFilterError(
                f"vllm_firewall_allow contains '{text}': {error}. Give IP addresses such as 192.0.2.7 or networks such as 192.0.2.0/24."
            ) from None
        if network.prefixlen == 0:
            raise AnsibleFilterError(
                f"vllm_firewall_allow contains '{text}', which is everybody. To have no firewall set vllm_firewall_enabled to false."
            )
        networks.append(network)
    for text in seen:
        try:
            found = _parse(str(text).split("%", 1)[0])
        except ValueError:
            continue
        # The host itself comes over its loopback interface, which is never refused.
        if not found.is_loopback:
            networks.append(found)
    return {"ipv4": _collapsed(networks, 4), "ipv6": _collapsed(networks, 6)}


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"firewall_sources": firewall_sources}
