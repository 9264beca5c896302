# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who keeps the service address of a site, and whether it can be kept."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.plugin_utils._address import address_of

DOCUMENTATION = r"""
name: service_address
short_description: Who keeps the service address of a site, checked
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Works out from the inventory and the interfaces of one proxy what its keepalived needs to know.
  - Fails with the variable and the host for an address that does not parse, that a host of the site has as its own, or that is outside
    the network of the interface, and for an interface that is missing.
positional: hostvars
options:
  _input:
    description: The inventory names of the proxies. Earlier ones have a higher priority.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  host:
    description: The proxy that this is about.
    type: str
    required: true
  wanted:
    description: The service address with its prefix length.
    type: str
    required: true
  interface:
    description: Interface for the address, empty for the one with the host's own address.
    type: str
    default: ""
  links:
    description: What C(ip -json -4 address show) says on the host.
    type: list
    elements: dict
    required: true
  live:
    description: The configuration that keepalived has now, empty if it has none.
    type: str
    default: ""
  others:
    description: The inventory names of further hosts, whose addresses are taken.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show who keeps the address
  ansible.builtin.debug:
    msg: >-
      {{ groups['proxies'] | gb10.vllm.service_address(
           hostvars, host=inventory_hostname, wanted='192.0.2.10/24', links=links.stdout | from_json) }}
"""

RETURN = r"""
_value:
  description:
    - C(address) without its prefix length, C(interface) for it, C(own) address of the host and C(own_interface) that has it, C(peers) (the
      addresses of the other proxies), C(priority), and C(live) (whether keepalived has this address on this interface already).
  type: dict
"""


def own_address(name: str, variables: Mapping[str, Any]) -> str:
    """The address under which the other proxies reach this one; IPv4 only."""
    source, address = address_of(name, variables)
    try:
        return str(ipaddress.IPv4Address(address))
    except ValueError:
        raise AnsibleFilterError(
            f"host {name}, {source} '{address}': is not an IPv4 address. Set vllm_address of {name} to its IPv4 address."
        ) from None


def networks(links: Sequence[Mapping[str, Any]], name: str) -> list[ipaddress.IPv4Interface]:
    """The addresses of one interface, with their networks."""
    return [
        ipaddress.IPv4Interface(f"{entry['local']}/{entry['prefixlen']}")
        for link in links
        if link["ifname"] == name
        for entry in link.get("addr_info", [])
        if entry.get("family", "inet") == "inet"
    ]


def find_interface(links: Sequence[Mapping[str, Any]], host: str, own: str) -> str:
    """The interface that has the host's own address."""
    for link in links:
        if any(entry.get("local") == own for entry in link.get("addr_info", [])):
            return str(link["ifname"])
    raise AnsibleFilterError(
        f"no interface of {host} has its address {own}. Set vllm_address of {host} to the address under which the other proxies reach it."
    )


def check_network(said: str, wanted: ipaddress.IPv4Interface, host: str, name: str, own: list[Any]) -> None:
    """The address belongs to a network of the interface, and is one that a host can have."""
    around = [entry.network for entry in own if entry.ip != wanted.ip and wanted.ip in entry.network]
    if not around:
        shown = ", ".join(str(entry.network) for entry in own if entry.ip != wanted.ip) or "none"
        raise AnsibleFilterError(
            f"{said} is outside the network of {name} on {host} ({shown}). Give an address of that network, or set vllm_service_interface."
        )
    network = around[0]
    if wanted.network.prefixlen not in (network.prefixlen, 32):
        raise AnsibleFilterError(
            f"{said} has another prefix length than {name} on {host} ({network}). Write {wanted.ip}/{network.prefixlen}."
        )
    if network.prefixlen < 31 and wanted.ip in (network.network_address, network.broadcast_address):
        raise AnsibleFilterError(
            f"{said} is the network's own or its broadcast address ({network}). Give the address of one host."
        )


def service_address(
    names: Sequence[str],
    hostvars: Mapping[str, Any],
    host: str,
    wanted: str,
    links: Sequence[Mapping[str, Any]],
    interface: str = "",
    live: str = "",
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """What keepalived on one proxy needs to know."""
    said = f"vllm_service_address {wanted}"
    # Older versions of `ip` leave empty entries for what the -4 hides.
    links = [link for link in links if link.get("ifname")]
    try:
        address = ipaddress.IPv4Interface(wanted)
    except ValueError:
        address = None
    if address is None or "/" not in wanted or "." in wanted.partition("/")[2]:
        raise AnsibleFilterError(f"{said} is not an IPv4 address with its prefix length, such as 192.0.2.10/24.")
    addresses = {name: own_address(name, hostvars[name]) for name in names}
    for name in [*names, *others]:
        if (addresses.get(name) or hostvars[name].get("vllm_address") or hostvars[name].get("ansible_host")) == str(
            address.ip
        ):
            raise AnsibleFilterError(f"{said} is the own address of {name}. Give an address that no host has.")
    for name in names:
        if name != host and addresses[name] == addresses[host]:
            raise AnsibleFilterError(
                f"{host} and {name} have the same address {addresses[host]}. Correct vllm_address of one."
            )
    own_interface = find_interface(links, host, addresses[host])
    service_interface = interface or own_interface
    if service_interface not in [link["ifname"] for link in links]:
        raise AnsibleFilterError(
            f"vllm_service_interface {interface}: {host} has no such interface with an IPv4 address. "
            "It has " + ", ".join(str(link["ifname"]) for link in links if link["ifname"] != "lo") + "."
        )
    check_network(said, address, host, service_interface, networks(links, service_interface))
    is_live = f" {wanted} dev {service_interface}\n" in f"{live}\n"
    holder = [
        link["ifname"] for link in links if any(entry.ip == address.ip for entry in networks(links, link["ifname"]))
    ]
    if holder and f" {address.ip}/" not in live:
        raise AnsibleFilterError(
            f"{said} is set on {holder[0]} of {host} already, by somebody else. Remove it there, or give another address."
        )
    return {
        "address": str(address.ip),
        "interface": service_interface,
        "own": addresses[host],
        "own_interface": own_interface,
        "peers": [addresses[name] for name in names if name != host],
        "priority": max(1, 200 - list(names).index(host)),
        "live": is_live,
    }


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"service_address": service_address}
