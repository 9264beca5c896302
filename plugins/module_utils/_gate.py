# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate: the ordered proofs that an engine is fit to serve, and what their outcomes add up to.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; the modules `engine_ready` and `proxy_admit` ask the questions.

Four verdicts: `pass`; `fail`, the engine is there and bad; `gone`, its process ended, so waiting is useless; `error`, the gate
could not measure. Until one of them is reached the gate is `pending`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class Rules:
    """`successes` good answers in a row over at least `minimum_healthy` seconds."""

    model: str
    max_model_len: int | None
    expect: str
    successes: int = 2
    minimum_healthy: float = 1.0


@dataclass(frozen=True)
class Step:
    """Outcome of one proof: `waiting` is normal while an engine loads, `bad` counts as a failure."""

    name: str
    good: bool
    reason: str = ""
    bad: bool = False


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


def completion_step(status: int, content: Any, problem: str, rules: Rules) -> Step:
    """A real answer with the expected content, in the text or in the reasoning of a thinking model."""
    if status != 200:
        return Step(
            "completion",
            good=False,
            bad=True,
            reason=f"a completion was answered {status or 'not at all'} {problem}".rstrip(),
        )
    try:
        choice = content["choices"][0]
        message = choice.get("message") or {}
        parts = [message.get("content"), message.get("reasoning_content"), message.get("reasoning"), choice.get("text")]
    except (KeyError, IndexError, TypeError, AttributeError):
        return Step("completion", good=False, bad=True, reason="a completion came back without choices")
    if choice.get("finish_reason") in ("abort", "error"):
        return Step("completion", good=False, bad=True, reason=f"a completion ended with {choice['finish_reason']}")
    text = " ".join(part for part in parts if isinstance(part, str))
    if not re.search(rules.expect, text):
        shown = text if len(text) <= 80 else text[:79] + "…"
        return Step("completion", good=False, bad=True, reason=f"the answer {shown!r} does not match {rules.expect!r}")
    return Step("completion", good=True)


@dataclass
class Look:
    """One look at the engine: the steps in order, up to the first that is not good."""

    at: float
    steps: list[Step] = field(default_factory=list)


def judge(state: State, look: Look, rules: Rules) -> tuple[str, State]:
    """Fold one look into what is known; returns the verdict and the new state."""
    last = look.steps[-1]
    if not last.good:
        failures = state.failures + 1 if last.bad else 0
        known = State(step=last.name, reason=last.reason, failures=failures)
        return (FAIL if failures >= MOST_FAILURES else PENDING), known
    since = look.at if state.healthy_since is None else state.healthy_since
    known = State(healthy_since=since, successes=state.successes + 1, step=last.name, reason="")
    enough = known.successes >= rules.successes and look.at - since >= rules.minimum_healthy
    return (PASS if enough else PENDING), known
