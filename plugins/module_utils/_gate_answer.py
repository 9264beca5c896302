# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine said, whole or streamed, and what is wrong with it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A broken engine answers 200 all the same: with nothing, with one token again and again, with bytes that are no text, with a
finish reason "abort", or with a stream that ends in an error event. A thinking model may put all of its words into the
reasoning, in a field of its own or between tags in the text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

# A text of this length that consists of one piece for the most part is no accident, whatever the prompt was.
REPEATED_LENGTH = 16
_REPEATED = re.compile(r"(.{1,40}?)\1{5,}", re.DOTALL)
_FEWEST_WORDS = 12
# The commonest word of a sentence makes up a tenth of it.
_MOST_SHARE = 0.4
# Beyond this the shape of a text is known, and looking for repetition costs time.
_LOOKED_AT = 4000
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd\ufffe\uffff]")
_THOUGHT_FIELDS = ("reasoning_content", "reasoning")


@dataclass
class Said:
    """`text` is what a client shows; `thought` is what a thinking model said before."""

    text: str = ""
    thought: str = ""
    finish: str = ""
    pieces: int = 0

    def add(self, message: Any, finish: Any) -> None:
        """Add one message, or one piece of a streamed one."""
        if isinstance(message, dict):
            self.text += _string(message.get("content"))
            self.thought += next((_string(message[name]) for name in _THOUGHT_FIELDS if message.get(name)), "")
        self.finish = _string(finish) or self.finish
        self.pieces += 1

    def split(self) -> Said:
        """The same with the thoughts taken out of the text; a template may have opened them, or the end may be missing."""
        before, closed, after = self.text.rpartition("</think>")
        if closed:
            return Said(after.strip(), self.thought + before.replace("<think>", ""), self.finish, self.pieces)
        before, opened, after = self.text.partition("<think>")
        return Said(before.strip(), self.thought + (after if opened else ""), self.finish, self.pieces)


@dataclass(frozen=True)
class Wanted:
    """`expect` is a regular expression; `max_tokens` is what was asked for."""

    expect: str
    max_tokens: int


@dataclass(frozen=True)
class Problem:
    """`ours` when the question was at fault and not the engine."""

    words: str
    ours: bool = field(default=False)


def whole(content: Any) -> Said | Problem:
    """The answer of a request that was not streamed."""
    try:
        choice = content["choices"][0]
        message, finish = choice.get("message"), choice.get("finish_reason")
        if message is not None and not isinstance(message, dict):
            raise TypeError
    except (KeyError, IndexError, TypeError, AttributeError):
        return Problem("came back without choices")
    said = Said()
    said.add(message, finish)
    return said


def streamed(body: str) -> Said | Problem:
    """The answer of a streamed request from all that was received: pieces, no error, and the end that the protocol has."""
    said, ended = Said(), False
    for line in body.split("\n"):
        name, separator, value = line.partition(":")
        if not separator or name != "data":
            continue
        value = value.strip()
        if value == "[DONE]":
            ended = True
            break
        try:
            event = json.loads(value)
        except ValueError:
            return Problem(f"had an event that is no JSON: {shown(value)}")
        if not isinstance(event, dict) or event.get("error"):
            error = event.get("error") if isinstance(event, dict) else event
            message = error.get("message", error) if isinstance(error, dict) else error
            return Problem(f"carried an error event: {shown(str(message))}")
        for choice in event.get("choices") or []:
            if isinstance(choice, dict):
                said.add(choice.get("delta"), choice.get("finish_reason"))
    if not said.pieces:
        return Problem("had no pieces")
    if not ended:
        return Problem(f"broke off after {said.pieces} pieces")
    return said


def problem(said: Said, wanted: Wanted) -> Problem | None:
    """What is wrong with an answer, None when it is good."""
    if said.finish in ("abort", "error"):
        return Problem(f"ended with {said.finish}")
    parts = said.split()
    cut = said.finish == "length"
    for words in (parts.text, parts.thought):
        # the bound may have fallen into the middle of a character
        kept = words.rstrip("\ufffd") if cut else words
        if _NO_TEXT.search(kept):
            return Problem(f"holds characters that are no text: {shown(words)}")
        piece = repeated(kept)
        if piece:
            return Problem(f"repeats {piece!r} again and again: {shown(words)}")
    if re.search(wanted.expect, parts.text) or (not parts.text and re.search(wanted.expect, parts.thought)):
        return None
    if not parts.text and not parts.thought.strip():
        return Problem("is empty")
    if not parts.text and cut:
        return Problem(
            f"is empty because thinking took all of {wanted.max_tokens} tokens: raise vllm_gate_max_tokens, or switch "
            f"thinking off in the model's template; the thoughts began with {shown(parts.thought)}",
            ours=True,
        )
    return Problem(f"{shown(parts.text or parts.thought)} does not match {wanted.expect!r}")


def repeated(text: str) -> str:
    """The piece or word that makes up most of a text, empty when there is none."""
    text = text.strip()[:_LOOKED_AT]
    if len(text) < REPEATED_LENGTH:
        # "!!!!!!!!" is too short for an accident too, a word is not
        return text[0] if len(text) >= REPEATED_LENGTH / 2 and len(set(text)) == 1 else ""
    for match in _REPEATED.finditer(text.lower()):
        if match.end() - match.start() >= len(text) / 2:
            return match[1].strip() or match[1]
    words = re.findall(r"\S+", text.lower())
    if len(words) >= _FEWEST_WORDS:
        word, count = Counter(words).most_common(1)[0]
        return word if count >= len(words) * _MOST_SHARE else ""
    return ""


def complaint(body: str) -> str:
    """What an error answer says, in few words."""
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return shown(body) if body else ""
    return shown(str(error.get("message", error) if isinstance(error, dict) else error))


def shown(text: str, width: int = 80) -> str:
    """A text for a message: quoted, on one line, cut."""
    text = text.strip()
    return repr(text if len(text) <= width else text[: width - 1] + "…")


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
