# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the form of an answer to a request with tools, whatever its content is worth.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A suite scores what a model decides. It mends what it can on the way, so it cannot tell a bad decision from a parser that loses
calls, and it tries again after a server error. These are the engine's faults, and they are counted from what was on the wire.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

FAULTS = {
    "text": "had a tool call as text",
    "json": "had arguments that are no JSON object",
    "schema": "had a call that does not fit the tools offered",
    "stream": "came as a stream with missing parts",
    "length": "ended at the limit of tokens",
    "forced": "had no call although one was demanded",
}
# How the parsers' families write a call when nobody parses it.
_CALL_AS_TEXT = re.compile(
    r"</?tool_call|<function=|</?function_call|\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call|<｜tool|<invoke name=|<minimax:tool_call|"
    r"<\|channel\|>commentary|^\s*\{\s*\"name\"\s*:\s*\"[^\"]+\"\s*,\s*\"(?:arguments|parameters)\"\s*:",
)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


@dataclass
class Answer:
    """An assembled answer; `problem` says what a stream lacked, `error` is what an error event said."""

    text: str = ""
    finish: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    problem: str = ""
    error: str = ""


@dataclass
class Seen:
    """Everything that was on the wire, added up."""

    requests: int = 0
    answers: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    most_at_once: int = 0
    server_errors: int = 0
    server_errors_alone: int = 0
    first_error: str = ""
    first_refusal: str = ""
    faults: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Seen:
        return cls(**{key: value for key, value in data.items() if key in cls.__dataclass_fields__})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def add(self, query: Mapping[str, Any], status: int, body: str, streamed: bool, at_once: int) -> None:
        """Count one exchange; `at_once` requests were running when it began, this one among them."""
        self.requests += 1
        self.most_at_once = max(self.most_at_once, at_once)
        self.statuses[str(status)] = self.statuses.get(str(status), 0) + 1
        answer = read(body, streamed) if status == 200 else Answer(error=body.strip())
        if status >= 500 or (status == 200 and answer.error):
            self.server_errors += 1
            self.server_errors_alone += at_once == 1
            self.first_error = self.first_error or f"{status}: {_cut(answer.error)}"
        elif status != 200:
            self.first_refusal = self.first_refusal or f"{status}: {_cut(answer.error)}"
        elif query.get("tools"):
            self.answers += 1
            for kind, words in faults(query, answer).items():
                self.faults[kind] = self.faults.get(kind, 0) + 1
                self.examples.setdefault(kind, _cut(words))

    def percent(self, kind: str) -> float:
        return 100 * self.faults.get(kind, 0) / self.answers if self.answers else 0

    def fault_words(self, kind: str) -> str:
        count = self.faults.get(kind, 0)
        return f"{count} of {self.answers} answers {FAULTS[kind]}, for example {self.examples.get(kind, '')}"

    def lost_words(self) -> str:
        """Why scenarios may have gone without a grade."""
        why = f"the engine refused them, first with {self.first_refusal}" if self.first_refusal else ""
        return why or "the engine did not answer them in time"

    def server_error_words(self) -> str:
        if not self.server_errors:
            return ""
        words = f"{self.server_errors} of {self.requests} requests ended in a server error (the first one {self.first_error})"
        if not self.server_errors_alone and self.most_at_once > 1:
            words += f", and only while others ran beside them, up to {self.most_at_once} at once"
        return words


def read(body: str, streamed: bool) -> Answer:
    """The answer out of what came with status 200."""
    return _read_stream(body) if streamed else _read_whole(body)


def _read_whole(body: str) -> Answer:
    try:
        data = json.loads(body)
        if data.get("error"):
            return Answer(error=str(data["error"]))
        choice = data["choices"][0]
        message = choice.get("message") or {}
        calls = [
            (str((call.get("function") or {}).get("name")), _arguments((call.get("function") or {}).get("arguments")))
            for call in message.get("tool_calls") or []
        ]
        return Answer(str(message.get("content") or ""), str(choice.get("finish_reason") or ""), calls)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return Answer(error=f"no completion: {body.strip()}")


def _read_stream(body: str) -> Answer:
    answer, pieces, ended = Answer(), {}, False  # type: ignore[var-annotated]
    for line in body.splitlines():
        name, colon, value = line.partition(":")
        if not colon or name != "data":
            continue
        if value.strip() == "[DONE]":
            ended = True
            break
        try:
            event = json.loads(value)
        except ValueError:
            answer.problem = f"an event that is no JSON: {value.strip()}"
            continue
        if not isinstance(event, dict) or event.get("error"):
            answer.error = f"an error event: {value.strip()}"
            return answer
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            answer.text += str(delta.get("content") or "")
            answer.finish = str(choice.get("finish_reason") or "") or answer.finish
            for part in delta.get("tool_calls") or []:
                lacking = _add(pieces, part)
                answer.problem = answer.problem or lacking
    answer.calls = [(call["name"], call["arguments"]) for call in pieces.values()]
    if not answer.problem and not ended:
        answer.problem = "no [DONE] at its end"
    if not answer.problem and not answer.finish:
        answer.problem = "no finish reason"
    return answer


def _add(pieces: dict[Any, dict[str, str]], part: Mapping[str, Any]) -> str:
    """Put a piece to its call; what it lacks."""
    function = part.get("function") or {}
    index = part.get("index")
    call = pieces.get(index)
    problem = "" if isinstance(index, int) else "a piece of a call without its index"
    if call is None:
        call = pieces.setdefault(index, {"name": "", "arguments": ""})
        if not part.get("id") or not function.get("name"):
            problem = problem or f"a call that begins without its {'id' if function.get('name') else 'name'}"
    call["name"] += str(function.get("name") or "")
    call["arguments"] += str(function.get("arguments") or "")
    return problem


def faults(query: Mapping[str, Any], answer: Answer) -> dict[str, str]:
    """What is wrong, by kind, with an example in words."""
    # In the middle of a call, or with pieces missing, everything else is wrong too, and this is why.
    if answer.finish == "length":
        return {"length": answer.text or ", ".join(name for name, _arguments in answer.calls) or "an empty text"}
    if answer.problem:
        return {"stream": answer.problem}
    found: dict[str, str] = {}
    if _CALL_AS_TEXT.search(answer.text):
        found["text"] = answer.text
    choice = query.get("tool_choice")
    if (choice == "required" or isinstance(choice, dict)) and not answer.calls and "text" not in found:
        found["forced"] = answer.text or "an empty text"
    offered = {
        tool["function"]["name"]: tool["function"].get("parameters") or {}
        for tool in query["tools"]
        if tool.get("function")
    }
    for name, text in answer.calls:
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            found.setdefault("json", f"{name} with {text!r}")
        elif name not in offered:
            found.setdefault("schema", f"{name}, which is not among them")
        elif misfit := unfit(arguments, offered[name]):
            found.setdefault("schema", f"{name}: {misfit}")
    return found


def unfit(value: Any, schema: Mapping[str, Any], place: str = "") -> str:
    """Where a value does not fit its JSON schema, empty when it does; of the schema language the part that tools use."""
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds] if kinds else []
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{place or 'it'} is {json.dumps(value)} instead of {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place or 'it'} is {json.dumps(value)}, which is not among {json.dumps(schema['enum'])}"
    if isinstance(value, dict):
        known = schema.get("properties") or {}
        missing = [name for name in schema.get("required") or [] if name not in value]
        if missing:
            return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
        foreign = sorted(value.keys() - known.keys()) if schema.get("additionalProperties") is False else []
        if foreign:
            return f"{' and '.join(foreign)} is not asked for"
        return next((w for name in known if name in value and (w := unfit(value[name], known[name], name))), "")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return next((w for item in value if (w := unfit(item, schema["items"], place))), "")
    return ""


def _is(value: Any, kind: str) -> bool:
    if kind == "null":
        return value is None
    if isinstance(value, bool) and kind in ("integer", "number"):
        return False
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))


def _arguments(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cut(text: str, width: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
