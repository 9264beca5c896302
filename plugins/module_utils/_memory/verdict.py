# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a site: a copy on every host, one engine over all of them, or neither. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .budget import Demand, HostPlan, Variant, plan_host
from .host import HostMemory
from .units import PlanError, say_gib

REPLICATE, SPLIT, NEITHER = "replicate", "split", "neither"
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class SitePlan:
    """The verdict of a site.

    Attributes:
        verdict: ``replicate``, ``split`` or ``neither``.
        words: the reason and the sum behind it, one sentence per entry.
        copies: the plan of each host with a copy of its own.
        ranks: the plan of each host as a rank of one engine; empty if no such variant was given.
    """

    verdict: str
    words: tuple[str, ...]
    copies: tuple[HostPlan, ...]
    ranks: tuple[HostPlan, ...]


def plan_site(
    hosts: Sequence[HostMemory],
    copy: Variant,
    demand: Demand,
    pair: Variant | None = None,
    utilization: Mapping[str, int] | None = None,
    pair_utilization: Mapping[str, int] | None = None,
) -> SitePlan:
    """Decides between copies and a pair, by what is asked of each copy.

    Args:
        hosts: the engine hosts, at least one.
        copy: one whole engine on one host.
        demand: asked of every single copy, since a request can only use the cache of the copy that serves it.
        pair: one rank of an engine over all hosts; None if there is no such arrangement.
        utilization: hundredths to judge for a copy instead of a proposal, by host name.
        pair_utilization: the same for a rank of the pair; the two arrangements have arguments of their own.

    Raises:
        PlanError: there is no host.
    """
    if not hosts:
        raise PlanError("there is no engine host to plan for", "hosts")
    fixed, pair_fixed = utilization or {}, pair_utilization or {}
    copies = tuple(plan_host(host, copy, demand, fixed.get(host.name)) for host in hosts)
    ranks: tuple[HostPlan, ...] = ()
    if pair is not None and len(hosts) > 1:
        ranks = tuple(plan_host(host, pair, demand, pair_fixed.get(host.name)) for host in hosts)
    longest = {plan.host: copy.layout.longest(plan.blocks) if copy.layout else 0 for plan in copies}
    sums = [explain(host, copy, plan) for host, plan in zip(hosts, copies, strict=True)]
    sums += [
        f"{plan.host}: max_num_seqs {demand.max_num_seqs} is lowered to {plan.max_num_seqs}, the most that "
        f"{plan.blocks} cache blocks allow"
        for plan in copies
        if 0 < plan.max_num_seqs < demand.max_num_seqs
    ]
    failing = [plan for plan in copies if not plan.holds]
    if not failing:
        verdict = f"every host holds {_asked(demand)}: replicate"
        return SitePlan(REPLICATE, (verdict, *sums), copies, ranks)
    answer = SPLIT if ranks and all(plan.holds for plan in ranks) else NEITHER
    reasons = [f"{_reason(plan, demand)}: {answer if answer == SPLIT else 'no copy'}" for plan in failing]
    if ranks and pair is not None:
        rank_sums = [explain(host, pair, plan) for host, plan in zip(hosts, ranks, strict=True)]
        smallest = min(ranks, key=lambda plan: plan.requests)
        told = f"split over {len(hosts)} hosts: {smallest.requests:.1f} full requests, {smallest.tokens:,} tokens"
        sums += [told, *rank_sums]
    if answer == NEITHER:
        reasons.append(
            "neither fits: ask for less, a shorter max_model_len, a smaller cache type, or move other work away"
        )
        reasons += [f"split: {_reason(plan, demand)}" for plan in ranks if not plan.holds]
        too_long = [host for host, length in longest.items() if 0 < length < copy.settings.max_model_len]
        reasons += [f"{host}: the longest request that fits is {longest[host]:,} tokens" for host in too_long]
        if not ranks:
            reasons.append("a split was not planned, since it needs a second host and its own arguments")
    return SitePlan(answer, (*reasons, *sums), copies, ranks)


def _asked(demand: Demand) -> str:
    count = demand.full_requests
    name = _NUMBERS[int(count)] if count == int(count) and count < len(_NUMBERS) else f"{count:g}"
    asked = f"the {name} full request{'' if count == 1 else 's'}"
    return asked + (f" and the {demand.tokens:,} tokens" if demand.tokens else "") + " you asked for"


def _reason(plan: HostPlan, demand: Demand) -> str:
    if plan.utilization > plan.highest and plan.lowest <= plan.utilization:
        return (
            f"{plan.host}: {plan.utilization / 100:.2f} leaves {say_gib(plan.free)} after all other work; the largest "
            f"utilization that fits is {plan.highest / 100:.2f}, limited by {plan.limit}"
        )
    return f"{plan.host} does not hold {_asked(demand)}"


def explain(host: HostMemory, variant: Variant, plan: HostPlan) -> str:
    """The sum behind one host's plan, in words."""
    need, cost = variant.need, variant.cost
    drift = f", {say_gib(host.drift)} that other work may take meanwhile" if host.drift else ""
    certain = "measured" if need.measured else "estimated"
    requests = f"{plan.requests:.1f} ({plan.requests_low:.1f} to {plan.requests_high:.1f})"
    band = f"usable {plan.lowest / 100:.2f} to {plan.highest / 100:.2f}"
    if plan.lowest > plan.highest:
        band = f"it would take {plan.lowest / 100:.2f}, {plan.highest / 100:.2f} is the most it can give"
    note = f" ({variant.note})" if variant.note else ""
    return (
        f"{host.name}: {plan.utilization / 100:.2f} of {say_gib(host.total, 2)} is {say_gib(plan.requested, 2)}, minus "
        f"{say_gib(need.weights.size)} of weights, {say_gib(need.overhead)} of overhead ({certain}){drift}, leaves "
        f"{say_gib(plan.kv_bytes)} of cache; a request of {variant.settings.max_model_len:,} tokens takes "
        f"{say_gib(round(cost.expected), 2)} ({cost.source}{note}), so {requests} fit, {plan.tokens:,} tokens; "
        f"{say_gib(plan.rest)} stay for the rest of the box, of which {say_gib(host.other_bytes)} are declared; {band}, "
        f"limited by {plan.limit}"
    )
