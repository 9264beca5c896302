# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the direct link of a host is made of, and what about it cannot carry a pair.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; _link_host.py reads the host.

Names and indices are those of this very host: the interface, the RoCE devices, and in each device's table the entry of version 2
that belongs to the address. They differ from machine to machine and move with a reboot, so no value is ever taken over from another host.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROCE_V2 = "RoCE v2"


@dataclass(frozen=True)
class Interface:
    name: str
    addresses: tuple[str, ...]
    is_up: bool
    mtu: int


@dataclass(frozen=True)
class Entry:
    """One entry of a device's address table."""

    index: int
    address: str
    kind: str
    interface: str


@dataclass(frozen=True)
class Device:
    """One port of an RDMA device; `state` as the system says it, for example 4: ACTIVE."""

    name: str
    port: int
    state: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Wish:
    """What the pair needs here. Empty `interface` or `devices`: what belongs to the address is found."""

    address: str
    interface: str = ""
    devices: tuple[str, ...] = ()
    rdma: bool = False
    mtu: int = 0


@dataclass(frozen=True)
class Found:
    interface: str
    mtu: int
    devices: tuple[tuple[str, Entry], ...]
    problems: tuple[str, ...]


def interfaces(content: Sequence[Mapping[str, Any]]) -> list[Interface]:
    """From the answer of `ip -json address show`. A cable that is out is an interface that is not up."""
    return [
        Interface(
            name=entry["ifname"],
            addresses=tuple(each["local"] for each in entry.get("addr_info", []) if "local" in each),
            is_up="UP" in entry.get("flags", []) and "NO-CARRIER" not in entry.get("flags", []),
            mtu=int(entry.get("mtu", 0)),
        )
        for entry in content
    ]


def plain(gid: str) -> str:
    """The address that a table's entry stands for; empty for an unused entry."""
    try:
        address = ipaddress.IPv6Address(gid.strip())
    except ValueError:
        return ""
    return "" if not int(address) else str(address.ipv4_mapped or address)


def find(wish: Wish, known: Sequence[Interface], devices: Sequence[Device]) -> Found:
    """What belongs to the address here, and everything that is wrong with it, each with the way out."""
    address = str(ipaddress.ip_address(wish.address))
    owner = next((each for each in known if address in each.addresses), None)
    problems = _interface_problems(wish, address, owner, known)
    name = owner.name if owner else wish.interface
    used: tuple[tuple[str, Entry], ...] = ()
    if wish.rdma:
        used, more = _rdma(wish, address, name, known, devices)
        problems += more
    return Found(name, owner.mtu if owner else 0, used, tuple(problems))


def _interface_problems(wish: Wish, address: str, owner: Interface | None, known: Sequence[Interface]) -> list[str]:
    if owner is None:
        table = ", ".join(f"{each.name} {' '.join(each.addresses)}".strip() for each in known)
        return [
            f"vllm_link_address {address} is on no interface of this host ({table}): bring the link up, or correct the address"
        ]
    problems = []
    if wish.interface and wish.interface != owner.name:
        problems.append(
            f"vllm_link_address {address} is on {owner.name}, not on vllm_link_interface {wish.interface}: correct one of them for this "
            f"host (the names differ from machine to machine)"
        )
    if not owner.is_up:
        problems.append(
            f"{owner.name} with vllm_link_address {address} is down: look at the cable and at `ip link show {owner.name}`"
        )
    if owner.mtu < wish.mtu:
        problems.append(
            f"{owner.name} has an MTU of {owner.mtu}, vllm_link_mtu asks for {wish.mtu}: set it (netplan: mtu), or lower vllm_link_mtu"
        )
    return problems


def _rdma(
    wish: Wish, address: str, interface: str, known: Sequence[Interface], devices: Sequence[Device]
) -> tuple[tuple[tuple[str, Entry], ...], list[str]]:
    """The devices with the entry of each that NCCL would have to use, and what is wrong."""
    names = wish.devices or tuple(
        dict.fromkeys(device.name for device in devices if any(_fits(entry, address) for entry in device.entries))
    )
    if not names:
        return (), [
            f"no RoCE device of this host has an entry of version 2 for vllm_link_address {address} ({tables(devices)}): bring the link up, "
            f"correct the address, or take --device=/dev/infiniband out of vllm_split_container_options to go without RDMA"
        ]
    used, problems = [], []
    local = {each for interface in known for each in interface.addresses}
    for name in names:
        ports = [device for device in devices if device.name == name]
        if not ports:
            there = ", ".join(dict.fromkeys(device.name for device in devices)) or "none"
            problems.append(
                f"vllm_link_rdma_devices names {name}, which is not on this host (it has {there}): correct it for this host"
            )
            continue
        entry = _entry(ports, address, local)
        if entry is None:
            problems.append(
                f"{name} has no entry of RoCE version 2 for an address of this host ({tables(ports)}): give its interface an address, "
                f"or take it out of vllm_link_rdma_devices"
            )
        elif not any("ACTIVE" in port.state for port in ports):
            problems.append(f"{name} is {ports[0].state}: look at the cable and at `rdma link show`")
        else:
            used.append((name, entry))
    if used and not any(entry.address == address for _name, entry in used):
        problems.append(
            f"none of {', '.join(names)} has an entry of RoCE version 2 for vllm_link_address {address} on {interface} ({tables(devices)}): "
            f"correct vllm_link_rdma_devices or vllm_link_address for this host"
        )
    return tuple(used), problems


def _fits(entry: Entry, address: str) -> bool:
    return entry.kind == ROCE_V2 and entry.address == address


def _entry(ports: Sequence[Device], address: str, local: set[str]) -> Entry | None:
    """The entry for the link's own address, else for another address of this host: the port's second half has its own subnet."""
    entries = [entry for port in ports for entry in port.entries if entry.kind == ROCE_V2]
    mine = [entry for entry in entries if entry.address == address]
    others = [entry for entry in entries if entry.address in local and ipaddress.ip_address(entry.address).version == 4]
    return next(iter(mine or others), None)


def tables(devices: Sequence[Device]) -> str:
    """The address tables in one line."""
    lines = [
        f"{device.name} "
        + (", ".join(f"{e.index}: {e.address} {e.kind} {e.interface}".strip() for e in device.entries) or "empty")
        for device in devices
    ]
    return "; ".join(lines) or "there is no RDMA device"


def index(found: Found) -> int | None:
    """The one index for NCCL. With several devices there is none: each has its own, which NCCL finds by itself."""
    return found.devices[0][1].index if len(found.devices) == 1 else None


def recorded_problems(identity: str, environment: Mapping[str, str], found: Found) -> list[str]:
    """What a release that was made earlier says of this host's link and is true no longer."""
    there, now = environment.get("NCCL_IB_GID_INDEX"), index(found)
    if there is None or now is None or there == str(now):
        return []
    name, entry = found.devices[0]
    return [
        f"release {identity} was made with NCCL_IB_GID_INDEX {there}, but {name} has {entry.address} at {now} now: the playbook cutover.yml makes "
        f"a release with what is there today"
    ]
