# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two ways of doing the same under the same load, side by side. Pure: records of client.py in, figures out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Record = Mapping[str, Any]
WORDS = {
    "seconds": "seconds",
    "requests": "requests",
    "failed": "  of them failed",
    "how": "  how",
    "streams": "long streams",
    "cut": "  of them cut",
}


def failed(records: Iterable[Record]) -> Counter[str]:
    """How often each kind of failure came; a 200 that is not a whole answer is one."""
    lost = (entry for entry in records if not entry["complete"])
    return Counter("incomplete" if entry["status"] == 200 else str(entry["status"]) for entry in lost)


def row(requests: Iterable[Record], streams: Iterable[Record], seconds: float) -> dict[str, Any]:
    requests, streams = list(requests), list(streams)
    kinds = failed(requests)
    return {
        "seconds": round(seconds, 1),
        "requests": len(requests),
        "failed": kinds.total(),
        "how": ", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())) or "-",
        "streams": len(streams),
        "cut": failed(streams).total(),
    }


def table(rows: Mapping[str, Mapping[str, Any]], words: Mapping[str, str] | None = None) -> str:
    """One column per way, one line per figure."""
    lines = [["", *rows]]
    lines += [[text, *(str(figures[key]) for figures in rows.values())] for key, text in (words or WORDS).items()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
