# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache figures on the engine's metrics page (0.25 and later). Private to this collection: may change at any time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .measured import Measurement

_SERIES = re.compile(r'^vllm:cache_config_info\{((?:[^"}]|"(?:\\.|[^"\\])*")*)\}\s+\S+', re.MULTILINE)
_LABEL = re.compile(r'([A-Za-z_]\w*)="((?:\\.|[^"\\])*)"')
_ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}


@dataclass(frozen=True)
class CacheInfo:
    """One engine's ``vllm:cache_config_info``. None means that the build does not say.

    Attributes:
        labels: every label as it stands; the set changes with each release.
        engine: data parallel rank, ``"0"`` for a plain copy.
        block_size: tokens of one block.
        blocks: number of blocks.
        tokens: KV tokens, as in the log.
        concurrency: full-length requests that fit.
        kv_bytes: bytes of the cache on each rank, if it was given or resolved.
        utilization: the share that was asked for, 0 to 1.
    """

    labels: Mapping[str, str]
    engine: str
    block_size: int | None
    blocks: int | None
    tokens: int | None
    concurrency: float | None
    kv_bytes: int | None
    utilization: float | None

    def measurement(self, max_model_len: int, kv_bytes: int = 0, requested: int = 0) -> Measurement | None:
        """These figures for the next plan, None if they are not complete.

        Args:
            max_model_len: the engine's length in tokens.
            kv_bytes: bytes of the cache from the log, used if the metrics do not have them.
            requested: bytes of total x utilization of that start, 0 if not known.
        """
        exact = bool(self.kv_bytes)
        size = self.kv_bytes or kv_bytes
        if size <= 0 or not self.concurrency or not self.tokens:
            return None
        start = Measurement(size, self.concurrency, max_model_len, requested, self.tokens, blocks=self.blocks or 0)
        return Measurement(**{**vars(start), "rounding": 0}) if exact else start


def read_cache_info(exposition: str) -> tuple[CacheInfo, ...]:
    """Every engine's cache figures from the text of ``/metrics``; empty if the build does not have them."""
    return tuple(_info(_labels(match[1])) for match in _SERIES.finditer(exposition))


def _labels(text: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\.", lambda part: _ESCAPED.get(part[0], part[0]), value) for name, value in _LABEL.findall(text)
    }


def _info(labels: Mapping[str, str]) -> CacheInfo:
    def number(name: str) -> float | None:
        try:
            return float(labels[name])
        except (KeyError, ValueError):
            return None

    def count(name: str) -> int | None:
        value = number(name)
        return None if value is None else int(value)

    return CacheInfo(
        labels,
        labels.get("engine", "0"),
        count("block_size"),
        count("num_gpu_blocks"),
        count("kv_cache_size_tokens"),
        number("kv_cache_max_concurrency"),
        count("kv_cache_memory_bytes"),
        number("gpu_memory_utilization"),
    )
