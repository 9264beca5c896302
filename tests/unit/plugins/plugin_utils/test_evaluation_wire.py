# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of answers with tools: what a suite mends or does not see has to be seen here."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_wire as wire

WEATHER = {
    "type": "object",
    "properties": {
        "location": {"type": "string"},
        "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer"},
        "hours": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["location"],
}
QUERY = {
    "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}],
    "tool_choice": "auto",
}
GOOD = '{"location": "Berlin"}'


def whole(
    arguments: Any = GOOD, name: str = "get_weather", content: str | None = None, finish: str = "tool_calls"
) -> str:
    calls = [{"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}] if arguments else []
    return json.dumps({"choices": [{"message": {"content": content, "tool_calls": calls}, "finish_reason": finish}]})


def stream(*deltas: dict[str, Any], finish: str | None = "tool_calls", done: bool = True) -> str:
    events: list[dict[str, Any]] = [{"choices": [{"delta": delta, "finish_reason": None}]} for delta in deltas]
    events += [{"choices": [{"delta": {}, "finish_reason": finish}]}] if finish else []
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + ("data: [DONE]\n\n" if done else "")


def piece(arguments: str, **head: Any) -> dict[str, Any]:
    name: dict[str, Any] = {"name": head.pop("name")} if "name" in head else {}
    return {"tool_calls": [{**head, "function": {**name, "arguments": arguments}}]}


BEGIN = piece("", id="1", index=0, name="get_weather")


@pytest.mark.parametrize(
    ("body", "streamed", "kinds"),
    [
        (whole(), False, {}),
        (whole(None, content="It is mild.", finish="stop"), False, {}),
        (whole(None, content='<tool_call>\n{"name": "get_weather"}', finish="stop"), False, {"text"}),
        (whole(None, content="<function=get_weather><parameter=location>", finish="stop"), False, {"text"}),
        (whole(None, content='{"name": "get_weather", "arguments": {}}', finish="stop"), False, {"text"}),
        (whole(content="and </tool_call>"), False, {"text"}),
        (whole('{"location": Berlin}'), False, {"json"}),
        (whole('["Berlin"]'), False, {"json"}),
        (whole(name="get_wether"), False, {"schema"}),
        (whole('{"days": 2}'), False, {"schema"}),
        (whole('{"location": 7}'), False, {"schema"}),
        (whole('{"location": "x", "units": "kelvin"}'), False, {"schema"}),
        (whole('{"location": "x", "days": 2.0, "hours": [1, 2.5]}'), False, {}),
        (whole('{"location": "x", "days": true}'), False, {"schema"}),
        (whole('{"location": "x", "hours": ["noon"]}'), False, {"schema"}),
        (whole(None, content=" \n \n", finish="length"), False, {"length"}),
        (stream(BEGIN, piece(GOOD[:9], index=0), piece(GOOD[9:], index=0)), True, {}),
        (stream(BEGIN, piece(GOOD[:9]), piece(GOOD[9:])), True, {"stream"}),
        (stream(piece("", index=0, name="get_weather"), piece(GOOD, index=0)), True, {"stream"}),
        (stream(piece("", index=0, id="1"), piece(GOOD, index=0)), True, {"stream"}),
        (stream(BEGIN, piece(GOOD, index=0), done=False), True, {"stream"}),
        (stream(BEGIN, piece(GOOD, index=0), finish=None), True, {"stream"}),
        (stream(BEGIN, piece(" \n", index=0), finish="length"), True, {"length"}),
        (stream({"content": "<tool_"}, {"content": "call>"}, finish="stop"), True, {"text"}),
        ("data: {broken\n\n" + stream({"content": "Hello"}, finish="stop"), True, {"stream"}),
    ],
)
def test_faults(body: str, streamed: bool, kinds: set[str]) -> None:
    answer = wire.read(body, streamed)
    assert answer.error == ""
    assert set(wire.faults(QUERY, answer)) == set(kinds)


def test_a_call_that_was_demanded_has_to_come() -> None:
    said = wire.read(whole(None, content="No.", finish="stop"), False)
    named = {"type": "function", "function": {"name": "get_weather"}}
    for choice in ("required", named):
        assert wire.faults({**QUERY, "tool_choice": choice}, said) == {"forced": "No."}
    # with a named function the engine ends a good call with `stop`
    assert wire.faults({**QUERY, "tool_choice": named}, wire.read(whole(finish="stop"), False)) == {}


def test_the_example_says_what_was_wrong() -> None:
    found = wire.faults(QUERY, wire.read(whole('{"location": "x", "units": "kelvin"}'), False))
    assert found["schema"] == 'get_weather: units is "kelvin", which is not among ["celsius", "fahrenheit"]'
    assert wire.unfit({}, {"required": ["a", "b"]}) == "a and b are missing"
    assert wire.unfit({"c": 1}, {"additionalProperties": False}) == "c is not asked for"
    assert wire.unfit(None, {"type": ["string", "null"]}) == ""


def test_server_errors_are_counted_wherever_they_are() -> None:
    seen = wire.Seen()
    seen.add(QUERY, 200, whole(), False, 1)
    seen.add(QUERY, 500, '{"error": {"message": "boom"}}', False, 4)
    seen.add(QUERY, 200, 'data: {"error": {"message": "boom"}}\n\ndata: [DONE]\n\n', True, 3)
    seen.add(QUERY, 200, "<html>", False, 2)
    seen.add(QUERY, 400, '{"error": {"message": "too long"}}', False, 1)
    seen.add({"messages": []}, 200, whole(None, content="<tool_call>", finish="stop"), False, 1)
    assert (seen.requests, seen.answers, seen.server_errors, seen.server_errors_alone, seen.most_at_once) == (
        6,
        1,
        3,
        0,
        4,
    )
    assert seen.lost_words() == 'the engine refused them, first with 400: {"error": {"message": "too long"}}'
    assert seen.faults == {}, "a request without tools has no calls"
    assert "3 of 6 requests" in seen.server_error_words()
    assert "only while others ran beside them, up to 4 at once" in seen.server_error_words()
    assert wire.Seen.of(json.loads(json.dumps(seen.as_dict()))) == seen
