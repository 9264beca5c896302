# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pair with the real engine: the worker of rank 1, the head's API process, a whole host; served again without a person."""

from __future__ import annotations

import observe
import pair_life
import pytest
import site_of_lab as lab

QUICK = {
    "vllm_pair_most_restarts": 30,
    "vllm_pair_pause_seconds": 0,
    "vllm_pair_probe_seconds": 5,
    "vllm_pair_alone_seconds": 20,
}
SITE = lab.Site("real", {**QUICK, "vllm_topology": "split"})
BUDGET = 420

pytestmark = pytest.mark.rotating


@pytest.fixture(scope="module")
def pair() -> None:
    """New hosts, as for every story of the real engine."""
    lab.lab("up", "--engine", "both")
    lab.lab("fresh", "spark1", "spark2", "proxy1")
    SITE.must_play("cutover")
    lab.wait_for(pair_life.is_formed, 60, "the pair's service adopts the pair after the rollout")
    observe.must_serve({"spark1"})


def test_rank_1s_worker_is_killed(pair: None) -> None:
    def worker_killed(host: str) -> None:
        lab.on(host, "pkill -KILL -f [V]LLM::Worker")

    pair_life.pair_serves_again(worker_killed, "spark2", BUDGET)


def test_the_heads_api_process_is_killed(pair: None) -> None:
    pair_life.pair_serves_again(pair_life.engine_killed, "spark1", BUDGET)


def test_a_whole_host_loses_its_power(pair: None) -> None:
    pair_life.pair_serves_again(pair_life.power_lost, "spark2", BUDGET)


def test_the_heads_host_loses_its_power(pair: None) -> None:
    pair_life.pair_serves_again(pair_life.power_lost, "spark1", BUDGET)
