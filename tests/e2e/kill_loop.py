# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which steps a loop of kills visits, what may be found after one, and how it is told. Pure: no lab, no clock."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

COLUMNS = ("PATH", "WAY OUT", "KILLED AFTER WRITE", "ITS LAST ACT", "FOUND", "WAY OUT TOOK")


def sample(steps: int, size: int, turn: int) -> list[int]:
    """So many of the steps 1 to `steps`, one from each equal part; as `turn` grows, every step has its turn."""
    size = min(size, steps)
    edges = [steps * part // size for part in range(size + 1)]
    return [low + turn % (high - low) + 1 for low, high in itertools.pairwise(edges)]


def numbers(wanted: str, steps: int, turn: int) -> Iterator[int]:
    """The writes to kill after: all of them until a run ends by itself, or a sample of so many of the first `steps`."""
    if wanted == "all":
        return itertools.count(1)
    return iter(sample(steps, int(wanted), turn))


def declared_window(events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the journal says that nobody is in front of clients: withdrawn in a switch, and nobody admitted since."""
    if not any(event["step"] == "begin" and event.get("path") == "switch" for event in events):
        return False
    steps = [event["step"] for event in events if event["step"] in ("withdrawn", "admitted")]
    return bool(steps) and steps[-1] == "withdrawn"


def last_act(events: Sequence[Mapping[str, Any]]) -> str:
    return f"{events[-1]['step']} of {events[-1]['host']}" if events else "none"


def table(rows: Iterable[Sequence[Any]], columns: Sequence[str] = COLUMNS) -> str:
    """Lines for people."""
    cells = [list(columns), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )
