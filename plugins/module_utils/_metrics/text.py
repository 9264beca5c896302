# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The text of a metrics page as samples, or why it is none.

Private to this collection: may change at any time. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass


class MetricsError(ValueError):
    """A page or a set of readings that cannot be right; the message says why."""


@dataclass(frozen=True)
class Sample:
    """One line. Values are as printed: whole numbers up to 2**53 are exact, NaN and infinities are possible."""

    labels: dict[str, str]
    value: float


_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)"
    r'(?:\{(?P<labels>(?:[^"{}]|"(?:\\.|[^"\\])*")*)\})?'
    r"[ \t]+(?P<value>[^\s_]+)(?:[ \t]+-?\d+)?\s*"
)
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:\\.|[^"\\])*)"\s*(?:,|$)')
_ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


def parse(text: str, wanted: Collection[str]) -> dict[str, list[Sample]]:
    """The samples of the wanted names, in their order; the rest of the page is only looked at for its form.

    Raises:
        MetricsError: the page is cut off, is no metrics page, or says something twice.
    """
    if not text.endswith("\n"):
        raise MetricsError("the page ends within a line: it was cut off" if text else "the page is empty")
    found: dict[str, list[Sample]] = {}
    seen = set()
    for number, line in enumerate(text.split("\n"), 1):
        if not line or line[0] == "#" or not line.strip():
            continue
        begin = _NAME.match(line)
        if begin is None:
            raise MetricsError(f"line {number} is not of a metrics page: {line[:60]!r}")
        if begin[0] not in wanted:
            continue
        sample = _sample(line, number)
        key = (begin[0], *sorted(sample.labels.items()))
        if key in seen:
            raise MetricsError(f"line {number} says {begin[0]} a second time with the same labels: two pages in one")
        seen.add(key)
        found.setdefault(begin[0], []).append(sample)
    return found


def _sample(line: str, number: int) -> Sample:
    match = _SAMPLE.fullmatch(line)
    if match is None:
        raise MetricsError(f"line {number} cannot be read: {line[:60]!r}")
    try:
        return Sample(_labels(match["labels"] or ""), float(match["value"]))
    except ValueError:
        raise MetricsError(f"line {number} cannot be read: {line[:60]!r}") from None


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text.rstrip()):
        match = _LABEL.match(text, place)
        if match is None or match[1] in labels:
            raise ValueError(text)
        labels[match[1]] = re.sub(r"\\.", lambda part: _ESCAPED.get(part[0], part[0]), match[2])
        place = match.end()
    return labels
