# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cache block costs and what a request needs. Private to this collection: may change at any time.

``grouping`` turns a model's shape into a ``Layout``; the methods here answer everything else from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .kv_dtype import release
from .shape import AttentionLayers
from .units import PlanError, ceil_div

CACHE_MODES = ("none", "align", "all")
# From 0.20.1 on, "KV cache size: N tokens" is concurrency x length; before, it was a count of whole blocks.
_NEW_SIZE = (0, 20, 1)
_SEVERAL_BATCHES_SINCE = (0, 26, 0)


def batches_in_flight(version: str = "", asynchronous: bool = True) -> int:
    """Batches that windows must hold at once, without pipeline stages.

    Args:
        version: the build. Up to 0.25 it is one; an unknown build counts as a recent one, which needs more cache.
        asynchronous: False with ``--no-async-scheduling`` on the V1 runner.
    """
    build = release(version)
    if build is not None and build < _SEVERAL_BATCHES_SINCE:
        return 1
    return 2 if asynchronous else 1


@dataclass(frozen=True)
class Settings:
    """How the engine is started, as far as its cache depends on it.

    Attributes:
        max_model_len: longest request in tokens, at least 1.
        kv_dtype: resolved type of the cache (see ``kv_dtype.token_bytes``), not ``auto``.
        ranks: tensor parallel size, at least 1.
        context_ranks: decode context parallel size, at least 1.
        draft_tokens: tokens drafted per step, 0 without drafting.
        drafter: attention layers of a separate drafter model, used instead of the model's own draft head; None without one.
            They are a kind of their own unless they equal one of the model's.
        cache_mode: what recurrent layers keep: ``none`` (no prefix caching), ``align`` (prefix caching; the only other
            form from 0.32 on) or ``all`` (0.17 to 0.29).
        block_size: tokens of one block as the attention backend wants it, before any alignment with recurrent layers
            (16 on a GB10 with the default backends, 64 or 128 with B12X, 64 with sparse MLA, 128 on a CPU).
        batched_tokens: ``--max-num-batched-tokens``; windows must hold a batch in flight.
        batches: batches in flight, see ``batches_in_flight``.
        model_bytes: bytes of an element of the model's own type, 2 or 4.
        version: the build, empty if unknown; old builds group a little differently.
    """

    max_model_len: int
    kv_dtype: str = "bf16"
    ranks: int = 1
    context_ranks: int = 1
    draft_tokens: int = 0
    drafter: AttentionLayers | None = None
    cache_mode: str = "align"
    block_size: int = 16
    batched_tokens: int = 2048
    batches: int = 1
    model_bytes: int = 2
    version: str = ""

    def __post_init__(self) -> None:
        for name, least in (("max_model_len", 1), ("ranks", 1), ("context_ranks", 1), ("draft_tokens", 0),
                            ("block_size", 1), ("batched_tokens", 1), ("batches", 1)):  # fmt: skip
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise PlanError(f"{name} is {value!r}, expected a whole number of at least {least}", name)
        if self.cache_mode not in CACHE_MODES:
            raise PlanError(
                f"cache_mode is {self.cache_mode!r}, expected one of {', '.join(CACHE_MODES)}", "cache_mode"
            )


@dataclass(frozen=True)
class Group:
    """Layers that share one block table per request.

    Attributes:
        kind: ``full``, ``sliding``, ``chunked``, ``state`` or ``ring`` (raw indexer keys).
        block_size: tokens of one block of this group.
        window: tokens looked back, for sliding and chunked layers.
        times: how many groups of this form there are.
    """

    kind: str
    block_size: int
    window: int = 0
    times: int = 1

    def blocks(self, length: int, settings: Settings) -> int:
        """Blocks that one request of ``length`` tokens needs in one such group."""
        drafts = settings.draft_tokens
        if self.kind == "ring":
            return 1
        if self.kind == "state":
            if settings.cache_mode == "all":
                return ceil_div(length, self.block_size) + drafts
            return (1 if settings.cache_mode == "none" else 2) + drafts
        in_flight = settings.batched_tokens * settings.batches
        if self.kind == "sliding":
            return ceil_div(min(self.window - 1 + in_flight, length), self.block_size) + 1
        if self.kind == "chunked":
            return ceil_div(min(self.window + in_flight, length), self.block_size)
        return ceil_div(ceil_div(length, settings.context_ranks), self.block_size)


@dataclass(frozen=True)
class Layout:
    """The cache of one model under one set of settings, on each rank.

    Attributes:
        groups: all groups; they draw on one pool of blocks.
        block_bytes: bytes of one block of the pool, over all layers of the largest group.
        settings: what it was made for.
        evidence: ``exact`` if real starts, or the engine's own functions, confirm this family to the token, ``ratio`` if they
            confirm it except for the bytes of a block, ``rule`` if it only follows the engine's documented rules.
    """

    groups: tuple[Group, ...]
    block_bytes: int
    settings: Settings
    evidence: str = "exact"

    @property
    def block_size(self) -> int:
        """Tokens of the smallest attention block: what the engine reports as its block size."""
        return min(group.block_size for group in self.groups if group.kind not in ("state", "ring"))

    @property
    def has_state(self) -> bool:
        """True if some layers keep a recurrent state."""
        return any(group.kind == "state" for group in self.groups)

    def blocks(self, kv_bytes: int) -> int:
        """Blocks that fit into so many bytes on each rank; a negative budget holds none."""
        return max(0, kv_bytes // self.block_bytes)

    def blocks_per_request(self, length: int = 0) -> int:
        """Blocks of one request, by default of the longest one allowed."""
        length = length or self.settings.max_model_len
        return sum(group.times * group.blocks(length, self.settings) for group in self.groups)

    def request_bytes(self, length: int = 0) -> int:
        """Bytes of one request on each rank."""
        return self.blocks_per_request(length) * self.block_bytes

    def concurrency(self, blocks: int) -> float:
        """Full-length requests that so many blocks hold: the engine's "Maximum concurrency"."""
        return blocks / self.blocks_per_request()

    def tokens(self, blocks: int) -> int:
        """KV tokens as builds from 0.20.1 on report them; with the engine's own float arithmetic, so equal to the token."""
        return int(self.concurrency(blocks) * self.settings.max_model_len)

    def counted_tokens(self, blocks: int) -> int:
        """KV tokens as builds up to 0.20.0 report them: too small for mixed layers, not a capacity."""
        groups = sum(group.times for group in self.groups)
        return blocks // groups * self.block_size * self.settings.context_ranks

    def bytes_for(self, requests: float, tokens: int = 0) -> int:
        """Bytes of the pool that hold what was asked for, with the one block that the engine keeps for itself.

        Args:
            requests: full-length requests at the same time.
            tokens: KV tokens in all, in the sense of ``tokens``; the larger demand counts.
        """
        wanted = max(requests, tokens / self.settings.max_model_len, 1)
        return (math.ceil(round(wanted * self.blocks_per_request(), 6)) + 1) * self.block_bytes

    def longest(self, blocks: int) -> int:
        """The longest request in tokens, up to ``max_model_len``, that fits beside the engine's own block; 0 if none."""
        low, high = 0, self.settings.max_model_len
        while low < high:
            middle = (low + high + 1) // 2
            if self.blocks_per_request(middle) < blocks:
                low = middle
            else:
                high = middle - 1
        return low

    def max_num_seqs(self, blocks: int) -> int:
        """Upper bound of ``--max-num-seqs``.

        With recurrent layers the engine refuses to start above the number of blocks. Without them a sequence needs at
        least one block per group, besides the engine's own block.
        """
        if self.has_state:
            return blocks
        return max(0, blocks - 1) // self.blocks_per_request(1)

    def check_max_num_seqs(self, blocks: int, asked: int) -> None:
        """Refuses a ``--max-num-seqs`` that the engine would refuse after it loaded the weights.

        Raises:
            PlanError: it is above the bound; the text says the largest that works.
        """
        bound = self.max_num_seqs(blocks)
        if asked > bound:
            raise PlanError(
                f"max_num_seqs {asked} does not fit into {blocks} cache blocks; use at most {bound}", "max_num_seqs"
            )


def size_meaning(version: str, tokens: int = 0, concurrency: float = 0.0, length: int = 0) -> str:
    """What "KV cache size: N tokens" means in a start-up log.

    Args:
        version: the build, may be empty or a development version.
        tokens: the N of the log.
        concurrency: the "Maximum concurrency" beside it.
        length: the length it was given for, in tokens.

    Returns:
        ``concurrency`` (N is concurrency x length), ``blocks`` (N counts blocks) or ``unknown``. The numbers decide where
        they can, since one kind of layer gives the same in both senses.
    """
    if tokens and concurrency and length:
        capacity = concurrency * length
        return "concurrency" if abs(tokens - capacity) <= 0.006 * length + 1 else "blocks"
    build = release(version)
    if build is None:
        return "unknown"
    return "concurrency" if build >= _NEW_SIZE else "blocks"
