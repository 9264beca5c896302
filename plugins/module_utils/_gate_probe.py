# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an engine the gate's questions over HTTP.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of the gate.
"""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _http

# The options of the proofs, as an argument spec.
OPTIONS: dict[str, Any] = {
    "model": {"type": "str", "required": True},
    "max_model_len": {"type": "int"},
    "prompt": {"type": "str", "default": "What is the capital of France? Answer with one word."},
    "expect": {"type": "str", "default": r"(?i)\bparis\b"},
    "max_tokens": {"type": "int", "default": 64, "no_log": False},
    "completion_seconds": {"type": "float", "default": 60},
    "successes": {"type": "int", "default": 2},
    "minimum_healthy_seconds": {"type": "float", "default": 1},
    "deadline_seconds": {"type": "int", "required": True},
}
LOOK_INTERVAL = 0.2


def rules(options: dict[str, Any]) -> _gate.Rules:
    return _gate.Rules(
        model=options["model"],
        max_model_len=options["max_model_len"],
        expect=options["expect"],
        successes=options["successes"],
        minimum_healthy=options["minimum_healthy_seconds"],
    )


def base_url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def health(base: str) -> _gate.Step:
    """Whether /health answers 200; waiting for that is normal while an engine loads."""
    answer = _http.get(f"{base}/health", timeout=5)
    return _gate.Step("health", good=answer.status == 200, reason=f"/health: {answer.status or answer.problem}")


def look(base: str, options: dict[str, Any], wanted: _gate.Rules, key: str) -> _gate.Look:
    """Ask everything in order, and stop at the first proof that fails."""
    seen = _gate.Look(at=time.time(), steps=[health(base)])
    if not seen.steps[-1].good:
        return seen
    models = _http.get(f"{base}/v1/models", timeout=5, token=key)
    seen.steps.append(_gate.models_step(models.json(), wanted))
    if not seen.steps[-1].good:
        return seen
    answer = _http.post(
        f"{base}/v1/chat/completions",
        {
            "model": wanted.model,
            "messages": [{"role": "user", "content": options["prompt"]}],
            "max_tokens": options["max_tokens"],
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False},
        },
        timeout=options["completion_seconds"],
        token=key,
    )
    seen.steps.append(_gate.completion_step(answer.status, answer.json(), answer.problem or answer.body[:200], wanted))
    seen.at = time.time()
    return seen


def wait(base: str, options: dict[str, Any], key: str) -> tuple[str, _gate.State, float]:
    """Look again and again until there is a verdict or the deadline is over; returns it with the moment."""
    wanted, state = rules(options), _gate.State()
    started = time.time()
    while True:
        seen = look(base, options, wanted, key)
        verdict, state = _gate.judge(state, seen, wanted)
        if verdict == _gate.PENDING and seen.at - started >= options["deadline_seconds"]:
            verdict = _gate.FAIL
            state.reason = f"not proven after {options['deadline_seconds']} s; last: {state.reason or 'good answers, but not enough'}"
        if verdict != _gate.PENDING:
            return verdict, state, seen.at
        time.sleep(LOOK_INTERVAL)
