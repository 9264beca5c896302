# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each verdict of the watchdog from scripted looks, with a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog as w

RULES = w.Rules(load=300, stalled=120, refused=10, watts=0, longest_gap=60)
EVERY = 5


def asked(at: float, result: str = "", ended: float | None = None) -> w.Question:
    return w.Question(asked=at, ended=at + 1 if ended is None and result else ended, result=result)


def story(*parts: Any, rules: w.Rules = RULES, step: float = EVERY) -> list[tuple[float, str, str]]:
    """Looks every few seconds: each part is (until, function of the time that returns what differs from an idle engine)."""
    state, told, at = w.State(), [], 0.0
    for until, differs in parts:
        while at < until:
            sample = w.Sample(at=at, invocation="a", figures=w.Figures())
            verdict, state = w.triage(state, replace(sample, **differs(at)), rules)
            if not told or told[-1][1] != verdict.kind:
                told.append((at, verdict.kind, verdict.reason))
            at += step
    return told


def kinds(told: list[tuple[float, str, str]]) -> list[str]:
    return [kind for _at, kind, _reason in told]


def idle(at: float) -> dict[str, Any]:
    return {"question": asked(at - at % 15, "came")}


def test_idle() -> None:
    assert kinds(story((1000, idle))) == ["idle"]


def test_idle_with_the_watchdogs_own_tokens() -> None:
    def own(at: float) -> dict[str, Any]:
        return {**idle(at), "figures": w.Figures(generated=int(at // 15), prompts=20 * int(at // 15))}

    assert kinds(story((1000, own))) == ["idle"]


def test_busy_then_idle() -> None:
    def busy(at: float) -> dict[str, Any]:
        return {"figures": w.Figures(running=3, generated=int(at * 50))}

    told = story((300, busy), (600, lambda at: {**idle(at), "figures": w.Figures(generated=15000)}))
    assert kinds(told) == ["busy", "idle"]


def test_full_to_the_brim_for_an_hour_is_never_stalled() -> None:
    """The question waits in the queue and is given up again and again, but tokens move."""

    def full(at: float) -> dict[str, Any]:
        return {
            "figures": w.Figures(running=16, waiting=200, generated=int(at * 3), kv=0.99),
            "question": asked(at - at % 240 - 1, "" if at % 240 else "silent"),
            "health": "silent" if at % 50 < 20 else "ok",
            "metrics": "silent" if at % 50 < 20 else "read",
        }

    assert kinds(story((5, lambda at: {}), (3600, full))) == ["idle", "busy"]


@pytest.mark.parametrize(
    "sign",
    [
        {"steps": 1},
        {"prompts": 4096},
        {"generated": 1},
        {"kv": 0.001},
    ],
)
def test_a_long_prefill_is_busy(sign: dict[str, float]) -> None:
    """One sign alone that moves every half minute, while the question waits."""

    def prefill(at: float) -> dict[str, Any]:
        moved = {name: value * (at // 30) for name, value in sign.items()}
        return {"figures": w.Figures(running=1, waiting=1, **moved), "question": asked(10)}

    assert kinds(story((10, idle), (900, prefill))) == ["idle", "busy"]


def test_stalled_with_requests() -> None:
    """Frozen as published: health 200, two requests run, no token for minutes."""
    frozen = w.Figures(running=2, generated=777, kv=0.3)
    told = story((20, idle), (400, lambda at: {"figures": frozen, "question": asked(20)}))
    assert kinds(told) == ["idle", "busy", "stalled"]
    # The first look at these figures differs from the ones before, so it is the last sign of life.
    assert told[-1][0] == 140
    assert told[-1][2] == "2 run, 0 wait; for 120 s nothing moved and no completion came"


def test_stalled_although_its_metrics_say_that_nobody_asks() -> None:
    """The process that does the work stands still, so it does not even count the question."""
    told = story((20, idle), (400, lambda at: {"question": asked(30)}))
    assert kinds(told) == ["idle", "stalled"]
    assert told[-1][0] == 150


def test_clients_that_leave_a_hung_engine_and_come_again_are_no_sign_of_life() -> None:
    def hung(at: float) -> dict[str, Any]:
        here = int(at // 10) % 3
        return {"figures": w.Figures(running=here, kv=here * 0.1, generated=50), "question": asked(20)}

    assert kinds(story((20, lambda at: {**idle(at), "figures": w.Figures(generated=50)}), (400, hung)))[-1] == "stalled"


@pytest.mark.parametrize(
    ("result", "running", "expected"),
    [
        ("silent", 0, "stalled"),
        ("failed", 0, "stalled"),
        ("failed", 2, "stalled"),
        ("denied", 0, "idle"),
        ("denied", 2, "stalled"),
        ("came", 0, "idle"),
    ],
)
def test_answers_to_the_question(result: str, running: int, expected: str) -> None:
    """Refused in a moment each time: an overloaded engine does that too, but then it has requests that move."""
    told = story(
        (20, idle),
        (400, lambda at: {"figures": w.Figures(running=running), "question": asked(at - at % 15, result)}),
    )
    assert told[-1][1] == expected


def test_an_engine_that_refuses_because_it_is_full_is_busy() -> None:
    def full(at: float) -> dict[str, Any]:
        return {"figures": w.Figures(running=4, generated=int(at)), "question": asked(at - at % 15, "failed")}

    assert kinds(story((20, idle), (900, full))) == ["idle", "busy"]


def test_without_metrics_one_question_needs_longer() -> None:
    told = story((20, idle), (1000, lambda at: {"figures": None, "metrics": "off", "question": asked(20)}))
    assert (told[-1][1], told[-1][0]) == ("stalled", 20 + 120 * w.BLIND)
    assert "metrics cannot be read" in told[-1][2]


def test_a_gpu_that_works_gets_longer() -> None:
    rules = replace(RULES, watts=60.0)

    def seen(watts: float) -> float:
        told = story((20, idle), (600, lambda at: {"watts": watts, "question": asked(20)}), rules=rules)
        return told[-1][0]

    assert (seen(20), seen(90)) == (140, 260)


def test_nothing_at_all_answers() -> None:
    """The server's own process stands still: connections are taken, nothing is answered."""
    told = story(
        (20, idle),
        (400, lambda at: {"health": "silent", "metrics": "silent", "figures": None, "question": asked(25)}),
    )
    assert kinds(told) == ["idle", "busy", "stalled"]


def test_it_recovers_in_time() -> None:
    hung = (110, lambda at: {"figures": w.Figures(running=1, generated=5), "question": asked(20)})
    works = (400, lambda at: {**idle(at), "figures": w.Figures(generated=6)})
    assert kinds(story((20, idle), hung, works)) == ["idle", "busy", "idle"]


def test_a_gap_in_the_looks_proves_nothing() -> None:
    """The machine stood still for ten minutes; the question that waited meanwhile is not held against the engine."""
    seen, state = [], w.State()
    for at in (0.0, 5.0, 605.0, 660.0, 720.0, 724.0, 725.0):
        sample = w.Sample(at=at, invocation="a", figures=w.Figures(), question=asked(4))
        verdict, state = w.triage(state, sample, RULES)
        seen.append(verdict.kind)
    assert seen == [*["idle"] * 6, "stalled"]


@pytest.mark.parametrize(
    ("differs", "until", "expected", "words"),
    [
        ({"health": "refused"}, 200, ["starting"], "it loads for 0 s now, of 300 s at most"),
        ({"health": "silent"}, 299, ["starting"], "it loads"),
        ({"health": "answers"}, 400, ["starting", "dead"], "it is not ready after 300 s"),
        ({"active": "activating", "sub": "start-pre"}, 900, ["starting"], "its unit is starting"),
        (
            {"active": "activating", "sub": "auto-restart", "status": "exit 0"},
            900,
            ["starting"],
            "it ended (exit 0) and",
        ),
        ({"active": "deactivating"}, 900, ["starting"], "its unit is being stopped"),
        ({"active": "failed", "status": "exit 1"}, 60, ["starting", "dead"], "its unit is failed (exit 1) although"),
        ({"active": "inactive"}, 60, ["starting", "dead"], "its unit is inactive"),
        ({"active": "inactive", "stopped": "docker"}, 60, ["starting", "dead"], "together with docker.service"),
        ({"active": "inactive", "stopped": "operator"}, 60, ["stopped"], "somebody stopped its unit"),
        ({"active": "failed", "stopped": "operator"}, 60, ["stopped"], "somebody stopped its unit"),
        ({"enabled": False}, 60, ["stopped"], "its unit is not enabled"),
        ({"enabled": False, "active": "failed"}, 60, ["stopped"], "its unit is not enabled"),
        ({"port": False, "health": "refused"}, 900, ["idle"], "this rank has no port"),
        ({"port": False, "active": "failed"}, 60, ["starting", "dead"], "its unit is failed"),
    ],
)
def test_units(differs: dict[str, Any], until: float, expected: list[str], words: str) -> None:
    told = story((until, lambda at: differs))
    assert kinds(told) == expected
    assert words in told[-1][2]


def test_a_port_that_refuses_after_it_was_ready() -> None:
    told = story((100, idle), (200, lambda at: {"health": "refused"}))
    assert [(at, kind) for at, kind, _words in told] == [(0, "idle"), (100, "starting"), (110, "dead")]


def test_a_new_start_gets_its_own_grace() -> None:
    def again(at: float) -> dict[str, Any]:
        return {"invocation": "b", "began": 400.0, "health": "refused", "question": asked(100)}

    assert kinds(story((400, idle), (690, again))) == ["idle", "starting"]
