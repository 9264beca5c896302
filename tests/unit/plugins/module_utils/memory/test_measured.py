# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning from the figures of earlier starts."""

from __future__ import annotations

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import budget, grouping, layout, measured, shape, units
from ansible_collections.gb10.vllm.plugins.module_utils._memory.weights import Weights
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

GIB = units.GIB


def start(gib: float, concurrency: float, length: int, **more: int) -> measured.Measurement:
    return measured.Measurement(units.from_gib(gib), concurrency, length, **more)


def test_same_length_is_taken_as_it_is() -> None:
    # a fork's figure: 412,004 tokens in 8.22 GiB at 32,768
    cost = measured.cost_of_measurements([start(8.22, 12.57, 32768, tokens=412004)], 32768)
    assert cost.source == "measured"
    assert cost.expected == pytest.approx(8.22 * GIB / (412004 / 32768))
    assert cost.error_share == pytest.approx(0.005 / 8.22, rel=0.01)
    assert cost.low < cost.expected < cost.high


def test_without_tokens_the_printed_concurrency_widens_the_bar() -> None:
    cost = measured.cost_of_measurements([start(8.22, 12.57, 32768)], 32768)
    assert cost.error_share == pytest.approx(0.005 / 8.22 + 0.005 / 12.57)
    known = measured.cost_of_measurements([start(8.22, 12.57, 32768, blocks=100)], 32768)
    assert known.error_share == pytest.approx(cost.error_share + 0.01)


def test_two_lengths_give_the_fixed_part() -> None:
    # two public starts of one machine: 90,841 tokens at 4,096 and 2,175,276 at 262,144, both in 32.08 GiB
    starts = [start(32.08, 22.18, 4096, tokens=90841), start(32.08, 8.3, 262144, tokens=2175276)]
    between = measured.cost_of_measurements(starts, 131072)
    slope = (starts[1].request_bytes - starts[0].request_bytes) / (262144 - 4096)
    fixed = starts[0].request_bytes - slope * 4096
    assert round(fixed / 2**20) == 1442
    assert round(slope) == 10068
    assert between.source == "measured, other length"
    assert between.expected == pytest.approx(fixed + slope * 131072)
    noise = sum(one.request_bytes * one.error_share for one in starts)
    reach = 1 + (262144 - 131072) / (262144 - 4096)
    assert between.high - between.expected == pytest.approx(noise * reach)
    assert between.expected - between.low == pytest.approx(noise * reach)


@pytest.mark.parametrize(("length", "low", "high"), [(16384, 0.5, 1.0), (65536, 1.0, 2.0)])
def test_one_other_length_gives_bounds(length: int, low: float, high: float) -> None:
    only = start(8.0, 8.0, 32768, tokens=262144)
    cost = measured.cost_of_measurements([only], length)
    assert cost.expected == only.request_bytes * high
    assert cost.low == pytest.approx(only.request_bytes * low, rel=0.01)
    assert cost.high == pytest.approx(cost.expected * (1 + only.error_share))
    assert cost.low == pytest.approx(only.request_bytes * low * (1 - only.error_share))


def test_a_shrinking_request_is_not_extrapolated() -> None:
    starts = [start(8.0, 1.0, 1000), start(8.0, 2.0, 2000)]
    assert measured.cost_of_measurements(starts, 4000).expected == pytest.approx(8 * GIB)


def test_nothing_to_plan_from() -> None:
    with pytest.raises(units.PlanError, match="start it once"):
        measured.cost_of_measurements([], 4096)
    with pytest.raises(units.PlanError, match="kv_bytes"):
        start(-0.39, 1.0, 4096)


def flash(length: int = 262144) -> tuple[shape.ModelShape, layout.Settings]:
    return shape.read_shape(models.FLASH_NEXT), layout.Settings(length, "fp8", draft_tokens=4)


def test_a_start_that_contradicts_the_layout_replaces_it() -> None:
    model, settings = flash()
    need = budget.engine_need(Weights(71 * GIB, "declared"))
    layout_says = grouping.make_layout(model, settings)
    good = start(18.6, 4.1, 262144, tokens=layout_says.tokens(layout_says.blocks(units.from_gib(18.6))))
    fork = start(18.6, 4.5, 262144, tokens=1179648)
    assert measured.reproduces(layout_says, good)
    assert not measured.reproduces(layout_says, fork)
    assert measured.reproduces(layout_says, start(18.6, 4.1, 262144))
    assert not measured.reproduces(layout_says, start(18.6, 4.5, 262144))
    assert measured.reproduces(layout_says, start(18.6, 99.0, 8192))
    assert budget.make_variant(model, settings, need, [fork, good]).layout == layout_says
    replaced = budget.make_variant(model, settings, need, [good, fork])
    assert replaced.layout is None
    assert "contradicts" in replaced.note
    assert replaced.cost.expected == pytest.approx(units.from_gib(18.6) / 4.5)


def test_an_unknown_family_is_planned_from_its_start() -> None:
    settings = layout.Settings(262144, "fp8")
    need = budget.engine_need(Weights(71 * GIB, "declared"))
    with pytest.raises(units.PlanError, match="no earlier start"):
        budget.make_variant(None, settings, need)
    variant = budget.make_variant(None, settings, need, [start(32.08, 8.3, 262144, tokens=2175276)])
    assert variant.layout is None
    assert variant.cost.source == "measured"


def test_the_last_start_that_names_its_share_gives_the_need() -> None:
    weights = Weights(71 * GIB, "declared")
    starts = [start(18.6, 4.1, 262144, requested=95 * GIB), start(18.0, 4.0, 262144, requested=95 * GIB)]
    need = budget.engine_need(weights, [*starts, start(17.0, 3.7, 262144)])
    assert (need.size, need.measured, need.error) == (77 * GIB, True, budget.REPEAT_ERROR)
    assert budget.engine_need(weights).size == 71 * GIB + budget.OVERHEAD
