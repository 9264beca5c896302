# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine does, by what was seen of it: the watchdog's triage.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; times are seconds of a clock that only goes on.

A sign of life is a token, a prompt or a step that was counted, KV pages that a long prompt takes, or the answer to the watchdog's
own question. An engine is stalled when a question waits and no sign of life came for the whole patience: one that is full to the
brim lets the question wait as well, but its tokens move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

STARTING, IDLE, BUSY, STALLED, DEAD, STOPPED = "starting", "idle", "busy", "stalled", "dead", "stopped"
VERDICTS = (STARTING, IDLE, BUSY, STALLED, DEAD, STOPPED)
FIT = (IDLE, BUSY)
# Without figures nobody can tell a full engine from a hung one by one question, so it gets this much longer.
BLIND = 5
# So does one whose GPU draws the power of work: a prompt may be computed in one step.
WORKING = 2


@dataclass(frozen=True)
class Figures:
    """Of the copy's own metrics. What a build does not have is 0 in every sample."""

    running: int = 0
    waiting: int = 0
    generated: int = 0
    prompts: int = 0
    steps: int = 0
    kv: float = 0.0

    @property
    def requests(self) -> int:
        return self.running + self.waiting


@dataclass(frozen=True)
class Question:
    """The newest one-token completion. `result`: empty while it waits, came, silent, refused, failed, or denied (our own fault)."""

    asked: float
    ended: float | None = None
    result: str = ""
    words: str = ""


@dataclass(frozen=True)
class Sample:
    """One look. `health`: ok, answers (another status), silent, refused. `metrics`: read, silent (not in time), off (none to have).

    `stopped`: by whom an inactive unit was stopped: operator, docker (with docker.service, which runs again), or nobody.
    """

    at: float
    active: str = "active"
    sub: str = "running"
    enabled: bool = True
    invocation: str = ""
    began: float = 0.0
    status: str = ""
    stopped: str = "nobody"
    port: bool = True
    health: str = "ok"
    metrics: str = "read"
    figures: Figures | None = None
    question: Question | None = None
    watts: float | None = None


@dataclass(frozen=True)
class Rules:
    """Seconds, but for `watts`: what the GPU draws at least while it works, 0 for not known."""

    load: float
    stalled: float = 120.0
    refused: float = 10.0
    watts: float = 0.0
    longest_gap: float = 60.0


@dataclass(frozen=True)
class State:
    """What is remembered of one start of the engine from one look to the next."""

    invocation: str = ""
    looked: float | None = None
    ready: bool = False
    alive: float | None = None
    moved: float | None = None
    unanswered: float | None = None
    lost: float | None = None
    figures: Figures | None = None


@dataclass(frozen=True)
class Verdict:
    kind: str
    reason: str


def triage(state: State, sample: Sample, rules: Rules) -> tuple[Verdict, State]:
    """The verdict of this look, and what to remember."""
    if sample.invocation != state.invocation:
        state = State(invocation=sample.invocation)
    if state.looked is not None and sample.at - state.looked > rules.longest_gap:
        # Nobody looked meanwhile, or the whole machine stood still: what was not seen counts for nothing.
        state = replace(state, alive=sample.at, unanswered=None, lost=None)
    state = replace(state, looked=sample.at)
    verdict = _of_unit(sample)
    if verdict:
        return _after_grace(verdict, state, sample, rules)
    if not sample.port:
        return Verdict(IDLE, "this rank has no port to be asked at"), state
    if sample.health == "ok" and not state.ready:
        state = replace(state, ready=True, alive=sample.at)
    if not state.ready:
        return _loading(sample, rules), state
    if sample.health == "refused":
        return _after_grace(Verdict(DEAD, "it was ready, and its port refuses connections"), state, sample, rules)
    state = _signs(replace(state, lost=None), sample)
    return _of_life(state, sample, rules), state


def _of_unit(sample: Sample) -> Verdict | None:
    """What the unit alone says; None when it is active."""
    if not sample.enabled:
        return Verdict(STOPPED, "its unit is not enabled")
    if sample.active in ("inactive", "failed"):
        if sample.stopped == "operator":
            return Verdict(STOPPED, "somebody stopped its unit, which is still enabled")
        if sample.stopped == "docker":
            return Verdict(DEAD, "it was stopped together with docker.service, which runs again")
        return Verdict(DEAD, f"its unit is {sample.active} ({sample.status}) although it is enabled")
    if sample.active == "deactivating":
        return Verdict(STARTING, "its unit is being stopped")
    if sample.active == "activating":
        again = f"it ended ({sample.status}) and systemd starts it again"
        return Verdict(STARTING, again if sample.sub == "auto-restart" else "its unit is starting")
    return None


def _after_grace(verdict: Verdict, state: State, sample: Sample, rules: Rules) -> tuple[Verdict, State]:
    """Dead only after a while, so that nobody restarts what systemd or a boot is just about to start."""
    if verdict.kind != DEAD:
        return verdict, replace(state, lost=None)
    since = sample.at if state.lost is None else state.lost
    state = replace(state, lost=since)
    if sample.at - since < rules.refused:
        return Verdict(STARTING, f"{verdict.reason}, for less than {rules.refused:.0f} s"), state
    return verdict, state


def _loading(sample: Sample, rules: Rules) -> Verdict:
    seconds = sample.at - sample.began
    if seconds < rules.load:
        return Verdict(STARTING, f"it loads for {seconds:.0f} s now, of {rules.load:.0f} s at most")
    return Verdict(DEAD, f"it is not ready after {seconds:.0f} s, and its release may take {rules.load:.0f} s")


def _signs(state: State, sample: Sample) -> State:
    """Take in what this look shows of its work."""
    now, before = sample.figures, state.figures
    if now and before and _moved(before, now):
        # The watchdog's own completion is one token, and makes nobody busy.
        others = now.generated - before.generated > 1 or now.requests > 0
        state = replace(state, alive=sample.at, moved=sample.at if others else state.moved, unanswered=None)
    state = replace(state, figures=now or before)
    asked = sample.question
    if asked is None:
        return state
    if asked.result == "came":
        ended = sample.at if asked.ended is None else asked.ended
        if state.unanswered is None or ended >= state.unanswered:
            state = replace(state, unanswered=None)
        return replace(state, alive=max(ended, state.alive or ended))
    if asked.result == "denied" and not (state.figures and state.figures.requests):
        return replace(state, unanswered=None)
    return replace(state, unanswered=asked.asked if state.unanswered is None else state.unanswered)


def _moved(before: Figures, now: Figures) -> bool:
    """Whether it worked. Gauges alone say nothing: a client that leaves a hung engine changes them."""
    if now.generated > before.generated or now.prompts > before.prompts or now.steps > before.steps:
        return True
    return now.kv > before.kv and now.requests <= before.requests


def _of_life(state: State, sample: Sample, rules: Rules) -> Verdict:
    figures = state.figures or Figures()
    doing = f"{figures.running} run, {figures.waiting} wait"
    if state.unanswered is not None:
        quiet = sample.at - max(state.unanswered, state.alive or state.unanswered)
        patience, why = rules.stalled, ""
        if sample.metrics == "off" and sample.health == "ok":
            patience, why = patience * BLIND, " (its metrics cannot be read, so it had longer)"
        elif rules.watts and sample.watts is not None and sample.watts >= rules.watts:
            patience, why = patience * WORKING, f" (its GPU draws {sample.watts:.0f} W, so it had longer)"
        if quiet >= patience:
            last = sample.question
            answer = f"; a completion was answered: {last.words}" if last and last.words else ""
            return Verdict(STALLED, f"{doing}; for {quiet:.0f} s nothing moved and no completion came{why}{answer}")
        if figures.requests or sample.health != "ok":
            return Verdict(BUSY, f"{doing}; nothing moved for {quiet:.0f} s of {patience:.0f} s")
    moving = state.moved is not None and sample.at - state.moved < rules.refused
    if moving or figures.requests:
        return Verdict(BUSY, f"{doing}{', tokens move' if moving else ''}")
    return Verdict(IDLE, "it answers, and nobody asks")
