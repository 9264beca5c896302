# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair's decisions, each transition as a row. Whole lives of a pair are in test_pair_lives.py."""

from __future__ import annotations

from dataclasses import replace
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
