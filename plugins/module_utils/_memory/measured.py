# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of an earlier start, and planning from them. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .layout import Layout
from .units import GIB, PlanError

_GIB_ROUNDING = GIB // 200
"""Half of the last digit of a GiB figure printed with two decimals."""

START_ONCE = "start it once with a small utilization, the next plan uses its figures"
"""The way out where the layout of a cache is not known."""


@dataclass(frozen=True)
class Measurement:
    """What one start of this image, checkpoint and topology reported.

    Attributes:
        kv_bytes: bytes of the cache on each rank (the smallest rank's).
        concurrency: its "Maximum concurrency"; comparable over all builds, unlike the number of tokens.
        max_model_len: tokens of one request that the concurrency was given for.
        requested: bytes of total x utilization of that start, 0 if not known.
        tokens: the logged number of tokens where it means concurrency x length, else 0; it sharpens the concurrency,
            which is only printed with two decimals.
        rounding: half of the last digit of ``kv_bytes`` as it was printed, in bytes; 0 for an exact figure.
        blocks: number of blocks, 0 if not known.
    """

    kv_bytes: int
    concurrency: float
    max_model_len: int
    requested: int = 0
    tokens: int = 0
    rounding: int = _GIB_ROUNDING
    blocks: int = 0

    def __post_init__(self) -> None:
        for name in ("kv_bytes", "concurrency", "max_model_len"):
            if getattr(self, name) <= 0:
                raise PlanError(f"a measurement with {name} {getattr(self, name)} says nothing to plan from", name)

    @property
    def request_bytes(self) -> float:
        """Bytes of one request of ``max_model_len``."""
        return self.kv_bytes / self._exact_concurrency

    @property
    def error_share(self) -> float:
        """Relative error of ``request_bytes`` from what was printed: 0.01 stands for 1 %."""
        printed = 0.5 / self.tokens if self.tokens else 0.005 / self.concurrency
        # the cache is a whole number of blocks; without their number one of about fifty may be cut off
        return self.rounding / self.kv_bytes + printed + (1 / self.blocks if self.blocks else 0.0)

    @property
    def _exact_concurrency(self) -> float:
        return self.tokens / self.max_model_len if self.tokens else self.concurrency

    @property
    def overhead(self) -> int | None:
        """Bytes of the share that did not become cache: weights, activations, graphs, runtime. None if not known."""
        return self.requested - self.kv_bytes if self.requested else None


@dataclass(frozen=True)
class RequestCost:
    """Bytes that one full-length request takes on each rank, with what it rests on.

    Attributes:
        low: smallest plausible figure.
        expected: the figure to plan with.
        high: largest plausible figure.
        source: ``layout`` (computed), ``measured`` or ``measured, other length``.
    """

    low: float
    expected: float
    high: float
    source: str

    @property
    def error_share(self) -> float:
        """The larger of the two distances from ``expected``, relative to it."""
        return max(self.high - self.expected, self.expected - self.low) / self.expected


_EVIDENCE_ERROR = {"exact": 0.0, "ratio": 0.06, "rule": 0.1}


def cost_of_layout(layout: Layout) -> RequestCost:
    """The computed cost. Its error is 0 for families that logs confirm to the token, 6 % or 10 % for the others."""
    size = float(layout.request_bytes())
    error = _EVIDENCE_ERROR[layout.evidence]
    return RequestCost(size * (1 - error), size, size * (1 + error), "layout")


def cost_of_measurements(starts: Sequence[Measurement], max_model_len: int) -> RequestCost:
    """The cost at a length, from earlier starts whose layout is not known.

    A request costs a fixed part (state, windows) and a part per token. Starts with two lengths fix both. From one start of
    another length only bounds follow: nothing is fixed, or everything is; the larger of both is planned.

    Raises:
        PlanError: there is no start to plan from.
    """
    if not starts:
        raise PlanError(f"no earlier start was measured; {START_ONCE}", "starts")
    last = starts[-1]
    same = next((start for start in reversed(starts) if start.max_model_len == max_model_len), None)
    if same is not None:
        size, error = same.request_bytes, same.error_share
        return RequestCost(size * (1 - error), size, size * (1 + error), "measured")
    other = next((start for start in reversed(starts) if start.max_model_len != last.max_model_len), None)
    if other is not None:
        slope = (last.request_bytes - other.request_bytes) / (last.max_model_len - other.max_model_len)
        size = last.request_bytes + slope * (max_model_len - last.max_model_len)
        noise = last.request_bytes * last.error_share + other.request_bytes * other.error_share
        reach = 1 + abs(max_model_len - last.max_model_len) / abs(last.max_model_len - other.max_model_len)
        if slope >= 0 and size > 0:
            return RequestCost(max(size - noise * reach, 1.0), size, size + noise * reach, "measured, other length")
    scaled = last.request_bytes * max_model_len / last.max_model_len
    low, high = sorted((scaled, last.request_bytes))
    return RequestCost(low * (1 - last.error_share), high, high * (1 + last.error_share), "measured, other length")


def reproduces(layout: Layout, start: Measurement) -> bool:
    """True if the layout explains a measured start within its printed rounding.

    If not, the build computes its cache in another way (a fork): plan from the measurement then.
    """
    if layout.settings.max_model_len != start.max_model_len:
        return True
    blocks = range(layout.blocks(start.kv_bytes - start.rounding), layout.blocks(start.kv_bytes + start.rounding) + 1)
    if start.tokens:
        return any(layout.tokens(count) == start.tokens for count in blocks)
    return any(abs(layout.concurrency(count) - start.concurrency) <= 0.0051 for count in blocks)
