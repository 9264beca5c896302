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
UNFIT = _gate.Step("models", good=False, unfit=True, reason="401")
CLOSED = _gate.Step("health", good=False, closed=True, reason="/health: refused")
HEALTHY = [_gate.Step("health", good=True), _gate.Step("models", good=False, reason="busy")]
HEALTHY_BUT_BAD = [_gate.Step("health", good=True), BAD]


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


PARIS = {"choices": [{"message": {"content": "Paris"}, "finish_reason": "stop"}]}
STREAM = 'data: {"choices": [{"delta": {"content": "Paris"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(
    ("status", "content", "reason"),
    [
        (200, PARIS, ""),
        (200, {"choices": [{"message": {"content": "Rome"}}]}, "the answer 'Rome' does not match"),
        (200, {}, "the answer came back without choices"),
        (500, None, "a completion was answered 500 oops"),
        (503, PARIS, "a completion was answered 503 oops"),
        (0, None, "a completion was answered not at all oops"),
    ],
)
def test_completion(status: int, content: Any, reason: str) -> None:
    step = _gate.completion_step(status, content, "oops", RULES)
    assert (step.name, step.good, step.bad) == ("completion", not reason, bool(reason)), step.reason
    assert reason in step.reason


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, STREAM, ""),
        (200, STREAM.replace("Paris", "Rome"), "the streamed answer 'Rome' does not match"),
        (200, STREAM.replace("data: [DONE]", ""), "the streamed answer broke off after 1 pieces"),
        (500, "", "a stream was answered 500 oops"),
    ],
)
def test_stream(status: int, body: str, reason: str) -> None:
    step = _gate.stream_step(status, body, "oops", RULES)
    assert (step.name, step.good, step.bad) == ("stream", not reason, bool(reason)), step.reason
    assert reason in step.reason


@pytest.mark.parametrize(("status", "bad"), [(503, False), (429, False), (500, True), (0, True)])
def test_a_busy_engine_that_serves_is_not_a_bad_one(status: int, bad: bool) -> None:
    rules = _gate.Rules(model="m", max_model_len=None, expect="x", busy_is_bad=False)
    for step in (_gate.completion_step(status, None, "", rules), _gate.stream_step(status, "", "", rules)):
        assert (step.good, step.bad) == (False, bad)


def test_thinking_that_leaves_no_room_is_the_questions_fault() -> None:
    content = {"choices": [{"message": {"content": None, "reasoning": "Well,"}, "finish_reason": "length"}]}
    step = _gate.completion_step(200, content, "", RULES)
    assert (step.good, step.bad, step.unfit) == (False, False, True)
    assert "took all of 64 tokens: raise vllm_gate_max_tokens" in step.reason


@pytest.mark.parametrize(
    ("status", "with_key", "words"),
    [
        (200, True, None),
        (500, False, None),
        (401, True, "401: vllm_api_key is not the key"),
        (403, True, "403: vllm_api_key is not the key"),
        (401, False, "401: vllm_api_key is not set, and it asks for a key"),
    ],
)
def test_a_refused_key(status: int, with_key: bool, words: str | None) -> None:
    step = _gate.refused_step("models", status, with_key)
    if words is None:
        assert step is None
    else:
        assert step is not None
        assert (step.good, step.bad, step.unfit) == (False, False, True)
        assert words in step.reason


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
        ([(0, UNFIT)], "error"),
        ([(0, GOOD), (1, UNFIT)], "pending error"),
        ([(0, CLOSED)] * 9, " ".join(["pending"] * 9)),
        ([(0, HEALTHY_BUT_BAD), (1, CLOSED), (2, CLOSED), (3, CLOSED)], "pending pending gone gone"),
        ([(0, HEALTHY), (1, CLOSED), (2, CLOSED), (3, CLOSED)], "pending pending pending gone"),
        ([(0, HEALTHY), (1, CLOSED), (2, WAIT), (3, CLOSED), (4, CLOSED)], "pending pending pending pending pending"),
    ],
    ids=["two in a row", "not healthy for long enough", "one is not enough", "loading is normal", "three bad ones", "a good one starts anew",
         "a wait starts anew", "a bad one starts anew", "the healthy time starts anew",
         "the question is at fault", "so it is later", "nobody listens yet", "bad, then closed", "ready, then closed", "closed for a moment"],
)  # fmt: skip
def test_verdicts(looks: list[tuple[float, Any]], verdicts: str) -> None:
    state, seen = _gate.State(), []
    for at, steps in looks:
        taken = steps if isinstance(steps, list) else [_gate.Step("port", good=True), steps]
        verdict, state = _gate.judge(state, _gate.Look(at=at, steps=taken), RULES)
        seen.append(verdict)
    assert " ".join(seen) == verdicts


def test_state_explains_the_last_look() -> None:
    _verdict, state = _gate.judge(_gate.State(successes=1), _gate.Look(at=0, steps=[BAD]), RULES)
    assert (state.step, state.reason, state.successes, state.failures) == ("completion", "garbage", 0, 1)


def test_an_engine_that_is_known_to_have_loaded_may_not_refuse() -> None:
    state = _gate.State(loaded=True)
    for expected in (_gate.PENDING, _gate.PENDING, _gate.GONE):
        verdict, state = _gate.judge(state, _gate.Look(at=0, steps=[CLOSED]), RULES)
        assert verdict == expected
    assert "its process ended (/health: refused)" in state.reason
