# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout has to do: from what runs and what is wanted to the path and each host's steps, and what came of it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

The same decision serves a first run and one that was interrupted: it looks at what runs, not at what was done. A host that
already runs what is wanted is not touched, and one that still loads it is waited for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _targets
from ansible_collections.gb10.vllm.plugins.plugin_utils._targets import RefusedError

NONE, ROLLING, SWITCH = "none", "rolling", "switch"
REPLICATED, SPLIT = "replicated", "split"
LEGACY = _targets.LEGACY


@dataclass(frozen=True)
class Engine:
    """What is known of one host. Releases are ids, None without one.

    `back` is the release that a failure returns it to. `loading`: it runs, does not answer yet, and still has time to.
    `forced`: it is renewed although it runs what is wanted. `silence`: what is not ours and has to be silenced here, and
    `is_foreign` whether that serves now.
    """

    name: str
    rank: int
    target: str
    target_topology: str
    current: str | None = None
    current_topology: str | None = None
    current_rank: int = 0
    back: str | None = None
    back_topology: str | None = None
    running: bool = False
    healthy: bool = False
    loading: bool = False
    admitted: bool = False
    forced: bool = False
    silence: tuple[str, ...] = ()
    is_foreign: bool = False

    @property
    def is_served(self) -> bool:
        """Whether clients may reach this host: every copy, and rank 0 of a pair."""
        return self.target_topology == REPLICATED or self.rank == 0

    @property
    def is_right(self) -> bool:
        """Runs what is wanted and answers, or still has time to; a rank without a port can only be seen running."""
        fit = self.healthy or self.loading or not self.is_served
        return self.current == self.target and self.running and fit and not self.forced

    @property
    def is_copy_that_serves(self) -> bool:
        return self.current_topology == REPLICATED and self.running and self.healthy


@dataclass(frozen=True)
class HostPlan:
    """Steps of one host; `release` is what it runs afterwards, `back` what a failure returns it to.

    `previous` and `back_previous` are what the link `previous` says after the one and the other, None to leave that to the
    switch. `serving` is whether it is in front of clients and looks healthy before anything is done. `leave` is to withdraw
    it from the proxies first, also when it is out already: its watchdog may bring it back before the rollout pauses that. A rank
    without a port was never in front of clients.
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
    previous: str | None = None
    back_previous: str | None = None
    silence: tuple[str, ...] = ()


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


def engine_from_facts(
    facts: Mapping[str, Any],
    target: Mapping[str, Any],
    back: Mapping[str, Any] | None,
    admitted: Collection[str],
    forced: bool,
) -> Engine:
    """From the result of engine_info, and the records of the wanted release and of the one to go back to."""
    engine = facts["engine"]
    current = engine.get("current") or {}
    legacy = facts.get("legacy") or {}
    return Engine(
        name=facts["name"],
        rank=int(target["rank"]),
        target=target["id"],
        target_topology=target["topology"],
        current=current.get("id"),
        current_topology=current.get("topology"),
        current_rank=int(current.get("rank", 0)),
        back=back["id"] if back else None,
        back_topology=back["topology"] if back else None,
        running=bool(engine["running"]),
        healthy=bool(engine["healthy"]),
        loading=bool(engine.get("loading")),
        admitted=facts["name"] in admitted,
        forced=forced,
        silence=tuple(legacy.get("silence") or ()),
        is_foreign=bool(legacy.get("serving")),
    )


def decide(engines: Sequence[Engine]) -> Plan:
    """Pick the path. One engine over several hosts is one unit: it is switched as a whole or not at all."""
    if not engines:
        raise RefusedError("there is no host in the group engines, so there is nothing to roll out")
    (topology,) = {engine.target_topology for engine in engines}
    wrong = [engine for engine in engines if not engine.is_right]
    loading = [engine.name for engine in engines if engine.is_right and not engine.healthy and engine.is_served]
    if not wrong:
        done = not loading and all(engine.admitted == engine.is_served and not engine.silence for engine in engines)
        path, touched = (NONE if done else ROLLING), set()
    elif topology == REPLICATED and len(engines) > 1 and any(engine.is_copy_that_serves for engine in engines):
        path, touched = ROLLING, {engine.name for engine in wrong}
    elif topology == REPLICATED:
        path, touched = SWITCH, {engine.name for engine in wrong}
    else:
        path, touched = SWITCH, {engine.name for engine in engines}
    hosts = tuple(_host_plan(engine, path, engine.name in touched) for engine in engines)
    words = _words(path, topology, engines, touched)
    if loading:
        words += f" {' and '.join(loading)} still loads the wanted release and is waited for."
    silenced = [f"{', '.join(engine.silence)} on {engine.name}" for engine in engines if engine.silence]
    if silenced:
        words += f" Silenced first, because they could stop what starts: {'; '.join(silenced)}."
    return Plan(path, topology, words, hosts)


def _host_plan(engine: Engine, path: str, touched: bool) -> HostPlan:
    stop = touched and (engine.current is not None or engine.running or bool(engine.silence))
    foreign = engine.is_foreign and engine.admitted and not engine.running
    back = engine.back if engine.back != engine.target else None
    if path == ROLLING and engine.back_topology != REPLICATED:
        back = None  # one host alone cannot go back to its part of a pair
    return HostPlan(
        name=engine.name,
        release=engine.target,
        back=back,
        back_topology=engine.back_topology if back else None,
        serving=(engine.admitted and engine.running and engine.healthy) or foreign,
        leave=(stop and engine.current_rank == 0 and (engine.current is not None or engine.running))
        or (engine.admitted and (stop or not engine.is_served)),
        stop=stop,
        start=touched,
        admit=engine.is_served,
        silence=engine.silence,
    )


def _words(path: str, topology: str, engines: Sequence[Engine], touched: Collection[str]) -> str:
    if path == NONE:
        return f"Everything wanted is running and healthy ({topology}); nothing changes."
    names = ", ".join(engine.name for engine in engines if engine.name in touched)
    if path == ROLLING and not touched:
        return "Every engine runs what is wanted; only the proxy's membership is put right."
    if path == ROLLING:
        return f"Copies are renewed one after the other while the others serve: {names}."
    before = {str(engine.current_topology) for engine in engines if engine.current}
    if any(engine.silence for engine in engines) and not any(engine.running for engine in engines):
        return (
            f"Switch from what was here before to {topology}: it is silenced on every host, then all hosts start at once and the first "
            f"copy that is ready serves at once. The model is away for the time of one start."
        )
    if not before and not any(engine.running for engine in engines):
        return f"First start of the site as {topology}; nothing has to be stopped."
    if len(engines) == 1:
        return "The only copy is renewed; the model is away for the time of one start."
    if before == {topology}:
        return (
            f"No copy can serve meanwhile ({topology}): {names} are drained and stopped where something runs, then all start at once and "
            f"the first copy that is ready serves at once. The model is away for the time of one start."
        )
    old = " and ".join(sorted(before)) or "what has no release"
    return (
        f"Switch from {old} to {topology}: the old engine is drained and stopped on every host, then all hosts start at once and the "
        f"first copy that is ready serves at once. The model is away for the time of one start."
    )


@dataclass(frozen=True)
class Wish:
    """What a run is asked for. `target`: staged, same, stable or resumed; `only` names hosts to renew, `to` a stable state."""

    target: str
    only: Sequence[str] = ()
    to: str = ""


def plan(
    facts: Sequence[Mapping[str, Any]], admitted: Collection[str], last: _targets.Past | None, wish: Wish
) -> dict[str, Any]:
    """The whole decision: targets, path and steps, and what a later run needs to know of them (`targets`, `before`).

    `already_stable` says that the targets are the newest stable state, so that it needs no new mark.
    """
    names = [host["name"] for host in facts]
    unknown = [name for name in wish.only if name not in names]
    if unknown:
        raise RefusedError(f"{', '.join(unknown)} is not in the group engines, which has {', '.join(names)}")
    targets = {
        "staged": lambda: _targets.staged(facts),
        "same": lambda: _targets.same(facts),
        "resumed": lambda: _targets.resumed(facts, last),
        "stable": lambda: _targets.rolled_back(facts, last, wish.to),
    }[wish.target]()
    before = _targets.legacy(facts) if _targets.legacy_serves(facts) else _targets.running(facts)
    if last is not None and not last.is_done and last.before and not _targets.legacy_serves(facts, now=True):
        before = dict(last.before)
    if _targets.is_legacy(targets):
        return _to_legacy(facts, admitted, before)
    records = _targets.records(facts, targets)
    forced = set(wish.only or names) if wish.target == "same" else set()
    known = _targets.worlds(facts)
    other = next((world.releases for world in reversed(known) if world.releases != targets), {})
    ours = any(host["engine"]["running"] and host["engine"]["healthy"] for host in facts)
    foreign = _targets.is_legacy(before) and not ours
    engines = [
        engine_from_facts(
            host,
            records[host["name"]],
            None if foreign else _back(host, other),
            admitted,
            forced=host["name"] in forced,
        )
        for host in facts
    ]
    result = decide(engines).as_dict()
    if result["path"] == NONE and wish.target in ("resumed", "stable") and last is not None and not last.result:
        result["path"] = ROLLING
        result["words"] = (
            f"Everything that is wanted runs already; it is proven once more, so that rollout {last.rollout} has an end."
        )
    for host in facts:
        steps = result["hosts"][host["name"]]
        stable = [world.releases[host["name"]] for world in reversed(known)]
        now = (host["engine"].get("previous") or {}).get("id", "")
        steps["previous"] = next((release for release in stable if release != steps["release"]), None)
        steps["back_previous"] = next((release for release in stable if release != steps["back"]), now)
    return {
        **result,
        "targets": targets,
        "before": before,
        "already_stable": bool(known) and known[-1].releases == targets,
        "records": records,
    }


def _to_legacy(
    facts: Sequence[Mapping[str, Any]], admitted: Collection[str], before: Mapping[str, str]
) -> dict[str, Any]:
    """Ours is stopped on every host, what was silenced is put back, and what served then is admitted when it answers."""
    hosts, records = {}, {}
    for host in facts:
        name, engine, legacy = host["name"], host["engine"], host.get("legacy") or {}
        in_front = name in admitted
        is_ours = engine.get("current") is not None and engine["current"].get("rank", 0) == 0
        hosts[name] = asdict(
            HostPlan(
                name=name,
                release=LEGACY,
                back=None,
                back_topology=None,
                serving=in_front and bool(engine["running"] and engine["healthy"]),
                leave=in_front or is_ours,
                stop=True,
                start=False,
                admit=bool(legacy.get("served")),
            )
        )
        records[name] = {"id": LEGACY, "budgets": {"gate_deadline": legacy.get("start_seconds", 0)}}
    return {
        "path": SWITCH,
        "topology": LEGACY,
        "words": "Back to what was here before the first release of this collection: ours is drained, stopped and disabled on every "
        "host, then what was silenced is put back and started as it was.",
        "hosts": hosts,
        "targets": _targets.legacy(facts),
        "before": dict(before),
        "already_stable": True,
        "records": records,
    }


def _back(host: Mapping[str, Any], other: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The host's part of the newest stable state that is not wanted now; on a site without one, what runs on it."""
    stable = (host["engine"].get("records") or {}).get(other.get(host["name"], ""))
    if stable is None and host["engine"]["running"]:
        return host["engine"].get("current")
    return stable


def settle(plan: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What came of it. `results` maps a host to C(ok), C(reason) and, where it failed and serves its old release, C(serving).

    A host without a result was unreachable. `serving` are hosts that clients reach afterwards. `restore` is true when a switch
    has left none and there is a release to go back to: on any host for copies, on every host for a split. `restore_legacy` is
    true instead when what served before is not ours.
    """
    hosts = plan["hosts"]
    failed = {
        name: results.get(name, {}).get("reason") or "the host could not be reached"
        for name in hosts
        if not results.get(name, {}).get("ok")
    }
    renewed = (
        []
        if plan["topology"] == SPLIT and failed
        else [n for n, host in hosts.items() if host["admit"] and n not in failed]
    )
    serving = [name for name in hosts if name in renewed or results.get(name, {}).get("serving")]
    backs = [host["back_topology"] for host in hosts.values() if host["back"]]
    can_restore = bool(backs) and (SPLIT not in backs or len(backs) == len(hosts))
    lost = plan["path"] == SWITCH and bool(failed) and not serving
    foreign = _targets.is_legacy(plan.get("before") or {}) and plan["topology"] != LEGACY
    return {
        "ok": not failed,
        "serving": serving,
        "failed": failed,
        "restore": lost and can_restore,
        "restore_legacy": lost and not can_restore and foreign,
    }
