# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of one engine on one host. Private to this collection: may change at any time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .grouping import make_layout
from .host import HostMemory
from .layout import Layout, Settings
from .measured import START_ONCE, Measurement, RequestCost, cost_of_layout, cost_of_measurements, reproduces
from .shape import ModelShape
from .units import LayoutUnknown, PlanError, from_gib, hundredths_above, hundredths_below, share
from .weights import Weights

OVERHEAD = from_gib(5.3)
"""Activations, graphs and runtime inside the share, before the first start. Source: 4 to 6 GiB in logs of one GB10, 4,096
tokens per batch; more with larger batches."""

ESTIMATE_ERROR = from_gib(1.0)
"""Error of the cache's bytes before this build was ever measured."""

REPEAT_ERROR = from_gib(0.7)
"""Error of the cache's bytes after a measured start: two starts differ by 0.5 to 0.9 GiB, as the device is measured whole."""


@dataclass(frozen=True)
class EngineNeed:
    """What one rank takes from its share before any cache. Bytes.

    Attributes:
        weights: weights of one rank.
        overhead: activations, graphs and runtime.
        error: error of the sum, in both directions.
        measured: True if it comes from an earlier start.
    """

    weights: Weights
    overhead: int = OVERHEAD
    error: int = ESTIMATE_ERROR
    measured: bool = False

    @property
    def size(self) -> int:
        """Weights and overhead together."""
        return self.weights.size + self.overhead


def engine_need(weights: Weights, starts: Sequence[Measurement] = (), overhead: int = OVERHEAD) -> EngineNeed:
    """The need of an engine: from the last start that says what it requested, else from the weights and an estimate."""
    for start in reversed(starts):
        if start.overhead is not None:
            return EngineNeed(weights, start.overhead - weights.size, REPEAT_ERROR, measured=True)
    return EngineNeed(weights, overhead)


@dataclass(frozen=True)
class Variant:
    """One way to run the model: alone on a host, or as one rank of a pair.

    Attributes:
        settings: how the engine is started.
        need: what a rank takes before any cache.
        cost: bytes of one full-length request on each rank.
        layout: the computed layout; None if it is not known or a measured start contradicts it.
        note: why ``layout`` is None, in words.
    """

    settings: Settings
    need: EngineNeed
    cost: RequestCost
    layout: Layout | None = None
    note: str = ""

    def bytes_for(self, requests: float, tokens: int) -> int:
        """Bytes of cache on each rank that hold what was asked for."""
        if self.layout is not None:
            return self.layout.bytes_for(requests, tokens)
        return math.ceil(max(requests, tokens / self.settings.max_model_len, 1) * self.cost.expected)


def make_variant(
    shape: ModelShape | None, settings: Settings, need: EngineNeed, starts: Sequence[Measurement] = ()
) -> Variant:
    """The computed layout where it holds, the measured cost of a request where it does not.

    Args:
        shape: the model; None for a family that ``read_shape`` does not know.
        settings: how the engine is started.
        need: what a rank takes before any cache.
        starts: earlier starts of this image, checkpoint and topology, oldest first.

    Raises:
        PlanError: the layout is not known and nothing was measured.
    """
    note = "the cache layout of this model is not known"
    try:
        layout = None if shape is None else make_layout(shape, settings)
    except LayoutUnknown as error:
        if not starts:
            raise LayoutUnknown(f"{error}; {START_ONCE}", error.key) from error
        layout, note = None, str(error)
    if layout is not None:
        if all(reproduces(layout, start) for start in starts[-1:]):
            return Variant(settings, need, cost_of_layout(layout), layout)
        note = "the last start contradicts the computed layout, so this build has one of its own"
    return Variant(settings, need, cost_of_measurements(starts, settings.max_model_len), None, note)


@dataclass(frozen=True)
class Demand:
    """What the operator asks of each copy (or of the pair).

    Attributes:
        full_requests: requests of full length at the same time, above 0.
        tokens: KV tokens in all, 0 for no wish.
        max_num_seqs: sequences that may run at once, at least 1.
    """

    full_requests: float = 1.0
    tokens: int = 0
    max_num_seqs: int = 12

    def __post_init__(self) -> None:
        for name in ("full_requests", "max_num_seqs"):
            if getattr(self, name) <= 0:
                raise PlanError(f"{name} is {getattr(self, name)}, expected more than 0", name)
        if self.tokens < 0:
            raise PlanError(f"tokens is {self.tokens}, expected at least 0", "tokens")


@dataclass(frozen=True)
class HostPlan:
    """What one host gives and gets. Sizes in bytes, utilization in hundredths.

    Attributes:
        host: its name.
        utilization: planned share.
        lowest: smallest utilization that holds the demand.
        highest: largest utilization that leaves the rest of the box what it needs.
        limit: what limits ``highest``, in words.
        requested: bytes of the share.
        kv_bytes: expected bytes of the cache; negative if the weights do not fit.
        blocks: blocks of the cache, 0 without a known layout.
        requests: full-length requests that fit, with its lower and upper figure.
        requests_low: see ``requests``.
        requests_high: see ``requests``.
        tokens: KV tokens (full-length requests x length), as recent builds report them.
        rest: left for other work under load.
        free: left after the declared other work.
        max_num_seqs: the wish, lowered to what the engine would accept.
        byte_mode: ``--kv-cache-memory-bytes`` for the same cache; 0 without one.
        byte_mode_utilization: the utilization to pass with it, as the start-up check stays on.
        holds: True if the demand is met and the rest of the box keeps what it needs.
    """

    host: str
    utilization: int
    lowest: int
    highest: int
    limit: str
    requested: int
    kv_bytes: int
    blocks: int
    requests: float
    requests_low: float
    requests_high: float
    tokens: int
    rest: int
    free: int
    max_num_seqs: int
    byte_mode: int
    byte_mode_utilization: int
    holds: bool


def plan_host(host: HostMemory, variant: Variant, demand: Demand, utilization: int | None = None) -> HostPlan:
    """Plans one engine on one host.

    Args:
        host: the host.
        variant: how the engine runs there.
        demand: what is asked of it.
        utilization: a value in hundredths to judge; None lets the plan propose the largest that the host can give.

    Raises:
        PlanError: ``utilization`` is outside 1 to 99.
    """
    highest, limit = host.highest()
    if utilization is not None and not 1 <= utilization <= 99:
        raise PlanError(f"{host.name}: utilization {utilization / 100:.2f} is outside 0.01 to 0.99", "utilization")
    used = highest if utilization is None else utilization
    spent = variant.need.size + host.drift
    wanted = variant.bytes_for(demand.full_requests, demand.tokens)
    lowest = hundredths_above(spent + wanted, host.total)
    requested = share(host.total, used)
    kv_bytes = requested - spent
    layout, cost = variant.layout, variant.cost
    blocks = layout.blocks(kv_bytes) if layout else 0
    requests = layout.concurrency(blocks) if layout else max(0, kv_bytes) / cost.expected
    start = (
        used if host.available is None else min(used, hundredths_below(host.available - host.start_margin, host.total))
    )
    return HostPlan(
        host.name,
        used,
        lowest,
        highest,
        limit,
        requested,
        kv_bytes,
        blocks,
        requests,
        min(requests, max(0, kv_bytes - variant.need.error) / cost.high),
        max(requests, max(0, kv_bytes + variant.need.error) / cost.low),
        layout.tokens(blocks) if layout else int(requests * variant.settings.max_model_len),
        host.rest(used),
        host.rest(used) - host.other_bytes,
        min(demand.max_num_seqs, layout.max_num_seqs(blocks)) if layout else demand.max_num_seqs,
        blocks * layout.block_bytes if layout else max(0, kv_bytes),
        start,
        lowest <= used <= highest,
    )
