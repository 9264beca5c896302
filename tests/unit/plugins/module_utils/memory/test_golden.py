# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The article's two machines: what they measured is what the plan says."""

from __future__ import annotations

import time

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import (
    budget,
    host,
    layout,
    measured,
    shape,
    units,
    verdict,
)
from ansible_collections.gb10.vllm.plugins.module_utils._memory.weights import Weights, per_rank
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

gib = units.from_gib
LENGTH = 262144
WEIGHTS = Weights(gib(71), "declared")
QUIET = host.HostMemory("spark1", gib(121.69))
BUSY = host.HostMemory(
    "spark2", gib(121.69), others=(host.Claim("databases", gib(3.0)), host.Claim("site builds", gib(1.5)))
)
TWO = budget.Demand(full_requests=2)


def copy(kv_dtype: str, weights: Weights = WEIGHTS, starts: tuple[measured.Measurement, ...] = ()) -> budget.Variant:
    settings = layout.Settings(LENGTH, kv_dtype, draft_tokens=4, batched_tokens=4096)
    return budget.make_variant(
        shape.read_shape(models.FLASH_NEXT), settings, budget.engine_need(weights, starts), starts
    )


def pair(kv_dtype: str) -> budget.Variant:
    settings = layout.Settings(LENGTH, kv_dtype, ranks=2, draft_tokens=4, batched_tokens=4096)
    return budget.make_variant(shape.read_shape(models.FLASH_NEXT), settings, budget.engine_need(per_rank(WEIGHTS, 2)))


@pytest.mark.parametrize(
    ("box", "hundredths", "tokens", "requests"), [(QUIET, 78, 1_080_000, "4.1"), (BUSY, 74, 760_000, "2.9")]
)
def test_what_the_machines_held(box: host.HostMemory, hundredths: int, tokens: int, requests: str) -> None:
    plan = budget.plan_host(box, copy("fp8"), TWO, hundredths)
    assert plan.tokens == pytest.approx(tokens, rel=0.06)
    assert f"{plan.requests:.1f}" == requests
    assert plan.requests_low < float(requests) < plan.requests_high
    assert plan.holds


@pytest.mark.parametrize(("hundredths", "tokens", "requests"), [(78, 1_080_000, 4.1), (74, 760_000, 2.9)])
def test_on_one_machine_without_other_work(hundredths: int, tokens: int, requests: float) -> None:
    plan = budget.plan_host(QUIET, copy("fp8"), TWO, hundredths)
    assert plan.tokens == pytest.approx(tokens, rel=0.06)
    assert plan.requests == pytest.approx(requests, rel=0.06)


def test_the_plan_proposes_what_the_owners_found() -> None:
    site = verdict.plan_site([QUIET, BUSY], copy("fp8"), TWO, pair("fp8"))
    assert site.verdict == verdict.REPLICATE
    assert [plan.utilization for plan in site.copies] == [78, 74]
    assert site.words[0] == "every host holds the two full requests you asked for: replicate"


def test_what_was_left_at_the_old_value() -> None:
    plan = budget.plan_host(BUSY, copy("fp8"), TWO, 78)
    assert f"{plan.rest / units.GIB:.0f}" == "5"
    assert not plan.holds
    site = verdict.plan_site([BUSY], copy("fp8"), TWO, utilization={"spark2": 78})
    assert "the largest utilization that fits is 0.74, limited by what the rest of the box needs" in site.words[0]
    assert budget.plan_host(BUSY, copy("fp8"), TWO).rest / units.GIB == pytest.approx(9.9, abs=0.2)


def test_bf16_is_split() -> None:
    site = verdict.plan_site([QUIET, BUSY], copy("bf16"), TWO, pair("bf16"))
    assert site.verdict == verdict.SPLIT
    assert site.words[0] == "spark2 does not hold the two full requests you asked for: split"
    together = min(plan.requests for plan in site.ranks)
    assert together == pytest.approx(12, abs=1.5)
    assert min(plan.tokens for plan in site.ranks) > 3_000_000
    assert any("0.74 of 121.69 GiB is 90.05 GiB, minus 71.0 GiB of weights" in sentence for sentence in site.words)


def test_bf16_as_measured_in_september_is_split() -> None:
    # 499,110 tokens on one machine: fewer than two full requests, whatever the layout says of this checkpoint
    start = measured.Measurement(gib(13.79), 1.9, LENGTH, requested=gib(90.05), tokens=499110)
    site = verdict.plan_site([host.HostMemory("spark1", gib(121.69), ceiling=74), BUSY], copy("bf16", starts=(start,)), TWO,
                             pair("bf16"))  # fmt: skip
    assert site.verdict == verdict.SPLIT
    assert [sentence.split(" of ")[0] for sentence in site.words[:2]] == [
        "spark1 does not hold the two full requests you asked for: split",
        "spark2 does not hold the two full requests you asked for: split",
    ]
    assert f"{site.copies[0].requests:.1f}" == "1.9"


def test_neither_says_why_and_what_would_fit() -> None:
    site = verdict.plan_site([QUIET, BUSY], copy("bf16"), budget.Demand(40), pair("bf16"))
    assert site.verdict == verdict.NEITHER
    assert "spark1 does not hold the 40 full requests you asked for: no copy" in site.words
    assert any(sentence.startswith("split: spark1 does not hold") for sentence in site.words)
    small = host.HostMemory("spark3", gib(121.69), others=(host.Claim("databases", gib(8)),))
    alone = verdict.plan_site([small], copy("bf16"), budget.Demand(2, tokens=600_000))
    assert alone.verdict == verdict.NEITHER
    assert "the two full requests and the 600,000 tokens you asked for" in alone.words[0]
    assert any("longest request that fits" in sentence for sentence in
               verdict.plan_site([small], copy("bf16", Weights(gib(76), "declared")), TWO).words)  # fmt: skip
    assert any("second host" in sentence for sentence in alone.words)


def test_no_host() -> None:
    with pytest.raises(units.PlanError, match="no engine host"):
        verdict.plan_site([], copy("fp8"), TWO)


def test_one_host_takes_little_time() -> None:
    begin = time.process_time()
    verdict.plan_site([QUIET], copy("fp8"), TWO)
    assert time.process_time() - begin < 0.2
