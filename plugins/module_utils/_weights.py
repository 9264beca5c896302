# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a model's files are complete on a disk, judged from its own index.

Private to this collection: may change at any time. Pure: the reader of files is handed in.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


@dataclass
class Completeness:
    """`missing` and `partial` name files; complete when both are empty."""

    shards: int = 0
    missing: list[str] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not (self.missing or self.partial)


def expected_length(header: bytes) -> int | None:
    """Length in bytes of a safetensors file, from its first 8 bytes (little endian) and JSON header; None if cut short."""
    if len(header) < 8:
        return None
    size = int.from_bytes(header[:8], "little")
    if len(header) < 8 + size:
        return None
    try:
        tensors = json.loads(header[8 : 8 + size])
        ends = [entry["data_offsets"][1] for name, entry in tensors.items() if name != "__metadata__"]
        return 8 + size + int(max(ends, default=0))
    except (ValueError, AttributeError, KeyError, IndexError, TypeError):
        return None


def judge(
    read: Callable[[str], str | None], length: Callable[[str], int | None], header: Callable[[str], bytes]
) -> Completeness:
    """`read` gives a small file's text, `length` a file's bytes (None when missing), `header` its safetensors header."""
    result = Completeness()
    if read("config.json") is None:
        result.missing.append("config.json")
    index = read(INDEX)
    if index is not None:
        try:
            shards = sorted(set(json.loads(index)["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            result.partial.append(INDEX)
            return result
    else:
        shards = [SINGLE]
    result.shards = len(shards)
    for shard in shards:
        present = length(shard)
        if present is None:
            result.missing.append(shard)
        elif present != expected_length(header(shard)):
            result.partial.append(shard)
    return result
