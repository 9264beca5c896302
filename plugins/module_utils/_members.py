# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copies the members service of a proxy may take out and put back, and who may ask for it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; the program `members` is its edge.

A copy is taken out because its own host asks (its watchdog is about to restart it), or because it cuts streams. Each such
withdrawal leaves a record in the membership; only a copy with a record is ever put back, and only through the gate. Where an
operator or a rollout has admitted or withdrawn the copy since, there is no record any more.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import Membership, Server, admit, withdraw

# Who decided: the copy's host, the broken streams, or this service because the host is silent.
HOST, STREAMS, PROXY = "host", "streams", "proxy"
LONGEST_REASON = 300


@dataclass(frozen=True)
class Copy:
    """One copy of the site, the addresses from which its host may speak, and how it is proven if nothing newer is known."""

    name: str
    server: str
    addresses: frozenset[str]
    gate: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Decision:
    """An HTTP status and why, in words. `act`: there is something to do first."""

    status: int
    words: str
    act: bool = False


class Refused(Exception):
    """Nothing is to be done; carries the decision that says why."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.words)
        self.decision = decision


class Unfit(Exception):
    """A question that cannot be understood; carries its HTTP status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def copies(entries: Sequence[Mapping[str, Any]]) -> list[Copy]:
    """The site's copies from the configuration. What is no address (a host name, say) nobody can come from."""
    return [
        Copy(
            str(entry["name"]),
            str(entry["server"]),
            frozenset(filter(None, map(plain, entry["addresses"]))),
            entry.get("gate") or {},
        )
        for entry in entries
    ]


def plain(address: str) -> str:
    """The one spelling of an address; empty if it is none."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def caller(known: Sequence[Copy], peer: str, local: Collection[str] = ()) -> Copy | Decision:
    """The copy whose host is asking. `local`: names of copies on this host, which may come from the loopback address too."""
    address = plain(peer)
    found = [copy for copy in known if address in copy.addresses]
    if not found and address in ("127.0.0.1", "::1"):
        found = [copy for copy in known if copy.name in local]
    if len(found) == 1:
        return found[0]
    if found:
        names = " and ".join(copy.name for copy in found)
        return Decision(403, f"{address} is the address of {names}, so it is not clear for which it asks")
    return Decision(403, f"{address or peer} is not the address of an engine host of this site")


def status(membership: Membership, name: str) -> dict[str, Any]:
    """What a host is told of its own copy."""
    record = membership.withdrawn.get(name, {})
    return {
        "name": name,
        "admitted": is_admitted(membership, name),
        "withdrawn_since": record.get("since"),
        "reason": record.get("reason", ""),
        "by": record.get("by", ""),
    }


def is_admitted(membership: Membership, name: str) -> bool:
    return any(entry.name == name for entry in membership.servers)


def on_withdrawn(membership: Membership, name: str, paused: str, proving: bool) -> Decision:
    """The copy's host wants it to be out."""
    record = membership.withdrawn.get(name)
    if not is_admitted(membership, name):
        if record is None:
            return Decision(
                202, "it is not admitted, and not by this service: it stays out until it is admitted as usual"
            )
        # Nobody else may put it back now, and a gate that is running no longer counts.
        if record["by"] == HOST and not proving:
            return Decision(202, "it is withdrawn already")
    if paused:
        return Decision(409, f"paused: {paused}")
    return Decision(200, "it is withdrawn", act=True)


def on_cuts(membership: Membership, name: str, paused: str) -> Decision:
    """It cuts streams; never at the price of the last copy."""
    if not is_admitted(membership, name):
        return Decision(202, "it is not admitted")
    if len(membership.servers) < 2:
        return Decision(202, "it is the only copy that is admitted")
    if paused:
        return Decision(409, f"paused: {paused}")
    return Decision(200, "it is withdrawn", act=True)


def on_ready(membership: Membership, name: str, paused: str, now: float) -> Decision:
    """May it be proven and put back?"""
    if is_admitted(membership, name):
        return Decision(202, "it is admitted already")
    record = membership.withdrawn.get(name)
    if record is None:
        return Decision(202, "it was not withdrawn by this service, so it stays out until it is admitted as usual")
    if paused:
        return Decision(409, f"paused: {paused}")
    left = record.get("not_before", 0) - now
    if left > 0:
        return Decision(422, f"it has cut streams and stays out for another {left:.0f} s")
    return Decision(200, "it is admitted", act=True)


def due(record: Mapping[str, Any], silent_seconds: float) -> float:
    """When this service itself tries to put the copy back, in seconds since the epoch.

    A copy that its host took out is that host's to return. A host that has said nothing for `silent_seconds` has lost its watchdog.
    """
    return max(record["not_before"], record["since"] + silent_seconds if record["by"] == HOST else 0.0)


def taken_out(membership: Membership, name: str, by: str, reason: str, now: float, not_before: float = 0) -> Membership:
    """Without this copy, and with the record that brings it back exactly as it was."""
    old = membership.withdrawn.get(name)
    entry = old["entry"] if old else _entry(next(entry for entry in membership.servers if entry.name == name))
    record = {
        "since": old["since"] if old else round(now, 3),
        # Another withdrawal is another record, also in the same second: see `put_back`.
        "number": int(old["number"]) + 1 if old else 1,
        "by": by,
        "reason": " ".join(reason.split())[:LONGEST_REASON],
        "not_before": round(max(not_before, old.get("not_before", 0) if old else 0), 3),
        "entry": entry,
    }
    after = withdraw(membership, name)
    return replace(after, withdrawn={**after.withdrawn, name: record})


def put_back(membership: Membership, name: str, proven: Mapping[str, Any]) -> Membership:
    """With this copy again, if its record is still the one it had when its proof began."""
    if membership.withdrawn.get(name) != proven:
        raise Refused(
            Decision(409, "while its gate was running somebody decided anew about it, so nothing was changed")
        )
    return admit(membership, Server(**proven["entry"]))


def _entry(server: Server) -> dict[str, Any]:
    return {key: value for key, value in asdict(server).items() if value is not None}


def request(method: str, path: str, body: bytes) -> tuple[str, str]:
    """What is asked for: ("", "") for a look, else the state and the reason."""
    if path != "/copy":
        raise Unfit(404, "there is only /copy")
    if method == "GET":
        return "", ""
    if method != "POST":
        raise Unfit(405, "only GET and POST")
    try:
        wish = json.loads(body)
        state, reason = wish["state"], wish.get("reason", "")
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Unfit(400, 'the body has to be JSON such as {"state": "withdrawn", "reason": "..."}') from None
    if state not in ("withdrawn", "ready") or not isinstance(reason, str):
        raise Unfit(400, "state has to be withdrawn or ready, and reason a text")
    return state, reason
