# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who walks past the proxy, from the texts of /proc/net/tcp, of the engine's log and of configuration files.

Private to this collection: may change at any time. Host-side, standard library only, without I/O.
"""

from __future__ import annotations

import ipaddress
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

LISTEN = "0A"
# SYN_SENT too: a client that a firewall keeps out is one that wants to walk past. The last ones are being closed, or were just now.
CLIENT_STATES = {"01", "02", "08"}
SERVER_STATES = {"01", "03", "04", "05", "06", "08", "09", "0B"}

# What uvicorn writes for each request. Port 0 stands for an address that a proxy has reported, not for a connection.
_REQUEST = re.compile(r'(?:^|\s)(\S+):(\d+) - "([A-Z]+ \S+) HTTP/[0-9.]+" \d{3}')
_STAMP = re.compile(r"^(\d+)(?:\.\d+)?\s")
_COMMENT = re.compile(r"\s*(?:#|;|//|--\s)")
# An inventory of this collection names address and port because it must.
_INVENTORY = re.compile(r"vllm_port\W+\d+")


@dataclass(frozen=True)
class Socket:
    """One line of /proc/net/tcp or tcp6."""

    local: Address
    local_port: int
    remote: Address
    remote_port: int
    state: str
    inode: int


def parse_address(text: str) -> Address | None:
    """An IP address, an IPv4 one in the clothes of IPv6 as the IPv4 one; None for anything else."""
    try:
        address = ipaddress.ip_address(text.strip("[]").split("%", 1)[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _kernel_address(digits: str) -> Address:
    """The kernel prints an address as 32-bit numbers in its own byte order."""
    data = bytes.fromhex(digits)
    if sys.byteorder == "little":
        data = b"".join(data[start : start + 4][::-1] for start in range(0, len(data), 4))
    address = ipaddress.ip_address(data)
    return getattr(address, "ipv4_mapped", None) or address


def read_sockets(text: str) -> Iterator[Socket]:
    """Every TCP socket of /proc/net/tcp or tcp6, without its headline."""
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 10 or ":" not in fields[1]:
            continue
        (local, local_port), (remote, remote_port) = fields[1].split(":"), fields[2].split(":")
        yield Socket(
            _kernel_address(local), int(local_port, 16), _kernel_address(remote), int(remote_port, 16), fields[3],
            int(fields[9]),
        )  # fmt: skip


@dataclass(frozen=True)
class Engine:
    """Where an engine is reached.

    Attributes:
        name: inventory name of its host.
        addresses: its IP addresses.
        names: other texts that a client may have in the place of an address.
        port: HTTP port.
    """

    name: str
    addresses: frozenset[Address]
    names: frozenset[str]
    port: int

    @staticmethod
    def make(name: str, places: Iterable[str], port: int) -> Engine:
        """An engine from whatever its inventory calls it."""
        known = {place: parse_address(place) for place in [name, *places]}
        return Engine(
            name,
            frozenset(address for address in known.values() if address),
            frozenset(place for place, address in known.items() if not address),
            port,
        )


@dataclass
class Sources:
    """From where connections are in order: networks of the proxies and others, and the host itself."""

    networks: list[ipaddress.IPv4Network | ipaddress.IPv6Network]
    own: set[Address] = field(default_factory=set)

    def local(self, address: Address) -> bool:
        return address.is_loopback or address in self.own

    def accept(self, address: Address) -> bool:
        return self.local(address) or any(
            address.version == network.version and address in network for network in self.networks
        )


def strangers(sockets: Iterable[Socket], port: int, sources: Sources) -> set[tuple[Address, int]]:
    """Clients of the engine's port that may not: address and port of each connection."""
    return {
        (socket.remote, socket.remote_port)
        for socket in sockets
        if socket.local_port == port and socket.state in SERVER_STATES and not sources.accept(socket.remote)
    }


def clients(sockets: Iterable[Socket], engines: Iterable[Engine], own: str = "") -> Iterator[tuple[Socket, Engine]]:
    """Connections of this host to an engine. `own` is the name of this host when it has an engine: its loopback is one more way."""
    known = list(engines)
    for socket in sockets:
        if socket.state not in CLIENT_STATES:
            continue
        for engine in known:
            local = engine.name == own and socket.remote.is_loopback
            if socket.remote_port == engine.port and (local or socket.remote in engine.addresses):
                yield socket, engine
                break


@dataclass
class Requests:
    """What one client sent: how many requests, the first line of the last one and its time in seconds since 1970 (0: unknown)."""

    count: int = 0
    last: str = ""
    stamp: int = 0


def requests(lines: Iterable[str], sources: Sources) -> dict[Address, Requests]:
    """Requests in the engine's log that came past the proxy, by client. Each line begins with seconds since 1970."""
    found: dict[Address, Requests] = {}
    for line in lines:
        match = _REQUEST.search(line)
        address = parse_address(match[1]) if match and match[2] != "0" else None
        if not match or address is None or sources.accept(address):
            continue
        entry, stamp = found.setdefault(address, Requests()), _STAMP.match(line)
        entry.count += 1
        # No query strings: they may hold what nobody else shall read.
        entry.last, entry.stamp = match[3].split("?", 1)[0], int(stamp[1]) if stamp else entry.stamp
    return found


Finder = Callable[[str], list[tuple[int, str, str]]]


def mentions(engines: Iterable[Engine], own: str = "") -> Finder:
    """A function that finds in a text where it names an engine's address or host with the engine's port.

    It returns line number, engine and `ADDRESS:PORT`. The port is behind the address, or in the same line, or within two lines
    in an entry called port. Lines that are comments are no configuration. `own` as for `clients`.
    """
    patterns = []
    for engine in engines:
        places = sorted({*map(str, engine.addresses), *engine.names}, key=len, reverse=True)
        place = rf"(?<![\w.:-])({'|'.join(map(re.escape, places))})(?![\w-]|\.\d)"
        port = re.compile(rf"(?<![\w.]){engine.port}(?![\w.])")
        entry = re.compile(rf"(?i)port\b\W{{0,5}}{engine.port}(?![\w.])")
        patterns.append((engine, re.compile(place), port, entry))
        if engine.name == own:
            local = rf"(?<![\w.:-])(127\.0\.0\.1|localhost|\[::1\])(?=:{engine.port}(?!\d))"
            patterns.append((engine, re.compile(local), port, entry))

    def find(text: str) -> list[tuple[int, str, str]]:
        if not any(pattern.search(text) for _engine, pattern, _port, _entry in patterns):
            return []
        lines = [("" if _COMMENT.match(line) else _INVENTORY.sub("", line)) for line in text.splitlines()]
        found = []
        for number, line in enumerate(lines):
            for engine, pattern, port, entry in patterns:
                match = pattern.search(line)
                if match and (port.search(line, match.end()) or entry.search("\n".join(_around(lines, number)))):
                    found.append((number + 1, engine.name, f"{match[1]}:{engine.port}"))
                    break
        return found

    return find


def _around(lines: list[str], number: int) -> list[str]:
    return lines[max(0, number - 2) : number + 3]
