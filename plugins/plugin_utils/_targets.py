# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which release every host is to run: the staged one, the same again, a stable one from before, or what a rollout began.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A *world* is what all hosts ran when a rollout had ended well and stayed healthy: the id of that rollout, and one release per
host. Each host keeps its part in its own list; a world counts when every host of today's site has its part. Only worlds are
targets of a rollback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Facts = Mapping[str, Any]
# What served before the first release of ours: units and containers that were silenced, and are put back.
LEGACY = "legacy"


class RefusedError(ValueError):
    """A rollout that must not begin; the message gives the reason and the next step."""


@dataclass(frozen=True)
class World:
    """One stable state of the site: the rollout that made it, and each host's release."""

    rollout: str
    releases: Mapping[str, str]


@dataclass(frozen=True)
class Past:
    """The newest rollout as its journal tells it. `result` is empty while it has not ended."""

    rollout: str
    verb: str
    result: str
    targets: Mapping[str, str]
    before: Mapping[str, str]

    @property
    def is_done(self) -> bool:
        return self.result == "ok"


def worlds(facts: Sequence[Facts]) -> list[World]:
    """The stable states that every host knows, oldest first."""
    lists = {host["name"]: host["engine"].get("stable") or [] for host in facts}
    parts = {name: {entry["rollout"]: entry["release"] for entry in entries} for name, entries in lists.items()}
    first = next(iter(lists.values()), [])
    return [
        World(entry["rollout"], {name: parts[name][entry["rollout"]] for name in parts})
        for entry in first
        if all(entry["rollout"] in known for known in parts.values())
    ]


def past(events: Sequence[Mapping[str, Any]], rollout: str) -> Past | None:
    """The rollout of a journal; None when there is none, or one that never began."""
    begins = [event for event in events if event["step"] == "begin"]
    if not begins:
        return None
    ends = [event["result"] for event in events if event["step"] == "end"]
    begin = begins[0]
    return Past(
        rollout,
        begin.get("verb", "cutover"),
        ends[-1] if ends else "",
        begin.get("targets") or {},
        begin.get("before") or {},
    )


def is_legacy(releases: Mapping[str, str]) -> bool:
    return bool(releases) and set(releases.values()) == {LEGACY}


def legacy(facts: Sequence[Facts]) -> dict[str, str]:
    return {host["name"]: LEGACY for host in facts}


def legacy_is_silenced(facts: Sequence[Facts]) -> bool:
    """Whether a host keeps something that a rollback can put back."""
    return any((host.get("legacy") or {}).get("silenced") for host in facts)


def legacy_serves(facts: Sequence[Facts], now: bool = False) -> bool:
    """Whether the site is not ours yet: nothing of ours runs, and something is there that a switch has to silence, or runs `now`."""
    ours = any(host["engine"]["running"] for host in facts)
    found = [host.get("legacy") or {} for host in facts]
    return not ours and any(entry.get("silence") and (entry.get("serving") or not now) for entry in found)


def running(facts: Sequence[Facts]) -> dict[str, str]:
    """The current release of each host; a host without one is left out."""
    current = {host["name"]: (host["engine"].get("current") or {}).get("id") for host in facts}
    return {name: release for name, release in current.items() if release}


def staged(facts: Sequence[Facts]) -> dict[str, str]:
    return {host["name"]: host["staged"]["id"] for host in facts}


def same(facts: Sequence[Facts]) -> dict[str, str]:
    """What each host runs now, for a restart."""
    now = running(facts)
    for host in facts:
        if host["name"] not in now:
            raise RefusedError(
                f"host {host['name']} has no current release, so there is nothing to restart on it. Run the playbook cutover.yml"
            )
    return now


def resumed(facts: Sequence[Facts], last: Past | None) -> dict[str, str]:
    """What the newest rollout was about to bring."""
    if last is None or last.is_done:
        said = "there never was a rollout" if last is None else f"the last rollout, {last.rollout}, ended well"
        raise RefusedError(f"{said}, so there is nothing to resume")
    return _of_these_hosts(facts, last.targets, f"rollout {last.rollout}")


def rolled_back(facts: Sequence[Facts], last: Past | None, wanted: str = "") -> dict[str, str]:
    """Where a rollback goes: to the stable state named by `wanted`, or else to the one before.

    After a rollout that did not end well this is the state in which it found the site (a rollback goes on to where it went).
    Before the first of our own states is what was silenced for it, also to be named as `legacy`.
    """
    known = worlds(facts)
    if wanted == LEGACY and legacy_is_silenced(facts):
        return legacy(facts)
    if wanted:
        for world in known:
            if world.rollout == wanted:
                return dict(world.releases)
        raise RefusedError(
            f"vllm_rollback_to is {wanted!r}, which is no stable state of this site. It knows {_named(known)}"
        )
    if last is not None and not last.is_done:
        if last.verb == "rollback":
            return _of_these_hosts(facts, last.targets, f"rollout {last.rollout}")
        if is_legacy(last.before):
            return legacy(facts)
        for world in reversed(known):
            if world.releases == last.before:
                return dict(world.releases)
    now = last.targets if last is not None and not last.is_done else running(facts)
    for world in reversed(known):
        if world.releases != now:
            return dict(world.releases)
    if legacy_is_silenced(facts):
        return legacy(facts)
    lacking = [host["name"] for host in facts if not host["engine"].get("stable")]
    why = f"host {lacking[0]} has never run a release that became stable" if lacking else "nothing else was ever stable"
    raise RefusedError(
        f"there is no stable state to go back to: {why}. Put the wanted values into the inventory and run the playbook cutover.yml instead"
    )


def _named(known: Sequence[World]) -> str:
    return ", ".join(world.rollout for world in reversed(known)) or "none yet"


def _of_these_hosts(facts: Sequence[Facts], targets: Mapping[str, str], where: str) -> dict[str, str]:
    names = {host["name"] for host in facts}
    if names != set(targets):
        raise RefusedError(
            f"{where} was about {', '.join(sorted(targets)) or 'no host'}, the group engines has {', '.join(sorted(names))}. "
            f"Put the hosts back into the inventory, or run the playbook cutover.yml"
        )
    return dict(targets)


def records(facts: Sequence[Facts], targets: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The record of each host's target, refused where it is missing or where the records do not make one world."""
    found: dict[str, dict[str, Any]] = {}
    for host in facts:
        wanted = targets[host["name"]]
        staged_here = host.get("staged") or {}
        record = (host["engine"].get("records") or {}).get(wanted)
        if record is None and staged_here.get("id") == wanted:
            record = {**staged_here["manifest"], "id": wanted}
        if record is None:
            raise RefusedError(
                f"host {host['name']} does not have the release {wanted} any more, so nothing was stopped. Name another stable state with "
                f"-e vllm_rollback_to=..., or put the wanted values into the inventory and run the playbook cutover.yml"
            )
        found[host["name"]] = record
    kinds = {(record["topology"], record["ranks"]) for record in found.values()}
    if len(kinds) > 1:
        seen = "; ".join(f"{name}: {record['topology']} of {record['ranks']}" for name, record in sorted(found.items()))
        raise RefusedError(
            f"the wanted releases do not belong together ({seen}): set one vllm_topology for the site and run the playbook cutover.yml"
        )
    for topology, ranks in kinds:
        order = sorted(record["rank"] for record in found.values())
        if topology == "split" and order != list(range(ranks)):
            raise RefusedError(
                f"a split release needs the ranks 0 to {ranks - 1}, the hosts hold {order}. Run the playbook cutover.yml instead"
            )
    return found
