# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Good and broken answers, whole and streamed, of plain and of thinking models."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate_answer
from ansible_collections.gb10.vllm.plugins.module_utils._gate_answer import Problem, Said

WANTED = _gate_answer.Wanted(expect=r"(?i)\bparis\b", max_tokens=64)
THOUGHT = "The user asks for a capital. That is Paris, of course. One word is wanted."

ANSWERS: list[tuple[Any, str, str]] = [
    ({"content": "Paris."}, "stop", ""),
    ({"content": "Paris is the"}, "length", ""),
    ({"content": "The capital of France is **Paris**, a city on the Seine with a long and rich history."}, "stop", ""),
    ({"content": "Rome"}, "stop", "'Rome' does not match"),
    ({"content": "Parisparis"}, "stop", "does not match"),
    ({"content": "once upon a time " + "many different words stood there " * 3}, "stop", "…' does not match"),
    ({"content": ""}, "stop", "is empty"),
    ({"content": " \n"}, "stop", "is empty"),
    ({"content": None}, "length", "is empty"),
    (None, "stop", "is empty"),
    ({"content": [{"text": "Paris"}]}, "stop", "is empty"),
    ({"content": "Paris"}, "abort", "ended with abort"),
    ({"content": ""}, "abort", "ended with abort"),
    ({"content": "Paris"}, "error", "ended with error"),
    # garbage
    ({"content": "Paris \ufffd\ufffd"}, "stop", "characters that are no text"),
    ({"content": "\ufffd\ufffd Paris"}, "length", "characters that are no text"),
    ({"content": "Paris \ufffd"}, "length", ""),
    ({"content": "Paris\x00\x01"}, "stop", "characters that are no text"),
    ({"content": "Paris\n\tof France"}, "stop", ""),
    ({"content": "Paris — café, 北京, 🗼\u2028"}, "stop", ""),
    ({"content": None, "reasoning": "\x07" + THOUGHT}, "stop", "characters that are no text"),
    # repetition
    ({"content": "!!!!!!!!"}, "stop", "repeats '!'"),
    ({"content": "!" * 64}, "length", "repeats '!'"),
    ({"content": "Paris " * 20}, "length", "repeats 'paris'"),
    ({"content": "Paris, " * 20}, "length", "repeats 'paris,'"),
    ({"content": "Paris" * 20}, "length", "repeats 'paris'"),
    ({"content": "Paris " + "the city of " * 16}, "length", "repeats 'the city of'"),
    ({"content": "Paris " + " ".join(f"the {word}" for word in "abcdefghijklm")}, "stop", "repeats 'the'"),
    ({"content": "Paris. Yes, Paris. It is Paris"}, "stop", ""),
    ({"content": None, "reasoning": "wait " * 30}, "length", "repeats 'wait'"),
    # thinking models
    ({"content": None, "reasoning_content": THOUGHT}, "stop", ""),
    ({"content": "", "reasoning": THOUGHT}, "length", ""),
    ({"content": "Paris", "reasoning": "Which one was it?"}, "stop", ""),
    ({"content": "Rome", "reasoning": THOUGHT}, "stop", "'Rome' does not match"),
    ({"content": None, "reasoning": "The user asks for"}, "length", "took all of 64 tokens: raise vllm_gate_max_tokens"),
    ({"content": "<think>The user asks for"}, "length", "took all of 64 tokens: raise vllm_gate_max_tokens"),
    ({"content": None, "reasoning": "The user asks for"}, "stop", "'The user asks for' does not match"),
    ({"content": f"<think>{THOUGHT}</think>\n\nParis"}, "stop", ""),
    ({"content": f"{THOUGHT}</think>Paris"}, "stop", ""),
    ({"content": f"<think>{THOUGHT}</think>Rome"}, "stop", "'Rome' does not match"),
    ({"content": f"<think>{THOUGHT}</think>"}, "stop", ""),
    ({"content": f"<think>{THOUGHT}"}, "length", ""),
]  # fmt: skip


@pytest.mark.parametrize(("message", "finish", "words"), ANSWERS)
def test_whole(message: Any, finish: str, words: str) -> None:
    said = _gate_answer.whole({"choices": [{"message": message, "finish_reason": finish}]})
    assert isinstance(said, Said)
    check(said, words)


@pytest.mark.parametrize(("message", "finish", "words"), ANSWERS)
def test_streamed(message: Any, finish: str, words: str) -> None:
    """The same in pieces of three characters."""
    pieces: list[dict[str, str | None]] = [{"role": "assistant", "content": ""}]
    for name, text in (message or {}).items():
        if isinstance(text, str):
            pieces += [{name: text[at : at + 3]} for at in range(0, len(text), 3)]
    events: list[Any] = [{"choices": [{"delta": piece, "finish_reason": None}]} for piece in pieces]
    events.append({"choices": [{"delta": {}, "finish_reason": finish}]})
    events.append({"choices": [], "usage": {}})
    said = _gate_answer.streamed(": alive\n\n" + stream(*events))
    assert isinstance(said, Said)
    check(said, words)


def stream(*events: Any, end: str = "[DONE]") -> str:
    said = [json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {event}\n\n" for event in [*said, end] if event)


def check(said: Said, words: str) -> None:
    found = _gate_answer.problem(said, WANTED)
    assert (found is None) is (not words), found
    if found:
        assert words in found.words
        assert found.ours is ("vllm_gate_max_tokens" in words)
        assert len(found.words) < 300


@pytest.mark.parametrize(
    "content",
    [None, "Paris", {}, [], {"choices": []}, {"choices": ["Paris"]}, {"choices": [{"message": "Paris"}]}, {"choices": None}],
)  # fmt: skip
def test_whole_without_choices(content: Any) -> None:
    assert _gate_answer.whole(content) == Problem("came back without choices")


PIECE = {"choices": [{"delta": {"content": "Paris"}, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "had no pieces"),
        ("<html>", "had no pieces"),
        (stream(), "had no pieces"),
        (stream({"choices": []}), "had no pieces"),
        (stream(PIECE, PIECE, end=""), "broke off after 2 pieces"),
        (stream(PIECE, {"error": {"message": "EngineCore encountered an issue."}}), "carried an error event: 'EngineCore encountered an issue.'"),
        (stream(PIECE, {"error": "short"}), "carried an error event: 'short'"),
        (stream(PIECE, "odd"), "carried an error event: 'odd'"),
        ("data: {half\n\n", "an event that is no JSON: '{half'"),
    ],
)  # fmt: skip
def test_broken_streams(body: str, words: str) -> None:
    found = _gate_answer.streamed(body)
    assert isinstance(found, Problem)
    assert words in found.words
    assert not found.ours


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("", ""), ("Paris", ""), ("aaaaaaa", ""), ("aaaaaaaa", "a"), ("no no no no no", ""), ("ab" * 8, "ab"),
        ("A list:\n- one\n- two\n- three\n- four", ""), ("-" * 20 + " a title that is longer than the rule", ""),
        ("word " * 3 + "and then something else that goes on for a while", ""),
    ],
)  # fmt: skip
def test_repeated(text: str, piece: str) -> None:
    assert _gate_answer.repeated(text) == piece


def test_looking_for_repetition_is_quick() -> None:
    words = " ".join(str(number * 7919) for number in range(20000))
    started = time.process_time()
    assert _gate_answer.repeated(words) == ""
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "no such model", "code": 404}}', "'no such model'"),
        ('{"error": "Unauthorized"}', "'Unauthorized'"),
        ('{"error": {"code": 1}}', "\"{'code': 1}\""),
        ('{"detail": "Not Found"}', '\'{"detail": "Not Found"}\''),
        ("<html>\n", "'<html>'"),
        ("[]", "'[]'"),
        ("", ""),
    ],
)
def test_complaint(body: str, words: str) -> None:
    assert _gate_answer.complaint(body) == words
