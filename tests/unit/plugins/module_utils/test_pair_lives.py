# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole lives of a pair: every failure at every moment, alone and in twos, and what must hold on the way."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _pair, _pair_rank

RULES = _pair.Rules(load=30, start=10, most=4, window=1000, pause=8, probe=3, most_bad=2, alone=12)


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
