# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate's proofs and verdicts, look by look."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate

RULES = _gate.Rules(model="m", max_model_len=2048, expect=r"(?i)\bparis\b", successes=2, minimum_healthy=1.0)
GOOD = _gate.Step("completion", good=True)
WAIT = _gate.Step("health", good=False, reason="/health: 503")
BAD = _gate.Step("completion", good=False, bad=True, reason="garbage")


@pytest.mark.parametrize(
    ("unit", "reason"),
    [
        ({"ActiveState": "active", "InvocationID": "a"}, ""),
        ({"ActiveState": "activating", "SubState": "start-pre", "InvocationID": "a"}, ""),
        ({"ActiveState": "reloading", "InvocationID": "a"}, ""),
        (
            {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"},
            "the unit is failed (result exit-code, exit status 1)",
        ),
        ({"ActiveState": "inactive", "Result": "success", "ExecMainStatus": "0"}, "the unit is inactive"),
        ({"ActiveState": "deactivating"}, "the unit is deactivating"),
        ({}, "the unit is "),
        (
            {"ActiveState": "activating", "SubState": "auto-restart", "ExecMainStatus": "0"},
            "ended with exit status 0 and waits",
        ),
        ({"ActiveState": "active", "InvocationID": "b"}, "was started again by systemd"),
    ],
)
def test_process(unit: dict[str, str], reason: str) -> None:
    said = _gate.process_step(unit, "a")
    assert said.startswith(reason) if not reason else reason in said
    assert bool(said) is bool(reason)


def test_first_look_knows_no_start_yet() -> None:
    assert _gate.process_step({"ActiveState": "active", "InvocationID": "b"}, "") == ""


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"data": [{"id": "m", "max_model_len": 2048}]}, ""),
        ({"data": [{"id": "other"}, {"id": "m", "max_model_len": 4096}]}, ""),
        ({"data": [{"id": "m"}]}, ""),
        ({"data": [{"id": "m", "max_model_len": None}]}, ""),
        ({"data": [{"id": "m", "max_model_len": "long"}]}, ""),
        ({"data": [{"id": "m", "max_model_len": 1024}]}, "max_model_len is 1024, the release asks for 2048"),
        ({"data": [{"id": "b"}, {"id": "a"}]}, "serves a, b instead of m"),
        ({"data": []}, "serves nothing instead of m"),
        ({"data": ["m", None]}, "serves nothing instead of m"),
        ({"data": [{"id": ["m"]}]}, "serves ['m'] instead of m"),
        ({"data": "m"}, "did not answer with a list of models"),
        ({}, "did not answer with a list of models"),
        (None, "did not answer with a list of models"),
        (["m"], "did not answer with a list of models"),
    ],
)
def test_models(content: Any, reason: str) -> None:
    step = _gate.models_step(content, RULES)
    assert (step.good, step.bad) == (not reason, bool(reason))
    assert reason in step.reason


def test_models_without_a_wanted_length() -> None:
    rules = _gate.Rules(model="m", max_model_len=None, expect="x")
    assert _gate.models_step({"data": [{"id": "m", "max_model_len": 1}]}, rules).good


def answer(message: Any = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": "stop", **more}]}


@pytest.mark.parametrize(
    ("status", "content", "reason"),
    [
        (200, answer({"content": "Paris."}), ""),
        (200, answer({"content": None, "reasoning_content": "The user wants Paris"}), ""),
        (200, answer({"content": "", "reasoning": "It is paris"}), ""),
        (200, answer({"content": "<think>"}, text="Paris"), ""),
        (200, answer(None, text=" Paris"), ""),
        (200, answer({"content": "Paris"}, finish_reason="length"), ""),
        (200, answer({"content": "!!!!!!!!"}), "the answer '!!!!!!!!' does not match"),
        (200, answer({"content": "Parisparis"}), "does not match"),
        (200, answer({"content": ""}), "the answer '' does not match"),
        (200, answer({"content": "x" * 500}), "…' does not match"),
        (200, answer({"content": [{"text": "Paris"}]}), "the answer '' does not match"),
        (200, answer({"content": "Paris"}, finish_reason="abort"), "ended with abort"),
        (200, answer({"content": "Paris"}, finish_reason="error"), "ended with error"),
        (200, {"choices": []}, "without choices"),
        (200, {"choices": ["Paris"]}, "without choices"),
        (200, {"choices": [{"message": "Paris"}]}, "without choices"),
        (200, {}, "without choices"),
        (200, None, "without choices"),
        (200, "Paris", "without choices"),
        (500, None, "a completion was answered 500 oops"),
        (503, answer({"content": "Paris"}), "a completion was answered 503 oops"),
        (0, None, "a completion was answered not at all oops"),
    ],
)
def test_completion(status: int, content: Any, reason: str) -> None:
    step = _gate.completion_step(status, content, "oops", RULES)
    assert (step.good, step.bad) == (not reason, bool(reason)), step.reason
    assert reason in step.reason
    assert len(step.reason) < 200


@pytest.mark.parametrize(
    ("looks", "verdicts"),
    [
        ([(0, GOOD), (1, GOOD)], "pending pass"),
        ([(0, GOOD), (0.5, GOOD), (1, GOOD)], "pending pending pass"),
        ([(0, GOOD)], "pending"),
        ([(0, WAIT)] * 50, " ".join(["pending"] * 50)),
        ([(0, BAD), (1, BAD), (2, BAD)], "pending pending fail"),
        ([(0, BAD), (1, BAD), (2, GOOD), (3, BAD), (4, BAD), (5, BAD)], "pending pending pending pending pending fail"),
        ([(0, BAD), (1, BAD), (2, WAIT), (3, BAD), (4, BAD)], "pending pending pending pending pending"),
        ([(0, GOOD), (1, BAD), (2, GOOD), (3, GOOD)], "pending pending pending pass"),
        ([(0, GOOD), (1, WAIT), (2, GOOD), (2.5, GOOD), (3, GOOD)], "pending pending pending pending pass"),
    ],
    ids=["two in a row", "not healthy for long enough", "one is not enough", "loading is normal", "three bad ones", "a good one starts anew",
         "a wait starts anew", "a bad one starts anew", "the healthy time starts anew"],
)  # fmt: skip
def test_verdicts(looks: list[tuple[float, _gate.Step]], verdicts: str) -> None:
    state, seen = _gate.State(), []
    for at, step in looks:
        verdict, state = _gate.judge(state, _gate.Look(at=at, steps=[_gate.Step("port", good=True), step]), RULES)
        seen.append(verdict)
    assert " ".join(seen) == verdicts


def test_state_explains_the_last_look() -> None:
    _verdict, state = _gate.judge(_gate.State(successes=1), _gate.Look(at=0, steps=[BAD]), RULES)
    assert (state.step, state.reason, state.successes, state.failures) == ("completion", "garbage", 0, 1)
