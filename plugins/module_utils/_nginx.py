# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is admitted to the proxy, as text, and the reading of what nginx and the kernel say about it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

import ipaddress
import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

MARK = "# gb10.vllm membership: "
MAX_FAILS = range(0, 11)
FAIL_TIMEOUT = range(1, 11)
WEIGHT = range(1, 101)
MAX_CONNS = range(0, 65536)
USUAL_SHARE = {"weight": 1, "max_conns": 0}

# nginx refuses an upstream without a server. A lone `down` server is never contacted: every request ends at once with
# "no live upstreams", which the role's configuration turns into the 503 that clients can retry.
_NOBODY = "# No copy is admitted. nginx wants at least one server; this one is down and never contacted.\nserver 127.0.0.1:1 down;\n"
_NOTICE = (
    "# Written by the module gb10.vllm.proxy_server; the first line is what counts, the rest follows from it.\n"
    "# Do not edit: admit and withdraw copies with the module, or with the playbooks of the collection.\n"
)


class NginxError(Exception):
    """Something about the proxy that a person has to know; the message names the value and the way out."""


@dataclass(frozen=True)
class Server:
    """One admitted copy; limits and a share of its own only where they differ from what the file says for it."""

    name: str
    server: str
    max_fails: int | None = None
    fail_timeout_seconds: int | None = None
    weight: int | None = None
    max_conns: int | None = None


@dataclass(frozen=True)
class Membership:
    """The content of servers.conf: the limits for every server, and the admitted servers sorted by name.

    `shares` has the weight and the cap of copies, admitted or not, by name; so they outlive a withdrawal.
    `withdrawn` has those that the members service took out and may put back, by name: see `_members`. It is in this file so that
    both change in one step. Whoever else admits or withdraws such a copy has decided anew, and its record ends.
    """

    max_fails: int = 2
    fail_timeout_seconds: int = 3
    servers: tuple[Server, ...] = ()
    shares: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    withdrawn: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def canonical(server: str) -> str:
    """`IP:PORT` or `[IPv6]:PORT` in the one spelling used everywhere; NginxError for anything else."""
    address, port = split(server)
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"


def split(server: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """The address and the port of a server; names are refused, because nginx resolves them only once, at a reload."""
    match = re.fullmatch(r"(?:\[([^\]]+)\]|([^:\[\]]+)):([0-9]{1,5})", server)
    if not match:
        raise NginxError(f"server '{server}' is not of the form IP:PORT (or [IPv6]:PORT)")
    try:
        address = ipaddress.ip_address(match[1] or match[2])
    except ValueError:
        raise NginxError(
            f"server '{server}': '{match[1] or match[2]}' is not an IP address; names are not accepted, "
            "because nginx looks them up only when it reloads"
        ) from None
    if bool(match[1]) != (address.version == 6):
        raise NginxError(f"server '{server}': only an IPv6 address is written in brackets")
    if address.is_unspecified or address.is_multicast or "%" in str(address):
        raise NginxError(f"server '{server}': {address} is not the address of one machine")
    if not 1 <= int(match[3]) <= 65535:
        raise NginxError(f"server '{server}': {match[3]} is not a port (1 to 65535)")
    return address, int(match[3])


def check_limits(
    max_fails: int | None = None,
    fail_timeout_seconds: int | None = None,
    weight: int | None = None,
    max_conns: int | None = None,
) -> None:
    """Bounds of nginx's own marks: with a long fail_timeout nginx turns clients away from a copy that is well again."""
    for name, value, bounds in (
        ("max_fails", max_fails, MAX_FAILS),
        ("fail_timeout_seconds", fail_timeout_seconds, FAIL_TIMEOUT),
        ("weight", weight, WEIGHT),
        ("max_conns", max_conns, MAX_CONNS),
    ):
        if value is not None and value not in bounds:
            raise NginxError(f"{name} is {value}, must be {bounds[0]} to {bounds[-1]}")


def shares(copies: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Weight and cap by name, of those copies that have something else than the usual share."""
    wanted = {}
    for copy in copies:
        share = {"weight": int(copy.get("weight") or 1), "max_conns": int(copy.get("max_conns") or 0)}
        check_limits(**share)
        if share != USUAL_SHARE:
            wanted[str(copy["name"])] = share
    return wanted


def share_of(membership: Membership, entry: Server) -> tuple[int, int]:
    """Weight and cap of a server: its own, else those that the file has for its name."""
    said = {**USUAL_SHARE, **membership.shares.get(entry.name, {})}
    return (
        said["weight"] if entry.weight is None else entry.weight,
        said["max_conns"] if entry.max_conns is None else entry.max_conns,
    )


def render(membership: Membership) -> str:
    """The whole text of servers.conf."""
    document = asdict(membership)
    for name in ("shares", "withdrawn"):
        if not document[name]:
            del document[name]
    document["servers"] = [{k: v for k, v in s.items() if v is not None} for s in document["servers"]]
    lines = [f"{MARK}{json.dumps(document, sort_keys=True)}\n{_NOTICE}"]
    for entry in membership.servers:
        fails = membership.max_fails if entry.max_fails is None else entry.max_fails
        timeout = entry.fail_timeout_seconds or membership.fail_timeout_seconds
        weight, max_conns = share_of(membership, entry)
        extra = (f" weight={weight}" if weight != 1 else "") + (f" max_conns={max_conns}" if max_conns else "")
        lines.append(f"server {entry.server} max_fails={fails} fail_timeout={timeout}s{extra};  # {entry.name}\n")
    return "".join(lines) if membership.servers else lines[0] + _NOBODY


def parse(text: str, path: str) -> Membership:
    """The membership that servers.conf carries in its first line."""
    first = text.split("\n", 1)[0]
    try:
        if not first.startswith(MARK):
            raise ValueError(f"its first line does not start with '{MARK.strip()}'")
        document = json.loads(first.removeprefix(MARK))
        servers = tuple(Server(**entry) for entry in document.pop("servers"))
        membership = Membership(servers=servers, **document)
        for entry in (*servers, *(Server(**record["entry"]) for record in membership.withdrawn.values())):
            canonical(entry.server)
        for limits in membership.shares.values():
            check_limits(**limits)
    except (ValueError, TypeError, KeyError, AttributeError, NginxError) as error:
        raise NginxError(
            f"{path} was not written by this collection or is damaged ({error}); "
            "move it away, run the role gb10.vllm.proxy, and admit the healthy copies again"
        ) from None
    return membership


def admit(membership: Membership, wanted: Server) -> Membership:
    """With this server, in place of an earlier one of the same name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:-]*", wanted.name):
        raise NginxError(f"name '{wanted.name}' is not a plain inventory name")
    check_limits(wanted.max_fails, wanted.fail_timeout_seconds, wanted.weight, wanted.max_conns)
    wanted = replace(wanted, server=canonical(wanted.server))
    others = [entry for entry in membership.servers if entry.name != wanted.name]
    for entry in others:
        if canonical(entry.server) == wanted.server:
            raise NginxError(
                f"server {wanted.server} is already admitted as '{entry.name}', so it cannot be '{wanted.name}' too; "
                f"withdraw '{entry.name}' first or correct the address"
            )
    servers = tuple(sorted([*others, wanted], key=lambda entry: entry.name))
    return replace(membership, servers=servers, withdrawn=_without(membership.withdrawn, wanted.name))


def withdraw(membership: Membership, name: str) -> Membership:
    """Without the server of this name."""
    servers = tuple(entry for entry in membership.servers if entry.name != name)
    return replace(membership, servers=servers, withdrawn=_without(membership.withdrawn, name))


def _without(records: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Mapping[str, Any]]:
    return {other: record for other, record in records.items() if other != name}


def listens(text: str) -> list[tuple[str, int]]:
    """The (address, port) pairs of `listen` in a configuration text; an empty address stands for all of them."""
    found = []
    for value in re.findall(r"^\s*listen\s+([^\s;]+)", text, re.MULTILINE):
        match = re.fullmatch(r"(?:(\[[^\]]+\]|[^:\[\]]+):)?([0-9]+)", value)
        if match:
            address = (match[1] or "").strip("[]")
            found.append(("" if address in ("*", "0.0.0.0", "::") else address, int(match[2])))
    return found


def is_own_listener(server: str, own: Iterable[tuple[str, int]], local: bool) -> bool:
    """Would this server be the proxy itself? `local`: its address is one of this host's."""
    address, port = split(server)
    return any(
        port == listen_port and (local if not listen_address else str(address) == listen_address)
        for listen_address, listen_port in own
    )


def rewrite_includes(text: bytes, live: str, shadow: str) -> bytes:
    """Point the absolute includes of a file at the shadow copy of the configuration."""
    pattern = rb"""(\binclude\s+["']?)""" + re.escape(live.encode()) + rb"/"
    return re.sub(pattern, lambda match: match[1] + shadow.encode() + b"/", text)


def redirect_logs(text: bytes, shadow: str) -> bytes:
    """Let a test open (and so create) logs and the pid file in the shadow instead of where the configuration says."""
    pattern = rb"""(\b(?:access_log|error_log|pid)\s+)/[^\s;]*?([^\s;/]+)(?=[\s;])"""
    return re.sub(pattern, lambda match: match[1] + shadow.encode() + b"/" + match[2], text)


def included_files(dump: str) -> set[str]:
    """The files of which `nginx -T` says that they are part of the configuration."""
    return set(re.findall(r"^# configuration file (.+):$", dump, re.MULTILINE))


def error_line(output: str, shadow: str = "", live: str = "") -> str:
    """The line that says why nginx refused, with the paths a person knows; the last line if none is marked."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marked = (
        [line for line in lines if "[emerg]" in line] or [line for line in lines if "[alert]" in line] or lines[-1:]
    )
    line = marked[0] if marked else "no error line"
    return line.replace(shadow, live) if shadow else line


@dataclass(frozen=True)
class Workers:
    """The worker processes of one master: accepting, finishing their last requests, and not ready yet."""

    live: frozenset[int] = frozenset()
    draining: frozenset[int] = frozenset()
    starting: frozenset[int] = frozenset()


def classify(children: Mapping[int, str]) -> Workers:
    """Sort a master's children by their titles. A fresh child carries its master's title until it is initialised."""
    groups: dict[str, set[int]] = {"live": set(), "draining": set(), "starting": set()}
    for pid, title in children.items():
        if title.startswith("nginx: worker process is shutting down"):
            groups["draining"].add(pid)
        elif title.startswith("nginx: worker process"):
            groups["live"].add(pid)
        elif title.startswith("nginx: master process"):
            groups["starting"].add(pid)
    return Workers(*(frozenset(groups[key]) for key in ("live", "draining", "starting")))


def reload_is_proven(before: Workers, now: Workers) -> bool:
    """Every worker that accepts is new, and there is one. One that was still starting before is an old one too."""
    known = before.live | before.draining | before.starting
    return bool(now.live) and not now.starting and not now.live & known


def count_connections(tables: Iterable[str], servers: Collection[str], inodes: Collection[int]) -> dict[str, int]:
    """Connections (established or opening) to each server in /proc/net/tcp and tcp6, of the sockets in `inodes`."""
    wanted = {canonical(server): 0 for server in servers}
    for line in (line for table in tables for line in table.splitlines()[1:]):
        fields = line.split()
        if len(fields) < 10 or fields[3] not in ("01", "02") or int(fields[9]) not in inodes:
            continue
        server = _decode(fields[2])
        if server in wanted:
            wanted[server] += 1
    return wanted


def _decode(field: str) -> str:
    """`HEXADDRESS:HEXPORT` of /proc/net/tcp: words of four bytes in the byte order of this machine."""
    address_hex, port_hex = field.split(":")
    raw = bytes.fromhex(address_hex)
    step = -1 if sys.byteorder == "little" else 1
    address: Any = ipaddress.ip_address(b"".join(raw[i : i + 4][::step] for i in range(0, len(raw), 4)))
    address = getattr(address, "ipv4_mapped", None) or address
    return f"[{address}]:{int(port_hex, 16)}" if address.version == 6 else f"{address}:{int(port_hex, 16)}"
