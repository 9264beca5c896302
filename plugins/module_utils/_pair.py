# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair as one unit of failure: what its head decides from what it sees. The other ranks are in _pair_rank.py.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; time comes in from outside.

Each host acts on itself only and reads what the others publish. The head publishes a generation and a phase, and the ranks follow:

    watch -> formed                      the pair that runs is proven by generated tokens, and adopted
    stop -> workers -> head -> load -> formed      everything is stopped and proven gone, then started in order and proven
    gave_up                              too many generations in the window: everything is stopped, and stays so
    off                                  nothing may act (paused, no pair, not stable, ...)

Everything is decided from what is seen now: an act that did not come about is done again, and a message that was lost is read again.
What a rank publishes counts only with the head's own generation. Systemd may restart a rank by itself at any time: its new
invocation is not the one that was proven, so the next generation takes it down with the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

OFF, WATCH, STOP, WORKERS, HEAD, LOAD, FORMED, GAVE_UP = (
    *("off", "watch", "stop", "workers", "head", "load", "formed", "gave_up"),
)
# Of the other ranks
IDLE, STOPPING, STOPPED, STARTING, STARTED, ALONE = "idle", "stopping", "stopped", "starting", "started", "alone"
# Acts
DO_STOP, DO_START, DO_PROVE, SAY = "stop", "start", "prove", "say"
# Outcomes of a proof: an answer; work goes on, but the answer was late; nobody listens yet; no or a wrong answer
GOOD, BUSY, CLOSED, BAD = "good", "busy", "closed", "bad"


@dataclass(frozen=True)
class Rules:
    """Seconds, and counts. `most` generations in `window`; the pause before each further one is twice as long."""

    load: float
    start: float = 120
    most: int = 4
    window: float = 14400
    pause: float = 30
    probe: float = 20
    most_bad: int = 2
    alone: float = 120


@dataclass(frozen=True)
class Rank:
    """One host as it is now, by itself or by what it publishes.

    `hindrance`: why nothing may act there, empty if it may. `running`: its unit is not stopped. `gone`: unit, container and ports
    are proven gone. `rollouts`: those in which its release became stable. `wish`: why somebody asks for a new generation.
    """

    name: str
    hindrance: str = ""
    running: bool = False
    invocation: str = ""
    gone: bool = False
    rollouts: tuple[str, ...] = ()
    wish: str = ""
    generation: int = 0
    phase: str = IDLE
    is_split: bool = True


@dataclass(frozen=True)
class Proof:
    """`invocation` of the head that was asked: an answer of an engine that is gone says nothing."""

    outcome: str
    reason: str
    invocation: str


@dataclass(frozen=True)
class Leader:
    phase: str = OFF
    generation: int = 0
    since: float = 0
    reason: str = "not looked yet"
    members: Mapping[str, str] = field(default_factory=dict)
    attempts: tuple[float, ...] = ()
    not_before: float = 0
    probe_at: float = 0
    bad: int = 0
    said_at: float = 0
    # Nothing is stopped a second time once a pair was given up: whoever starts it then has his reasons.
    at_rest: bool = False


@dataclass(frozen=True)
class Act:
    kind: str
    words: str = ""


Peers = Mapping[str, "Rank | None"]
Step = tuple[Leader, list[Act]]


def hindrance(own: Rank, peers: Peers) -> str:
    """Why nothing may act, on any host that can be seen; a host that cannot be seen hinders nothing."""
    if own.hindrance:
        return own.hindrance
    seen = [peer for peer in peers.values() if peer]
    for peer in seen:
        if peer.hindrance:
            return f"{peer.name}: {peer.hindrance}"
        if not set(peer.rollouts) & set(own.rollouts):
            return f"the releases of {own.name} and {peer.name} never became stable together"
    return ""


def lost(members: Mapping[str, str], own: Rank, peers: Peers) -> str:
    """Which rank is no longer the one of the set, in words; a host that cannot be seen is not judged."""
    for rank in (own, *peers.values()):
        if rank is None or rank.name not in members:
            continue
        if not rank.running:
            return f"the rank of {rank.name} ended"
        if rank.invocation != members[rank.name]:
            return f"the rank of {rank.name} ended and was started again without the others"
    return ""


def lead(state: Leader, own: Rank, peers: Peers, proof: Proof | None, now: float, stamp: int, rules: Rules) -> Step:
    """One look; `stamp` is a number that no generation had before."""
    if why := hindrance(own, peers):
        if state.phase == OFF:
            return replace(state, reason=why), []
        return Leader(phase=OFF, generation=state.generation, reason=why), [
            Act(SAY, f"does nothing from now on: {why}")
        ]
    if state.phase == OFF:
        state = Leader(phase=WATCH, generation=state.generation, since=now, reason="looks whether the pair answers")
    if proof and proof.invocation != own.invocation:
        proof = None
    wish = next((rank.wish for rank in (own, *peers.values()) if rank and rank.wish), "")
    after = {
        WATCH: lambda: _watch(state, own, peers, proof, now, rules),
        STOP: lambda: _stop(state, own, peers, now),
        WORKERS: lambda: _workers(state, own, peers, now, rules),
        HEAD: lambda: _head(state, own, peers, now),
        LOAD: lambda: _load(state, own, peers, proof, now, rules),
        FORMED: lambda: _formed(state, own, peers, proof, wish, now, rules),
        GAVE_UP: lambda: _gave_up(state, own),
    }[state.phase]()
    return _renew(state, after, now, stamp, rules) if isinstance(after, str) else after


def _renew(state: Leader, reason: str, now: float, stamp: int, rules: Rules) -> Step:
    """The next generation, or the end of all tries."""
    recent = tuple(at for at in state.attempts if now - at < rules.window)
    if len(recent) >= rules.most:
        words = (
            f"gave up after {len(recent)} tries in {rules.window:.0f} s: {reason}. Every rank is stopped and stays stopped. Look at "
            f"`journalctl -u vllm` on each host; pausing and resuming begins afresh"
        )
        gone = Leader(phase=GAVE_UP, generation=stamp, since=now, reason=reason, attempts=recent)
        return gone, [Act(SAY, words)]
    wait = rules.pause * 2 ** (len(recent) - 1) if recent else 0
    after = Leader(
        phase=STOP,
        generation=stamp,
        since=now,
        reason=reason,
        attempts=(*recent, now),
        not_before=now + wait,
        said_at=now,
    )
    later = f", and starts it again in {wait:.0f} s at the earliest" if wait else ""
    words = f"{reason}: stops the whole pair{later} (generation {stamp}, try {len(recent) + 1} of {rules.most})"
    return after, [Act(SAY, words)]


def _prove(state: Leader, now: float, interval: float) -> Step:
    if now < state.probe_at:
        return state, []
    return replace(state, probe_at=now + interval), [Act(DO_PROVE)]


def _watch(state: Leader, own: Rank, peers: Peers, proof: Proof | None, now: float, rules: Rules) -> Step | str:
    ranks = [own, *(peer for peer in peers.values() if peer)]
    if stopped := [rank.name for rank in ranks if not rank.running]:
        return f"the rank of {' and '.join(stopped)} does not run"
    if proof and proof.outcome == GOOD:
        if all(peers.values()):
            members = {rank.name: rank.invocation for rank in ranks}
            formed = replace(
                state, phase=FORMED, since=now, members=members, reason="", bad=0, probe_at=now + rules.probe
            )
            return formed, [Act(SAY, f"the pair answers and is watched from now on ({_who(members)})")]
        state = replace(state, bad=0, reason=f"answers, but {_silent(peers)} cannot be seen")
    elif proof and proof.outcome in (BAD, CLOSED):
        bad = state.bad + 1
        if proof.outcome == CLOSED or bad >= rules.most_bad:
            return f"the pair does not answer ({proof.reason})"
        state = replace(state, bad=bad, reason=proof.reason, probe_at=now)
    return _prove(state, now, rules.probe)


def _stop(state: Leader, own: Rank, peers: Peers, now: float) -> Step:
    if not own.gone:
        return state, [Act(DO_STOP)]
    wait = [
        name
        for name, peer in peers.items()
        if not (peer and (peer.generation, peer.phase) == (state.generation, STOPPED))
    ]
    if not wait and now >= state.not_before:
        return replace(state, phase=WORKERS, since=now), [Act(SAY, "every rank is proven gone: the workers start")]
    if wait and now - state.said_at >= 60:
        words = f"waits for {' and '.join(wait)} to be stopped, for {now - state.since:.0f} s now"
        return replace(state, said_at=now), [Act(SAY, words)]
    return state, []


def _workers(state: Leader, own: Rank, peers: Peers, now: float, rules: Rules) -> Step | str:
    if own.running:
        return f"the head on {own.name} was started before its workers, by somebody else"
    wait = []
    for name, peer in peers.items():
        if peer is None or (peer.generation, peer.phase) in ((state.generation, STOPPED), (state.generation, STARTING)):
            wait.append(name)
        elif (peer.generation, peer.phase) != (state.generation, STARTED) or not peer.running:
            return f"the rank of {name} did not stay started"
    if not wait:
        members = {name: peer.invocation for name, peer in peers.items() if peer}
        return replace(state, phase=HEAD, since=now, members=members), [Act(DO_START)]
    if now - state.since > rules.start:
        return f"the rank of {' and '.join(wait)} was not started within {rules.start:.0f} s"
    return state, []


def _head(state: Leader, own: Rank, peers: Peers, now: float) -> Step | str:
    if not own.running:
        # Not tried again: its workers may have met it, and would be stale for the next one.
        return f"the head on {own.name} could not be started, or ended at once"
    members = {**state.members, own.name: own.invocation}
    if why := lost(members, own, peers):
        return why
    loading = replace(state, phase=LOAD, since=now, members=members, probe_at=now)
    return loading, [Act(SAY, f"every rank is started, workers first ({_who(members)}): the pair loads")]


def _load(state: Leader, own: Rank, peers: Peers, proof: Proof | None, now: float, rules: Rules) -> Step | str:
    if why := lost(state.members, own, peers):
        return f"{why} while the pair loaded"
    if proof and proof.outcome == GOOD:
        words = f"the pair answers {now - state.since:.0f} s after its head was started (generation {state.generation})"
        formed = replace(state, phase=FORMED, since=now, reason="", bad=0, probe_at=now + rules.probe)
        return formed, [Act(SAY, words)]
    if now - state.since > rules.load:
        return (
            f"the pair did not answer within {rules.load:.0f} s of its start ({proof.reason if proof else 'no answer'})"
        )
    return _prove(state, now, 1)


def _formed(
    state: Leader, own: Rank, peers: Peers, proof: Proof | None, wish: str, now: float, rules: Rules
) -> Step | str:
    if why := lost(state.members, own, peers):
        return why
    if wish:
        return f"asked for: {wish}"
    if proof and proof.outcome in (GOOD, BUSY):
        state = replace(state, bad=0, reason="" if proof.outcome == GOOD else proof.reason)
    elif proof:
        state = replace(state, bad=state.bad + 1, reason=proof.reason, probe_at=now)
        if state.bad >= rules.most_bad:
            return f"the pair generates no token ({proof.reason})"
    return _prove(state, now, rules.probe)


def _gave_up(state: Leader, own: Rank) -> Step:
    if own.gone or state.at_rest:
        return replace(state, at_rest=True), []
    return state, [Act(DO_STOP)]


def _who(members: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {invocation[:8]}" for name, invocation in members.items())


def _silent(peers: Peers) -> str:
    return " and ".join(name for name, peer in peers.items() if peer is None)
