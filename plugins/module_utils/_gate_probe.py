# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an engine the gate's questions over HTTP.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of the gate.
"""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _gate_answer, _host, _http

# The options of the questions, and of how often they are asked, as argument specs.
OPTIONS: dict[str, Any] = {
    "model": {"type": "str", "required": True},
    "max_model_len": {"type": "int"},
    "prompt": {"type": "str", "default": "What is the capital of France? Answer with one word."},
    "expect": {"type": "str", "default": r"(?i)\bparis\b"},
    "max_tokens": {"type": "int", "default": 64, "no_log": False},
    "completion_seconds": {"type": "float", "default": 60},
    "api_key": {"type": "str", "default": "", "no_log": True},
}
SERIES: dict[str, Any] = {
    "successes": {"type": "int", "default": 2},
    "minimum_healthy_seconds": {"type": "float", "default": 1},
    "deadline_seconds": {"type": "int", "required": True},
}
LOOK_INTERVAL = 0.2


def rules(options: dict[str, Any], busy_is_bad: bool = True) -> _gate.Rules:
    """Without the options of the series one good look is enough."""
    return _gate.Rules(
        model=options["model"],
        max_model_len=options["max_model_len"],
        expect=options["expect"],
        max_tokens=options["max_tokens"],
        successes=options.get("successes", 1),
        minimum_healthy=options.get("minimum_healthy_seconds", 0),
        busy_is_bad=busy_is_bad,
    )


def base_url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def health(base: str) -> _gate.Step:
    """Whether /health answers 200; waiting for that is normal while an engine loads."""
    answer = _http.get(f"{base}/health", timeout=5)
    reason = f"/health: {answer.status or answer.problem}"
    return _gate.Step("health", good=answer.status == 200, reason=reason, closed=answer.refused)


def look(base: str, options: dict[str, Any], wanted: _gate.Rules) -> _gate.Look:
    """Ask everything in order, and stop at the first proof that fails."""
    seen = _gate.Look(at=time.time(), steps=[health(base)])
    for proof in (models, completion, stream):
        if not seen.steps[-1].good:
            break
        seen.steps.append(proof(base, options, wanted))
    seen.at = time.time()
    return seen


def models(base: str, options: dict[str, Any], wanted: _gate.Rules) -> _gate.Step:
    key = options["api_key"]
    answer = _http.get(f"{base}/v1/models", timeout=5, token=key)
    return _gate.refused_step("models", answer.status, bool(key)) or _gate.models_step(answer.json(), wanted)


def completion(base: str, options: dict[str, Any], wanted: _gate.Rules) -> _gate.Step:
    answer = ask(base, options, {})
    refused = _gate.refused_step("completion", answer.status, bool(options["api_key"]))
    return refused or _gate.completion_step(
        answer.status, answer.json(), answer.problem or _gate_answer.complaint(answer.body), wanted
    )


def stream(base: str, options: dict[str, Any], wanted: _gate.Rules) -> _gate.Step:
    answer = ask(base, options, {"stream": True})
    refused = _gate.refused_step("stream", answer.status, bool(options["api_key"]))
    return refused or _gate.stream_step(
        answer.status, answer.body, answer.problem or _gate_answer.complaint(answer.body), wanted
    )


def ask(base: str, options: dict[str, Any], more: dict[str, Any]) -> _http.Answer:
    """The question whose answer is known; a thinking model is asked not to think, and not every template listens."""
    question = {
        "model": options["model"],
        "messages": [{"role": "user", "content": options["prompt"]}],
        "max_tokens": options["max_tokens"],
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
        **more,
    }
    return _http.post(
        f"{base}/v1/chat/completions", question, timeout=options["completion_seconds"], token=options["api_key"]
    )


def wait(
    base: str, options: dict[str, Any], loaded: bool = False, busy_is_bad: bool = True
) -> tuple[str, _gate.State, float]:
    """Look again and again until there is a verdict or the deadline is over; returns it with the moment."""
    wanted, state = rules(options, busy_is_bad), _gate.State(loaded=loaded)
    budget = _host.Deadline(options["deadline_seconds"])
    while True:
        seen = look(base, options, wanted)
        verdict, state = _gate.judge(state, seen, wanted)
        if verdict == _gate.PENDING and budget.left <= 0:
            verdict = _gate.FAIL
            last = state.reason or "good answers, but not enough"
            state.reason = f"not proven after {options['deadline_seconds']} s; last: {last}"
        if verdict != _gate.PENDING:
            return verdict, state, seen.at
        budget.pause(LOOK_INTERVAL)
