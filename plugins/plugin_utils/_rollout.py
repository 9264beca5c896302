# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout has to do: from what runs and what is wanted to the path and each host's steps, and what came of it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

NONE, ROLLING, SWITCH = "none", "rolling", "switch"


class RefusedError(ValueError):
    """A rollout that must not begin; the message gives the reason and the next step."""


@dataclass(frozen=True)
class Engine:
    """What is known of one host: `current` and `target` are release ids, None without one."""

    name: str
    rank: int
    current: str | None
    current_topology: str | None
    current_rank: int
    target: str
    target_topology: str
    running: bool
    healthy: bool
    admitted: bool

    @property
    def is_served(self) -> bool:
        """Whether clients may reach this host: every copy, and rank 0 of a pair."""
        return self.target_topology == "replicated" or self.rank == 0

    @property
    def is_right(self) -> bool:
        """Runs what is wanted and looks healthy; a rank without a port can only be seen running."""
        return self.current == self.target and self.running and (self.healthy or not self.is_served)


@dataclass(frozen=True)
class HostPlan:
    """Steps of one host; `release` is what it runs afterwards, `back` what a failure returns it to.

    `serving` is whether it is in front of clients and looks healthy before anything is done. `leave` is to withdraw it from
    the proxies first; a rank without a port was never in front of clients.
    """

    name: str
    release: str
    back: str | None
    back_topology: str | None
    serving: bool
    leave: bool
    stop: bool
    start: bool
    admit: bool


@dataclass(frozen=True)
class Plan:
    path: str
    topology: str
    words: str
    hosts: tuple[HostPlan, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "topology": self.topology,
            "words": self.words,
            "hosts": {host.name: asdict(host) for host in self.hosts},
        }


def engine_from_facts(facts: Mapping[str, Any], target: Mapping[str, Any], admitted: Iterable[str]) -> Engine:
    """From the result of engine_info and the record of the wanted release (a manifest with its id)."""
    current = facts["engine"].get("current") or {}
    return Engine(
        name=facts["name"],
        rank=int(facts["rank"]),
        current=current.get("id"),
        current_topology=current.get("topology"),
        current_rank=int(current.get("rank", 0)),
        target=target["id"],
        target_topology=target["topology"],
        running=bool(facts["engine"]["running"]),
        healthy=bool(facts["engine"]["healthy"]),
        admitted=facts["name"] in set(admitted),
    )


def decide(engines: Sequence[Engine]) -> Plan:
    """Pick the path. One engine over several hosts is one unit: it is switched as a whole or not at all."""
    if not engines:
        raise RefusedError("there is no host in the group engines, so there is nothing to roll out")
    topologies = {engine.target_topology for engine in engines}
    if len(topologies) > 1:
        raise RefusedError(
            f"the hosts ask for different topologies ({', '.join(sorted(topologies))}): set one vllm_topology for the site"
        )
    (topology,) = topologies
    wrong = [engine for engine in engines if not engine.is_right]
    stays_replicated = topology == "replicated" and all(e.current_topology in (None, "replicated") for e in engines)
    serving_elsewhere = any(engine.is_right for engine in engines)
    if not wrong:
        path = NONE if all(engine.admitted == engine.is_served for engine in engines) else ROLLING
        touched: set[str] = set()
    elif stays_replicated and (serving_elsewhere or (len(engines) > 1 and any(e.running for e in engines))):
        path, touched = ROLLING, {engine.name for engine in wrong}
    else:
        path, touched = SWITCH, {engine.name for engine in engines}
    hosts = tuple(_host_plan(engine, engine.name in touched) for engine in engines)
    return Plan(path, topology, _words(path, topology, engines, touched), hosts)


def _host_plan(engine: Engine, touched: bool) -> HostPlan:
    stop = touched and (engine.current is not None or engine.running)
    return HostPlan(
        name=engine.name,
        release=engine.target,
        back=engine.current if engine.current != engine.target else None,
        back_topology=engine.current_topology if engine.current != engine.target else None,
        serving=engine.admitted and engine.running and engine.healthy,
        leave=(stop and engine.current_rank == 0) or (engine.admitted and (stop or not engine.is_served)),
        stop=stop,
        start=touched,
        admit=engine.is_served,
    )


def _words(path: str, topology: str, engines: Sequence[Engine], touched: set[str]) -> str:
    if path == NONE:
        return f"Everything wanted is running and healthy ({topology}); nothing changes."
    if path == ROLLING and not touched:
        return "Every engine runs what is wanted; only the proxy's membership is put right."
    if path == ROLLING:
        names = ", ".join(engine.name for engine in engines if engine.name in touched)
        return f"Copies are renewed one after the other while the others serve: {names}."
    before = {engine.current_topology for engine in engines if engine.current} or {"nothing"}
    old = " and ".join(sorted(str(name) for name in before))
    if old == "nothing":
        return f"First start of the site as {topology}; nothing has to be stopped."
    if len(engines) == 1:
        return "The only copy is renewed; the model is away for the time of one start."
    return (
        f"Switch from {old} to {topology}: the old engine is drained and stopped on every host, then all hosts start at once "
        f"and the first copy that is ready serves at once. The model is away for the time of one start."
    )


def rollback_targets(facts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The previous release of every host, refused where going back would not bring one world back.

    `facts` are results of engine_info with `name` and `rank`; the records are those on the hosts' disks.
    """
    targets: dict[str, dict[str, Any]] = {}
    for host in facts:
        previous = host["engine"].get("previous")
        if not previous:
            raise RefusedError(
                f"host {host['name']} has no previous release, so there is nothing to go back to on it. "
                f"Put the wanted values into the inventory and run the playbook cutover.yml instead"
            )
        targets[host["name"]] = previous
    worlds = {(target["topology"], target["ranks"]) for target in targets.values()}
    if len(worlds) > 1:
        seen = "; ".join(
            f"{name}: {target['topology']} of {target['ranks']}" for name, target in sorted(targets.items())
        )
        raise RefusedError(
            f"the previous releases do not belong together ({seen}). Run the playbook cutover.yml instead"
        )
    ((topology, ranks),) = worlds
    if topology == "split":
        order = sorted(target["rank"] for target in targets.values())
        if order != list(range(ranks)):
            raise RefusedError(
                f"the previous split release needs ranks 0 to {ranks - 1}, the hosts hold {order}. Run the playbook cutover.yml instead"
            )
    return targets


def settle(plan: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What came of it. `results` maps a host to C(ok), C(reason) and, where it failed and serves its old release, C(serving).

    A host without a result was unreachable. `serving` are hosts that clients reach afterwards. `restore` is true when a switch
    has left none and every host can go back.
    """
    hosts = plan["hosts"]
    failed = {
        name: results.get(name, {}).get("reason") or "the host could not be reached"
        for name in hosts
        if not results.get(name, {}).get("ok")
    }
    renewed = (
        []
        if plan["topology"] == "split" and failed
        else [n for n, host in hosts.items() if host["admit"] and n not in failed]
    )
    serving = [name for name in hosts if name in renewed or results.get(name, {}).get("serving")]
    can_restore = all(host["back"] for host in hosts.values())
    return {
        "ok": not failed,
        "serving": serving,
        "failed": failed,
        "restore": plan["path"] == SWITCH and bool(failed) and not serving and can_restore,
    }
