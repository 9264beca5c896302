# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair's decisions: each transition as a row, then whole lives with every failure at every moment, alone and in twos."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _pair, _pair_rank

RULES = _pair.Rules(load=30, start=10, most=4, window=1000, pause=8, probe=3, most_bad=2, alone=12)
OWN = _pair.Rank("a", running=True, invocation="a1", rollouts=("r",))
PEER = _pair.Rank("b", running=True, invocation="b1", rollouts=("r",), generation=7, phase=_pair.STARTED)
GONE = {"running": False, "gone": True}
SET = {"a": "a1", "b": "b1"}


def proof(outcome: str, invocation: str = "a1") -> _pair.Proof:
    return _pair.Proof(outcome, "why", invocation)


def lead(
    phase: str,
    own: _pair.Rank = OWN,
    peer: _pair.Rank | None = PEER,
    seen: _pair.Proof | None = None,
    now: float = 5,
    **more: Any,
) -> tuple[_pair.Leader, list[str]]:
    state = _pair.Leader(phase=phase, generation=7, probe_at=999, **{"members": SET, **more})
    after, acts = _pair.lead(state, own, {"b": peer}, seen, now, 8, RULES)
    return after, [act.kind for act in acts]


# phase, what is different from a pair that is fine, the phase after it, the acts
ROWS: dict[str, tuple[str, dict[str, Any], str, list[str]]] = {
    "paused": (_pair.FORMED, {"own": replace(OWN, hindrance="paused")}, _pair.OFF, ["say"]),
    "the other host is paused": (_pair.STOP, {"peer": replace(PEER, hindrance="paused")}, _pair.OFF, ["say"]),
    "never stable together": (_pair.FORMED, {"peer": replace(PEER, rollouts=("s",))}, _pair.OFF, ["say"]),
    "still paused": (_pair.OFF, {"own": replace(OWN, hindrance="paused")}, _pair.OFF, []),
    "no longer paused": (_pair.OFF, {}, _pair.WATCH, ["prove"]),
    "adopts what answers": (_pair.WATCH, {"seen": proof("good")}, _pair.FORMED, ["say"]),
    "adopts nothing while a rank cannot be seen": (_pair.WATCH, {"seen": proof("good"), "peer": None}, _pair.WATCH, []),
    "an answer of an engine that is gone": (_pair.WATCH, {"seen": proof("good", "a0")}, _pair.WATCH, []),
    "busy is no failure": (_pair.WATCH, {"seen": proof("busy")}, _pair.WATCH, []),
    "one bad answer": (_pair.WATCH, {"seen": proof("bad")}, _pair.WATCH, ["prove"]),
    "two bad answers": (_pair.WATCH, {"seen": proof("bad"), "bad": 1}, _pair.STOP, ["say"]),
    "nobody listens": (_pair.WATCH, {"seen": proof("closed")}, _pair.STOP, ["say"]),
    "the head does not run": (_pair.WATCH, {"own": replace(OWN, running=False)}, _pair.STOP, ["say"]),
    "a worker does not run": (_pair.WATCH, {"peer": replace(PEER, running=False)}, _pair.STOP, ["say"]),
    "stops itself first": (_pair.STOP, {}, _pair.STOP, ["stop"]),
    "waits for the other's proof": (_pair.STOP, {"own": replace(OWN, **GONE), "said_at": 5}, _pair.STOP, []),
    "says whom it waits for": (_pair.STOP, {"own": replace(OWN, **GONE), "now": 90}, _pair.STOP, ["say"]),
    "a proof for another generation": (
        _pair.STOP,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, generation=6, phase=_pair.STOPPED)},
        _pair.STOP,
        [],
    ),
    "all proven": (
        _pair.STOP,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, phase=_pair.STOPPED)},
        _pair.WORKERS,
        ["say"],
    ),
    "all proven, but it is too early": (
        _pair.STOP,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, phase=_pair.STOPPED), "not_before": 6},
        _pair.STOP,
        [],
    ),
    "a stop is not the last word while somebody starts it": (
        _pair.STOP,
        {"peer": replace(PEER, phase=_pair.STOPPED)},
        _pair.STOP,
        ["stop"],
    ),
    "workers are on their way": (
        _pair.WORKERS,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, phase=_pair.STARTING)},
        _pair.WORKERS,
        [],
    ),
    "workers first, then the head": (_pair.WORKERS, {"own": replace(OWN, **GONE)}, _pair.HEAD, ["start"]),
    "somebody starts the head too early": (_pair.WORKERS, {}, _pair.STOP, ["say"]),
    "a worker that has lost its place": (
        _pair.WORKERS,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, generation=0, phase=_pair.IDLE)},
        _pair.STOP,
        ["say"],
    ),
    "a worker that died at once": (
        _pair.WORKERS,
        {"own": replace(OWN, **GONE), "peer": replace(PEER, running=False)},
        _pair.STOP,
        ["say"],
    ),
    "a worker that never comes": (
        _pair.WORKERS,
        {"own": replace(OWN, **GONE), "peer": None, "now": 11},
        _pair.STOP,
        ["say"],
    ),
    "the head's start is not done again, because workers may have met it": (
        _pair.HEAD,
        {"own": replace(OWN, **GONE)},
        _pair.STOP,
        ["say"],
    ),
    "a worker dies when the head starts": (
        _pair.HEAD,
        {"members": {"b": "b1"}, "peer": replace(PEER, invocation="b2")},
        _pair.STOP,
        ["say"],
    ),
    "the head runs": (_pair.HEAD, {"members": {"b": "b1"}}, _pair.LOAD, ["say"]),
    "it loads": (_pair.LOAD, {"seen": proof("closed")}, _pair.LOAD, []),
    "it has loaded": (_pair.LOAD, {"seen": proof("good")}, _pair.FORMED, ["say"]),
    "it loads too long": (_pair.LOAD, {"seen": proof("closed"), "now": 31}, _pair.STOP, ["say"]),
    "a rank ends while it loads": (_pair.LOAD, {"peer": replace(PEER, running=False)}, _pair.STOP, ["say"]),
    "all is well": (_pair.FORMED, {"seen": proof("good")}, _pair.FORMED, []),
    "a host that cannot be seen proves nothing": (_pair.FORMED, {"peer": None}, _pair.FORMED, []),
    "systemd has restarted the worker": (_pair.FORMED, {"peer": replace(PEER, invocation="b2")}, _pair.STOP, ["say"]),
    "systemd has restarted the head": (_pair.FORMED, {"own": replace(OWN, invocation="a2")}, _pair.STOP, ["say"]),
    "the worker is stopped": (_pair.FORMED, {"peer": replace(PEER, running=False)}, _pair.STOP, ["say"]),
    "no token once": (_pair.FORMED, {"seen": proof("bad")}, _pair.FORMED, ["prove"]),
    "no token twice": (_pair.FORMED, {"seen": proof("bad"), "bad": 1}, _pair.STOP, ["say"]),
    "late, but at work": (_pair.FORMED, {"seen": proof("busy"), "bad": 1}, _pair.FORMED, []),
    "asked for on the head": (_pair.FORMED, {"own": replace(OWN, wish="stalled")}, _pair.STOP, ["say"]),
    "asked for on another host": (_pair.FORMED, {"peer": replace(PEER, wish="stalled")}, _pair.STOP, ["say"]),
    "the fourth try": (
        _pair.FORMED,
        {"peer": replace(PEER, running=False), "attempts": (1, 2, 3)},
        _pair.STOP,
        ["say"],
    ),
    "one try too many": (
        _pair.FORMED,
        {"peer": replace(PEER, running=False), "attempts": (1, 2, 3, 4)},
        _pair.GAVE_UP,
        ["say"],
    ),
    "old tries do not count": (
        _pair.FORMED,
        {"peer": replace(PEER, running=False), "attempts": (1, 2, 3, 4), "now": 1002.5},
        _pair.STOP,
        ["say"],
    ),
    "what was given up is stopped": (_pair.GAVE_UP, {}, _pair.GAVE_UP, ["stop"]),
    "what was given up is left to people": (_pair.GAVE_UP, {"at_rest": True}, _pair.GAVE_UP, []),
}


@pytest.mark.parametrize("name", ROWS)
def test_head(name: str) -> None:
    phase, differs, then, acts = ROWS[name]
    after, done = lead(phase, **differs)
    assert (after.phase, done) == (then, acts)
    renewed = then in (_pair.STOP, _pair.GAVE_UP) and phase not in (_pair.STOP, _pair.GAVE_UP)
    assert after.generation == (8 if renewed else 7)
    assert not renewed or after.reason


def test_pauses_grow_and_the_reason_is_said() -> None:
    state = _pair.Leader(phase=_pair.FORMED, generation=7, members=SET)
    waits, words = [], ""
    for now in (0.0, 10.0, 20.0, 30.0):
        state, acts = _pair.lead(
            replace(state, phase=_pair.FORMED, members=SET),
            OWN,
            {"b": replace(PEER, running=False)},
            None,
            now,
            8,
            RULES,
        )
        waits.append(state.not_before - now)
        words = acts[0].words
    assert waits == [0, 8, 16, 32]
    assert words.startswith("the rank of b ended: stops the whole pair")
    assert "try 4 of 4" in words


HEAD = _pair.Rank("a", running=True, invocation="a1", generation=7, phase=_pair.STOP)
WORKER = _pair.Rank("b", running=True, invocation="b1")


def follow(
    state: _pair_rank.Follower, own: _pair.Rank, head: _pair.Rank | None, answers: bool = False, now: float = 100
) -> tuple[str, int, list[str]]:
    after, acts = _pair_rank.follow(state, own, head, answers, now, RULES)
    return after.phase, after.generation, [act.kind for act in acts]


def at(phase: str, generation: int = 7, lonely: float | None = None) -> _pair_rank.Follower:
    return _pair_rank.Follower(phase=phase, generation=generation, lonely_since=lonely)


@pytest.mark.parametrize(
    ("name", "state", "own", "head", "then"),
    [
        ("paused", at("started"), replace(WORKER, hindrance="p"), HEAD, ("off", 0, ["say"])),
        ("still paused", at("off", 0), replace(WORKER, hindrance="p"), HEAD, ("off", 0, [])),
        ("nothing is wanted", at("idle", 0), WORKER, replace(HEAD, phase="formed"), ("idle", 0, [])),
        ("a new generation", at("started", 6), WORKER, HEAD, ("stopping", 7, ["stop"])),
        ("it is not gone yet", at("stopping"), WORKER, HEAD, ("stopping", 7, ["stop"])),
        ("it is gone", at("stopping"), replace(WORKER, **GONE), HEAD, ("stopped", 7, ["say"])),
        ("it was gone before", at("off", 0), replace(WORKER, **GONE), HEAD, ("stopped", 7, ["say"])),
        ("it is known to be gone", at("stopped"), replace(WORKER, **GONE), HEAD, ("stopped", 7, [])),
        ("systemd starts it at boot", at("stopped"), WORKER, HEAD, ("stopping", 7, ["stop"])),
        (
            "its turn",
            at("stopped"),
            replace(WORKER, **GONE),
            replace(HEAD, phase="workers"),
            ("starting", 7, ["start"]),
        ),
        (
            "the start is done again",
            at("starting"),
            replace(WORKER, **GONE),
            replace(HEAD, phase="workers"),
            ("starting", 7, ["start"]),
        ),
        ("it runs", at("starting"), WORKER, replace(HEAD, phase="workers"), ("started", 7, ["say"])),
        ("started once only", at("started"), replace(WORKER, **GONE), replace(HEAD, phase="load"), ("started", 7, [])),
        ("somebody else was faster", at("stopped"), WORKER, replace(HEAD, phase="workers"), ("idle", 7, [])),
        (
            "it never stopped for this one",
            at("idle", 0),
            replace(WORKER, **GONE),
            replace(HEAD, phase="workers"),
            ("idle", 0, []),
        ),
        ("given up", at("started", 6), WORKER, replace(HEAD, phase="gave_up"), ("stopping", 7, ["stop"])),
        ("given up and left to people", at("stopped"), WORKER, replace(HEAD, phase="gave_up"), ("stopped", 7, [])),
        ("the head is gone for long", at("started", lonely=80), WORKER, None, ("alone", 0, ["say", "stop"])),
        ("the head is gone for a moment", at("started", lonely=95), WORKER, None, ("started", 7, [])),
        ("the head went away just now", at("started"), WORKER, None, ("started", 7, [])),
        (
            "the head is no pair any more",
            at("started", lonely=80),
            WORKER,
            replace(HEAD, is_split=False, hindrance="no pair"),
            ("alone", 0, ["say", "stop"]),
        ),
        ("a paused head is not gone", at("started", lonely=80), WORKER, replace(HEAD, phase="off"), ("started", 7, [])),
    ],
)
def test_worker(
    name: str, state: _pair_rank.Follower, own: _pair.Rank, head: _pair.Rank | None, then: tuple[str, int, list[str]]
) -> None:
    assert follow(state, own, head) == then, name


def test_a_worker_stays_while_the_heads_engine_answers() -> None:
    assert follow(at("started", lonely=0), WORKER, None, answers=True) == ("started", 7, [])


# --- Whole lives -----------------------------------------------------------------------------------------------------


@dataclass
class Host:
    """A host with systemd, which restarts what ends, and the program, which sees the other host unless the wire is cut."""

    name: str
    state: Any
    invocation: str = ""
    running: bool = False
    partner: str = ""
    ready_at: float = 0
    boots_until: float = 0
    busy_until: float = 0
    paused: bool = False
    starts: int = 0


@dataclass
class World:
    """Two hosts. An engine meets the first partner that it sees and is of no use to any other one after that."""

    clock: float = 0
    cut_until: float = 0
    program_down: dict[str, float] = field(default_factory=dict)
    stop_seconds: dict[str, float] = field(default_factory=dict)
    proof: _pair.Proof | None = None
    log: list[tuple[float, str, str]] = field(default_factory=list)
    load: float = 5

    def __post_init__(self) -> None:
        self.a = Host("a", _pair.Leader())
        self.b = Host("b", _pair_rank.Follower())
        for host in (self.b, self.a):
            self.start(host)

    def start(self, host: Host) -> None:
        host.starts += 1
        host.running, host.invocation, host.partner = True, f"{host.name}{host.starts}", ""

    def end(self, host: Host, again: bool) -> None:
        host.running = False
        if again:
            self.start(host)

    def meet(self) -> None:
        a, b = self.a, self.b
        if a.running and b.running and not a.partner and not b.partner and self.clock >= self.cut_until:
            a.partner, b.partner, a.ready_at = b.invocation, a.invocation, self.clock + self.load

    def answers(self) -> bool:
        a, b = self.a, self.b
        met = a.running and b.running and (a.partner, b.partner) == (b.invocation, a.invocation)
        return met and self.clock >= max(a.ready_at, self.cut_until)

    def up(self, host: Host) -> bool:
        return self.clock >= max(host.boots_until, self.program_down.get(host.name, 0))

    def rank(self, host: Host) -> _pair.Rank:
        return _pair.Rank(
            host.name,
            hindrance="paused" if host.paused else "",
            running=host.running,
            invocation=host.invocation,
            gone=not host.running,
            rollouts=("r",),
            generation=host.state.generation,
            phase=host.state.phase,
        )

    def seen(self, host: Host) -> _pair.Rank | None:
        return self.rank(host) if self.up(host) and self.clock >= self.cut_until else None

    def tick(self) -> None:
        self.clock += 1
        for host in (self.a, self.b):
            if host.boots_until and self.clock >= host.boots_until:
                host.boots_until = 0
                self.start(host)  # systemd does, because the unit is enabled
        self.meet()
        if self.up(self.a) and self.clock >= self.a.busy_until:
            given, self.proof = self.proof, None
            self.a.state, acts = _pair.lead(
                self.a.state,
                self.rank(self.a),
                {"b": self.seen(self.b)},
                given,
                self.clock,
                int(self.clock * 10),
                RULES,
            )
            self.act(self.a, acts)
        if self.up(self.b) and self.clock >= self.b.busy_until:
            witness = self.a.running and self.clock >= self.cut_until
            head = self.seen(self.a)
            self.b.state, acts = _pair_rank.follow(self.b.state, self.rank(self.b), head, witness, self.clock, RULES)
            self.act(self.b, acts)
        self.meet()

    def act(self, host: Host, acts: list[_pair.Act]) -> None:
        for act in acts:
            if act.kind == _pair.SAY:
                self.log.append((self.clock, host.name, act.words))
            elif act.kind == _pair.DO_STOP:
                self.end(host, again=False)
                host.busy_until = self.clock + self.stop_seconds.get(host.name, 0)
            elif act.kind == _pair.DO_START:
                assert not host.running, "an engine is never started beside another one"
                if host is self.a:
                    assert self.b.running
                    assert not self.b.partner, "the head starts after a worker that waits for it"
                else:
                    assert not self.a.running, "a worker starts when the old head is gone"
                self.start(host)
            elif act.kind == _pair.DO_PROVE:
                outcome = _pair.GOOD if self.answers() else _pair.BAD if self.a.ready_at <= self.clock else _pair.CLOSED
                self.proof = _pair.Proof(outcome, outcome, self.a.invocation)

    def run(self, seconds: int) -> None:
        for _second in range(seconds):
            self.tick()

    def settle(self, seconds: int = 400) -> int:
        """Seconds until the pair serves, is proven, and stays so."""
        for second in range(seconds):
            if self.a.state.phase == _pair.FORMED and self.answers() and self.a.state.members["b"] == self.b.invocation:
                return second
            self.tick()
        raise AssertionError(f"not formed: {self.a.state} {self.b.state} {self.log}")


def restarted(world: World, host: Host) -> None:
    """The engine ends by itself and systemd starts it again."""
    if host.running:
        world.end(host, again=True)


def stopped(world: World, host: Host) -> None:
    world.end(host, again=False)


def booted(world: World, host: Host) -> None:
    host.running, host.boots_until, host.busy_until = False, world.clock + 6, 0
    host.state = type(host.state)()


def program_away(world: World, host: Host) -> None:
    """The program is killed and comes back with what it knew."""
    world.program_down[host.name] = world.clock + 3


def paused(world: World, host: Host) -> None:
    host.paused = not host.paused


def cut(world: World, host: Host) -> None:
    world.cut_until = world.clock + (20 if host is world.a else 4)


FAULTS = (restarted, stopped, booted, program_away, cut)
EVENTS = tuple(itertools.product(FAULTS, "ab"))
# From the first look through a whole generation: every phase is struck at each of its seconds.
MOMENTS = range(1, 26, 2)


def formed() -> World:
    world = World()
    assert world.settle() < 15
    return world


def strike(world: World, event: tuple[Any, str]) -> None:
    fault, name = event
    fault(world, world.a if name == "a" else world.b)


def named(event: tuple[Any, str]) -> str:
    return f"{event[0].__name__}-{event[1]}"


@pytest.mark.parametrize("event", EVENTS, ids=named)
def test_every_failure_heals(event: tuple[Any, str]) -> None:
    world = formed()
    strike(world, event)
    world.run(30)
    world.settle(60)
    before = (world.a.invocation, world.b.invocation)
    world.run(60)
    assert (world.a.invocation, world.b.invocation) == before, "and nothing is restarted after that"


@pytest.mark.parametrize("first", EVENTS, ids=named)
@pytest.mark.parametrize("second", EVENTS, ids=named)
def test_every_second_failure_at_every_moment_heals(first: tuple[Any, str], second: tuple[Any, str]) -> None:
    """`act` asserts on the way that nothing is started beside another one, nor in the wrong order."""
    for moment in MOMENTS:
        world = formed()
        strike(world, first)
        world.run(moment)
        strike(world, second)
        world.run(30)
        world.settle()


@pytest.mark.parametrize(("name", "seconds"), [("a", 5), ("a", 20), ("b", 5), ("b", 20)])
def test_nothing_starts_before_the_slowest_rank_is_gone(name: str, seconds: int) -> None:
    world = formed()
    world.stop_seconds[name] = seconds
    restarted(world, world.b)
    began = world.clock
    world.run(3)
    world.settle()
    started = next(at for at, _host, words in world.log if at > began and "workers start" in words)
    assert started - began >= seconds


def test_a_pause_ends_all_acts_and_a_healthy_pair_is_adopted_after_it() -> None:
    world = formed()
    paused(world, world.b)
    restarted(world, world.b)
    restarted(world, world.a)
    before = (world.a.invocation, world.b.invocation)
    world.run(60)
    assert (world.a.invocation, world.b.invocation) == before
    paused(world, world.b)
    world.settle()
    assert (world.a.invocation, world.b.invocation) == before, "the pair that answers is adopted as it is"


def test_a_pair_that_never_answers_is_given_up_and_left_alone() -> None:
    world = formed()
    world.load = 10_000
    restarted(world, world.b)
    world.run(400)
    assert world.a.state.phase == _pair.GAVE_UP
    assert (world.a.running, world.b.running) == (False, False)
    assert sum("stops the whole pair" in words for _at, _host, words in world.log) == RULES.most
    assert world.log[-1][2].startswith("gave up") or "proven gone" in world.log[-1][2]
    said = len(world.log)
    world.start(world.b)
    world.start(world.a)
    world.run(200)
    assert (world.a.running, world.b.running) == (True, True), "whoever starts them now has his reasons"
    assert len(world.log) == said
    world.load = 5
    paused(world, world.a)
    world.run(3)
    paused(world, world.a)
    world.settle()


def test_a_worker_whose_head_never_comes_back_is_stopped_and_the_pair_forms_when_it_does() -> None:
    world = formed()
    world.a.running, world.a.boots_until, world.a.state = False, 10_000, _pair.Leader()
    world.run(40)
    assert not world.b.running
    assert any("would wait for it for ever" in words for _at, _host, words in world.log)
    world.a.boots_until = world.clock + 1
    world.run(2)
    world.settle()
