# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A start against its plan, and one build against another. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .startup_log import StartFigures
from .units import from_gib, say_gib

SHORTFALL = 0.15
"""Share below the plan that fails a start by default: 1 GiB of a 13 GiB cache is 8 %, twice that is no noise any more."""

GRAPHS_OVER = from_gib(1.0)
"""A graph estimate this far above what the graphs took is worth a word: it is cache that was given away."""


@dataclass(frozen=True)
class Outcome:
    """The judgement of one start.

    Attributes:
        verdict: ``ok``, ``short`` (cache too far below plan), ``negative`` (no memory for the cache, or a negative graph
            estimate, which makes the cache larger than the memory behind it) or ``unmeasured``.
        share: measured / planned requests, 0 if unmeasured.
        words: the reasons, one sentence per entry; may also hold remarks on a good start.
    """

    verdict: str
    share: float
    words: tuple[str, ...]


def judge_start(planned_requests: float, figures: StartFigures, shortfall: float = SHORTFALL) -> Outcome:
    """Compares full-length requests, the one figure that means the same in all builds.

    Args:
        planned_requests: the plan's number, above 0.
        figures: what the start said.
        shortfall: share below plan that is still good, 0 to 1.
    """
    words: list[str] = []
    graphs, actual = figures.graph_estimate, figures.graph_actual
    if graphs is not None and actual is not None and graphs - actual >= GRAPHS_OVER:
        words.append(
            f"graphs were estimated at {say_gib(graphs, 2)} and took {say_gib(actual, 2)}: the rest is lost cache"
        )
    if (figures.kv_bytes is not None and figures.kv_bytes <= 0) or figures.no_blocks:
        left = "" if figures.kv_bytes is None else f": {say_gib(figures.kv_bytes, 2)} were left"
        return Outcome("negative", 0.0, (f"no memory for the cache{left}", *words))
    if graphs is not None and graphs < 0:
        reason = f"the graph estimate is {say_gib(graphs, 2)}; a negative one makes the cache larger than its memory"
        return Outcome("negative", 0.0, (reason, *words))
    if not figures.concurrency:
        return Outcome("unmeasured", 0.0, ("the start did not say how many full-length requests fit", *words))
    part = figures.concurrency / planned_requests
    if part < 1 - shortfall:
        reason = f"{figures.concurrency:.2f} full-length requests fit, {planned_requests:.2f} were planned: {part:.0%}"
        return Outcome("short", part, (reason, *words))
    return Outcome("ok", part, tuple(words))


def same_capacity(one: StartFigures, other: StartFigures, tolerance: float = 0.01) -> bool | None:
    """Whether two starts hold equally much, whatever their builds mean by "tokens"; None if one does not say."""
    if not one.capacity or not other.capacity:
        return None
    return abs(one.capacity - other.capacity) <= tolerance * max(one.capacity, other.capacity)


def settled(samples: Sequence[int], tolerance: int = from_gib(0.1)) -> bool:
    """True once the last two samples of the available memory (bytes) are equal, within a tolerance.

    A stopped engine's memory comes back within seconds to more than a minute; before that a start may be refused.
    """
    return len(samples) >= 2 and abs(samples[-1] - samples[-2]) <= tolerance
