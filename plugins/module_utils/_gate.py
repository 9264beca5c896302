# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: the ordered proofs that an engine is fit to serve, and what their outcomes add up to.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; the modules `engine_ready` and `proxy_admit` ask the questions.

Four verdicts: `pass`; `fail`, the engine is there and bad; `gone`, its process ended, so waiting is useless; `error`, the gate
could not measure. Until one of them is reached the gate is `pending`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate_answer

# Wrong answers in a row after which an engine is called bad: the first answers of a cold engine may time out.
MOST_FAILURES = 3
PENDING, PASS, FAIL, GONE, ERROR = "pending", "pass", "fail", "gone", "error"


@dataclass
class State:
    """What the gate remembers from one look to the next. Times are seconds since the epoch."""

    healthy_since: float | None = None
    successes: int = 0
    failures: int = 0
    step: str = "port"
    reason: str = "not looked yet"
    # Whether it was ready once: from then on a refused connection means that its process ended.
    loaded: bool = False


@dataclass(frozen=True)
class Rules:
    """`successes` good answers in a row over at least `minimum_healthy` seconds.

    `busy_is_bad`: an engine that has no clients yet has no reason to answer 503; one that serves may have.
    """

    model: str
    max_model_len: int | None
    expect: str
    max_tokens: int = 64
    successes: int = 2
    minimum_healthy: float = 1.0
    busy_is_bad: bool = True


@dataclass(frozen=True)
class Step:
    """Outcome of one proof. What is neither good nor anything else is waited for, as is normal while an engine loads.

    `bad` counts as a failure; `closed`: nobody listens; `unfit`: the question is at fault, so its answer says nothing.
    """

    name: str
    good: bool
    reason: str = ""
    bad: bool = False
    closed: bool = False
    unfit: bool = False


def process_step(unit: dict[str, str], invocation: str) -> str:
    """Empty while the unit's process is the one the gate began with, else why it is gone."""
    active = unit.get("ActiveState", "")
    if active not in ("active", "activating", "reloading"):
        return f"the unit is {active} (result {unit.get('Result')}, exit status {unit.get('ExecMainStatus')})"
    if active == "activating" and unit.get("SubState") == "auto-restart":
        return f"the engine ended with exit status {unit.get('ExecMainStatus')} and waits for its restart"
    if invocation and unit.get("InvocationID") != invocation:
        return "the engine ended and was started again by systemd"
    return ""


def models_step(content: Any, rules: Rules) -> Step:
    """The right name and, where the release says so, the right length in the answer of /v1/models."""
    entries = content.get("data") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        return Step("models", good=False, bad=True, reason="/v1/models did not answer with a list of models")
    by_name = {str(entry.get("id")): entry for entry in entries if isinstance(entry, dict)}
    if rules.model not in by_name:
        served = ", ".join(sorted(by_name)) or "nothing"
        return Step("models", good=False, bad=True, reason=f"serves {served} instead of {rules.model}")
    length = by_name[rules.model].get("max_model_len")
    if rules.max_model_len is not None and isinstance(length, int) and length < rules.max_model_len:
        return Step(
            "models",
            good=False,
            bad=True,
            reason=f"max_model_len is {length}, the release asks for {rules.max_model_len}",
        )
    return Step("models", good=True)


def refused_step(name: str, status: int, with_key: bool) -> Step | None:
    """An engine that does not take our key cannot be measured, which is not its fault."""
    if status not in (401, 403):
        return None
    what = "is not the key that it was started with" if with_key else "is not set, and it asks for a key"
    return Step(name, good=False, unfit=True, reason=f"the engine answered {status}: vllm_api_key {what}")


def completion_step(status: int, content: Any, problem: str, rules: Rules) -> Step:
    """A real answer with the expected content, in the text or in the reasoning of a thinking model."""
    return _answer_step("completion", status, problem, rules) or _content_step(
        "completion", "the answer", _gate_answer.whole(content), rules
    )


def stream_step(status: int, body: str, problem: str, rules: Rules) -> Step:
    """The same of a streamed answer, which takes another way through the engine's server."""
    return _answer_step("stream", status, problem, rules) or _content_step(
        "stream", "the streamed answer", _gate_answer.streamed(body), rules
    )


def _answer_step(name: str, status: int, problem: str, rules: Rules) -> Step | None:
    if status == 200:
        return None
    bad = rules.busy_is_bad or status not in (429, 503)
    reason = f"a {name} was answered {status or 'not at all'} {problem}".rstrip()
    return Step(name, good=False, bad=bad, reason=reason)


def _content_step(name: str, subject: str, said: _gate_answer.Said | _gate_answer.Problem, rules: Rules) -> Step:
    wrong = said if isinstance(said, _gate_answer.Problem) else None
    if isinstance(said, _gate_answer.Said):
        wrong = _gate_answer.problem(said, _gate_answer.Wanted(rules.expect, rules.max_tokens))
    if wrong is None:
        return Step(name, good=True)
    return Step(name, good=False, bad=not wrong.ours, unfit=wrong.ours, reason=f"{subject} {wrong.words}")


@dataclass
class Look:
    """One look at the engine: the steps in order, up to the first that is not good."""

    at: float
    steps: list[Step] = field(default_factory=list)


def judge(state: State, look: Look, rules: Rules) -> tuple[str, State]:
    """Fold one look into what is known; returns the verdict and the new state."""
    last = look.steps[-1]
    loaded = state.loaded or any(step.name == "health" and step.good for step in look.steps)
    if not last.good:
        counts = last.bad or (last.closed and loaded)
        failures = state.failures + 1 if counts else 0
        known = State(step=last.name, reason=last.reason, failures=failures, loaded=loaded)
        if last.unfit:
            return ERROR, known
        if failures < MOST_FAILURES:
            return PENDING, known
        if last.closed:
            known.reason = f"it was ready and now refuses connections, so its process ended ({last.reason})"
        return (GONE if last.closed else FAIL), known
    since = look.at if state.healthy_since is None else state.healthy_since
    known = State(healthy_since=since, successes=state.successes + 1, step=last.name, reason="", loaded=loaded)
    enough = known.successes >= rules.successes and look.at - since >= rules.minimum_healthy
    return (PASS if enough else PENDING), known
