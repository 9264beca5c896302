# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host: who claims what, what is admitted, which utilizations are usable."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import budget, host, layout, shape, units
from ansible_collections.gb10.vllm.plugins.module_utils._memory.weights import Weights
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

GIB = units.GIB
gib = units.from_gib


@pytest.mark.parametrize(
    ("size", "total", "below", "above"),
    [(29, 100, 29, 29), (57, 100, 57, 57), (58, 100, 58, 58), (5587, 11956, 46, 47), (-5, 100, 0, 0), (0, 7, 0, 0)],
)
def test_hundredths_are_exact(size: int, total: int, below: int, above: int) -> None:
    assert units.hundredths_below(size, total) == below
    assert units.hundredths_above(size, total) == above


def test_share_is_rounded_up_as_the_engine_does() -> None:
    assert (units.share(101, 50), units.share(100, 50), units.share(gib(119.56), 50)) == (51, 50, gib(59.78))


def test_refusal_by_available_memory() -> None:
    holders = [host.Claim("databases.service", gib(40)), host.Claim("build", gib(3.5))]
    refused = host.admit("spark1", gib(119.56), gib(55.87), 50, holders)
    assert not refused.ok
    assert (refused.largest, round(refused.missing / GIB, 2)) == (46, 3.91)
    for part in (
        "0.50",
        "59.78 GiB",
        "55.87 GiB",
        "3.91 GiB are missing",
        "0.46",
        "databases.service (40.0 GiB)",
        "build",
    ):
        assert part in refused.text
    assert host.admit("spark1", gib(119.56), gib(55.87), 46).ok


def test_advice_from_a_real_meminfo() -> None:
    available = 58_500_000 * 1024
    refused = host.admit("spark1", gib(119.56), available, 50)
    assert (refused.ok, refused.largest) == (False, 46)
    assert host.admit("spark1", gib(119.56), available, refused.largest).ok
    assert not host.admit("spark1", gib(119.56), available, refused.largest + 1).ok


def test_all_engines_of_a_host_are_summed() -> None:
    with pytest.raises(units.PlanError) as refused:
        host.check_shares("spark1", gib(121.63), {"chat": 42, "embed": 35}, gib(32), gib(6))
    for part in ("131.66 GiB", "chat 0.42", "embed 0.35", "other work 32.0 GiB", "system 6.0 GiB"):
        assert part in str(refused.value)
    assert host.check_shares("spark1", gib(121.63), {"chat": 36, "embed": 28}, gib(32), gib(6)) > 0


@pytest.mark.parametrize(
    ("more", "expected", "limit"),
    [
        ({}, 78, "rest of the box"),
        ({"others": (host.Claim("databases", gib(3)), host.Claim("site builds", gib(1.5)))}, 74, "rest of the box"),
        ({"others": (host.Claim("everything", gib(200)),)}, 0, "rest of the box"),
        ({"system": 0, "engine_outside": 0}, 80, "ceiling"),
        ({"system": 0, "engine_outside": 0, "ceiling": 90}, 90, "ceiling"),
        ({"available": gib(93)}, 73, "available at the start"),
        ({"available": 0}, 0, "available at the start"),
        ({"system": 0, "engine_outside": 0, "engines": (("embed", 10),)}, 70, "ceiling"),
    ],
)
def test_highest_utilization(more: dict[str, Any], expected: int, limit: str) -> None:
    value, reason = host.HostMemory("spark1", gib(121.69), **more).highest()
    assert value == expected
    assert limit in reason


def test_a_second_engine_takes_its_host_side_too() -> None:
    one = host.HostMemory("spark1", gib(121.69))
    two = host.HostMemory("spark1", gib(121.69), engines=(("embed", 10),))
    assert one.rest(60) - two.rest(60) == pytest.approx(units.share(one.total, 10) + host.ENGINE_OUTSIDE, abs=2)


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"total": 0}, "total"),
        ({"ceiling": 100}, "ceiling"),
        ({"keep_free": -1}, "keep_free"),
        ({"available": -1}, "available"),
    ],
)
def test_hosts_are_checked(more: dict[str, Any], key: str) -> None:
    with pytest.raises(units.PlanError) as refused:
        host.HostMemory(**{"name": "spark1", "total": gib(121.69), **more})
    assert refused.value.key == key
    with pytest.raises(units.PlanError, match="databases"):
        host.Claim("databases", -1)


def variant(**more: Any) -> budget.Variant:
    settings = layout.Settings(131072, "bf16", cache_mode="none", **more)
    need = budget.engine_need(Weights(gib(30), "headers"))
    return budget.make_variant(shape.read_shape(models.gated(64, 4, 48)), settings, need)


def test_the_band_is_what_the_plan_says() -> None:
    box = host.HostMemory("spark1", gib(121.69))
    plan = budget.plan_host(box, variant(), budget.Demand(2))
    assert (plan.lowest, plan.highest, plan.utilization, plan.holds) == (43, 78, 78, True)
    for hundredths, holds in ((42, False), (43, True), (78, True), (79, False)):
        judged = budget.plan_host(box, variant(), budget.Demand(2), hundredths)
        assert judged.holds is holds, hundredths
        if hundredths <= 43:
            assert (judged.requests >= 2) is holds


@pytest.mark.parametrize("wish", [{"full_requests": 5.0}, {"full_requests": 1.0, "tokens": 5 * 131072}])
def test_a_wish_in_tokens_is_a_wish_in_requests(wish: dict[str, Any]) -> None:
    plan = budget.plan_host(host.HostMemory("spark1", gib(121.69)), variant(), budget.Demand(**wish))
    exact = budget.plan_host(host.HostMemory("spark1", gib(121.69)), variant(), budget.Demand(**wish), plan.lowest)
    assert exact.holds
    assert exact.requests >= 5


def test_bytes_mode_gives_the_same_cache_and_passes_the_check() -> None:
    box = host.HostMemory("spark1", gib(121.69), available=gib(93))
    plan = budget.plan_host(box, variant(), budget.Demand(1), 78)
    made = variant().layout
    assert made is not None
    assert made.blocks(plan.byte_mode) == plan.blocks
    assert plan.byte_mode <= plan.kv_bytes < plan.byte_mode + made.block_bytes
    assert host.admit("spark1", box.total, gib(93), plan.byte_mode_utilization).ok
    assert plan.byte_mode_utilization == 73


def test_sequences_are_lowered_to_what_the_engine_takes() -> None:
    small = host.HostMemory("spark1", gib(60), engine_outside=0, system=0)
    plan = budget.plan_host(small, variant(), budget.Demand(1, max_num_seqs=100_000))
    assert plan.max_num_seqs == plan.blocks
    assert budget.plan_host(small, variant(), budget.Demand(1, max_num_seqs=16)).max_num_seqs == 16


def test_weights_that_do_not_fit() -> None:
    plan = budget.plan_host(host.HostMemory("spark1", gib(30)), variant(), budget.Demand(1))
    assert plan.kv_bytes < 0
    assert (plan.blocks, plan.requests, plan.tokens, plan.byte_mode, plan.holds) == (0, 0, 0, 0, False)


def test_wishes_are_checked() -> None:
    for wrong in ({"full_requests": 0}, {"max_num_seqs": 0}, {"tokens": -1}):
        with pytest.raises(units.PlanError, match=next(iter(wrong))):
            budget.Demand(**wrong)
    with pytest.raises(units.PlanError, match="utilization"):
        budget.plan_host(host.HostMemory("spark1", gib(30)), variant(), budget.Demand(1), 100)
