# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the engine says about its memory while it starts, in every form of its log lines. Private to this collection: may change at any time.

Forms of releases 0.6 to 0.33 on GPU and CPU. Prefixes (process names, containers, journal time stamps) do not matter, and a
line may be a JSON record that carries the text in a field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from .layout import size_meaning
from .measured import Measurement
from .units import from_gib

_N = r"(-?[\d,]*\.?\d+)"
_START = re.compile(r"vLLM API server version|█.*\bversion |Initializing an? (?:V\d )?LLM engine")
_VERSION = re.compile(r"(?:vLLM API server version|█.*\bversion|LLM engine \(v)\s*([0-9][\w.+-]*)")


@dataclass(frozen=True)
class Refusal:
    """The start was refused: less memory available than the share asks for. Bytes, as printed in GiB."""

    available: int
    total: int
    utilization: float
    needed: int


@dataclass(frozen=True)
class TooLong:
    """One request of the full length does not fit.

    Attributes:
        length: that length in tokens.
        needed: bytes it needs, None if the line does not say.
        available: bytes of the cache, None if the line does not say.
        estimate: the longest length that would fit, None if the line does not say.
    """

    length: int
    needed: int | None = None
    available: int | None = None
    estimate: int | None = None


@dataclass(frozen=True)
class StartFigures:
    """Figures of the last start in a log. None means that the log does not say; sizes in bytes.

    Attributes:
        version: the build as it names itself, empty if it does not.
        refusal: set if the start-up check refused the start.
        available: memory for the cache of each rank, in the order of the log; may be negative.
        kv_tokens: the N of "KV cache size: N tokens"; see ``meaning``.
        concurrency: full-length requests that fit.
        max_model_len: the length that the concurrency is given for.
        blocks: number of blocks.
        device: ``GPU``, ``CPU`` or whatever stands before "KV cache size".
        weights: "Model loading took", the largest rank's.
        load_seconds: duration of it.
        graph_estimate: estimated memory of the graphs; may be negative.
        graph_actual: what they really took.
        equivalent_utilization: (given, equivalent without the estimate).
        state_blocks: (max_num_seqs, blocks) of a refusal because of recurrent state.
        too_long: set if a full-length request does not fit.
        no_blocks: True if there is no memory for any block.
        released_meanwhile: (free at first, free later) if another process released memory while the engine measured.
        engine_failed: True if the engine core gave up.
    """

    version: str = ""
    refusal: Refusal | None = None
    available: tuple[int, ...] = ()
    kv_tokens: int | None = None
    concurrency: float | None = None
    max_model_len: int | None = None
    blocks: int | None = None
    device: str = ""
    weights: int | None = None
    load_seconds: float | None = None
    graph_estimate: int | None = None
    graph_actual: int | None = None
    equivalent_utilization: tuple[float, float] | None = None
    state_blocks: tuple[int, int] | None = None
    too_long: TooLong | None = None
    no_blocks: bool = False
    released_meanwhile: tuple[int, int] | None = None
    engine_failed: bool = False

    @property
    def kv_bytes(self) -> int | None:
        """Memory of the rank with the least, which decides for all."""
        return min(self.available, default=None)

    @property
    def meaning(self) -> str:
        """What ``kv_tokens`` counts: ``concurrency``, ``blocks`` or ``unknown`` (see ``layout.size_meaning``)."""
        return size_meaning(self.version, self.kv_tokens or 0, self.concurrency or 0.0, self.max_model_len or 0)

    @property
    def capacity(self) -> int | None:
        """Tokens in full-length requests: comparable over all builds. None if the log does not say enough."""
        if self.concurrency is None or self.max_model_len is None:
            return self.kv_tokens if self.meaning == "concurrency" else None
        if self.meaning == "concurrency" and self.kv_tokens is not None:
            return self.kv_tokens
        return round(self.concurrency * self.max_model_len)

    def measurement(self, requested: int = 0) -> Measurement | None:
        """These figures for the next plan, None if they are not complete.

        Args:
            requested: bytes of total x utilization of that start, 0 if not known.
        """
        if self.kv_bytes is None or self.kv_bytes <= 0 or not self.concurrency or not self.max_model_len:
            return None
        tokens = self.kv_tokens if self.meaning == "concurrency" and self.kv_tokens else 0
        return Measurement(
            self.kv_bytes, self.concurrency, self.max_model_len, requested, tokens, blocks=self.blocks or 0
        )


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _count(text: str) -> int:
    return int(text.replace(",", ""))


def _refused(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    free, total, utilization, needed = (_number(part) for part in match.groups())
    return replace(figures, refusal=Refusal(from_gib(free), from_gib(total), utilization, from_gib(needed)))


def _available(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    size = from_gib(_number(match[1]))
    return replace(figures, available=(*figures.available, size))


def _size(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    return replace(figures, device=match[1], kv_tokens=_count(match[2]))


def _concurrency(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    return replace(figures, max_model_len=_count(match[1]), concurrency=_number(match[2]))


def _weights(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    size = max(from_gib(_number(match[1])), figures.weights or 0)
    seconds = max(_number(match[2]), figures.load_seconds or 0.0) if match[2] else figures.load_seconds
    return replace(figures, weights=size, load_seconds=seconds)


def _too_long(figures: StartFigures, match: re.Match[str]) -> StartFigures:
    line = match.string
    needed = re.search(_N + r" GiB KV cache is needed", line)
    available = re.search(r"available KV cache memory \(?" + _N + r" GiB", line)
    estimate = re.search(r"estimated maximum model length is ([\d,]+)", line)
    return replace(
        figures,
        too_long=TooLong(
            _count(match[1]),
            from_gib(_number(needed[1])) if needed else None,
            from_gib(_number(available[1])) if available else None,
            _count(estimate[1]) if estimate else None,
        ),
    )


def _set(name: str, convert: Callable[[re.Match[str]], Any]) -> Callable[[StartFigures, re.Match[str]], StartFigures]:
    return lambda figures, match: replace(figures, **{name: convert(match)})


def _size_of(group: int) -> Callable[[re.Match[str]], int]:
    return lambda match: from_gib(_number(match[group]))


_RULES: tuple[tuple[re.Pattern[str], Callable[[StartFigures, re.Match[str]], StartFigures]], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), act)
    for pattern, act in (
        (rf"(?:Free memory on device(?: \S+)?|Available memory on node \d+) \({_N}/{_N} GiB\) on startup is less than .*?"
         rf"utilization \({_N}, {_N} GiB\)", _refused),
        (rf"Available KV cache memory: {_N} GiB", _available),
        (rf"(?:Auto|Explicitly) set \({_N}/{_N}\) GiB for KV cache", _available),
        (r"(\w+) KV cache size: ([\d,]+) tokens", _size),
        (rf"Maximum concurrency for ([\d,]+) tokens per request: {_N}x", _concurrency),
        (rf"Model loading took {_N} Gi?B(?: memory)?(?: and {_N} seconds)?", _weights),
        (rf"Estimated CUDA graph memory: {_N} GiB", _set("graph_estimate", _size_of(1))),
        (rf"CUDA graph pool memory: {_N} GiB \(actual\)", _set("graph_actual", _size_of(1))),
        (rf"CUDA graph pool memory: .*?{_N} GiB \(estimated\)", _set("graph_estimate", _size_of(1))),
        (rf"gpu-memory-utilization={_N} is equivalent to \D*{_N}", _set(
            "equivalent_utilization", lambda match: (_number(match[1]), _number(match[2].rstrip("."))))),
        (r"max_num_seqs \((\d+)\) exceeds available Mamba cache blocks \((\d+)\)", _set(
            "state_blocks", lambda match: (int(match[1]), int(match[2])))),
        (r"max seq len \(([\d,]+)\)", _too_long),
        (r"# \w+ blocks: ([\d,]+), # \w+ blocks: [\d,]+", _set("blocks", lambda match: _count(match[1]))),
        (r"maximum number of tokens that can be stored in KV cache \(([\d,]+)\)", _set(
            "kv_tokens", lambda match: _count(match[1]))),
        (r"No available memory for the cache blocks", _set("no_blocks", lambda match: True)),
        (rf"Initial free memory {_N} GiB, current free memory {_N} GiB", _set(
            "released_meanwhile", lambda match: (from_gib(_number(match[1])), from_gib(_number(match[2]))))),
        (r"Engine core initialization failed", _set("engine_failed", lambda match: True)),
    )
)  # fmt: skip


def read_start(lines: Iterable[str]) -> StartFigures:
    """The figures of the last start in a log; lines that say nothing of memory are passed over.

    Args:
        lines: the log, oldest first. A line that begins a new start drops what earlier starts said.
    """
    figures = StartFigures()
    for line in lines:
        for text in _texts(line):
            if _START.search(text):
                version = _VERSION.search(text)
                same = figures.version and not (figures.available or figures.refusal or figures.kv_tokens)
                named = version[1].rstrip(".") if version else ""
                figures = StartFigures(version=named or (figures.version if same else ""))
            for pattern, act in _RULES:
                match = pattern.search(text)
                if match:
                    figures = act(figures, match)
    return figures


def _texts(line: str) -> Iterator[str]:
    """The line itself, or what stands before a JSON record and the texts inside it."""
    begin = line.find("{")
    if begin >= 0 and line.rstrip().endswith("}"):
        try:
            record = json.loads(line[begin:])
        except ValueError:
            record = None
        if isinstance(record, dict):
            yield line[:begin]
            yield from (text for value in record.values() if isinstance(value, str) for text in value.splitlines())
            return
    yield line
