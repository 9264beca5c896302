# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pair is one unit of failure: whatever ends one rank, both are stopped and started in order, and clients are served without a person.

Then the same for copies, where systemd alone has to bring back what ended. At the end of each there is one engine per host.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import observe
import pair_life
import pytest
import site_of_lab as lab
import watching
from conftest import TODAY

# Many failures in a few minutes, which a site would call the end of it.
QUICK = {
    "vllm_pair_most_restarts": 30,
    "vllm_pair_pause_seconds": 0,
    "vllm_pair_probe_seconds": 2,
    "vllm_pair_alone_seconds": 5,
}
SITE = lab.Site("stand-in", {**QUICK, "vllm_soak_seconds": 1, "vllm_stop_seconds": 60})
BUDGET = 180
# Whom the proxy's service has taken out and is to bring back.
RECORD = "cat /var/lib/gb10-vllm-proxy/withdrawn.json"

Event = Callable[[str], None]
# Every event, each on one of the hosts, in another order and on other hosts each day.
ANY_ORDER = [(event, observe.HOSTS[(place + TODAY) % 2]) for place, event in enumerate(pair_life.EVENTS)]
random.Random(TODAY).shuffle(ANY_ORDER)


def names(value: object) -> str | None:
    return getattr(value, "__name__", None)


@pytest.fixture(scope="module")
def pair(hosts: None) -> None:
    SITE.must_play("cutover", variables={"vllm_topology": "split"})
    lab.wait_for(pair_life.is_formed, 30, "the pair's service adopts the pair after the rollout")
    observe.must_serve({"spark1"})


def test_a_worker_ends(pair: None) -> None:
    before = pair_life.keeper()["state"]["attempts"]
    pair_life.pair_serves_again(pair_life.container_killed, "spark2", BUDGET)
    assert len(pair_life.keeper()["state"]["attempts"]) == len(before) + 1, "one restart of the pair, not two"


def test_the_heads_process_ends(pair: None) -> None:
    pair_life.pair_serves_again(pair_life.engine_killed, "spark1", BUDGET)


def test_a_host_loses_its_power(pair: None) -> None:
    pair_life.pair_serves_again(pair_life.power_lost, "spark2", BUDGET)


@pytest.mark.rotating
def test_somebody_asks_for_a_restart(pair: None) -> None:
    def asked(host: str) -> None:
        lab.on(host, """echo '{"reason": "a test asks", "time": 0}' > /run/gb10-vllm/pair-restart""")

    pair_life.pair_serves_again(asked, "spark1", BUDGET)
    assert "a test asks" in lab.on("spark1", "journalctl -u gb10-vllm-pair -o cat -n 20")


@pytest.mark.rotating
def test_while_it_is_paused_nothing_happens(pair: None) -> None:
    lab.on("spark2", "mkdir -p /var/lib/gb10-vllm/pause && touch /var/lib/gb10-vllm/pause/operator")
    lab.wait_for(lambda: pair_life.keeper()["phase"] == "off", 20, "the head sees that spark2 is paused")
    assert "spark2: paused: operator" in pair_life.keeper()["reason"]
    before = observe.start_of("spark2")
    lab.on("spark1", "systemctl stop vllm")
    # The worker would be stopped within two looks otherwise; its head waits for nothing else.
    lab.wait_for(lambda: pair_life.keeper()["time"] > 0 and not pair_life.keeper()["running"], 20, "the head's look")
    assert observe.start_of("spark2") == before
    lab.on("spark2", "rm /var/lib/gb10-vllm/pause/operator")
    lab.wait_for(lambda: pair_life.is_formed() and observe.ask().good, BUDGET, "the pair is back after the pause")
    pair_life.one_engine_each()


@pytest.mark.rotating
@pytest.mark.parametrize(("event", "host"), ANY_ORDER, ids=names)
def test_pair_in_any_order(pair: None, event: Event, host: str) -> None:
    pair_life.pair_serves_again(event, host, BUDGET)


@pytest.fixture(scope="module")
def replicated(hosts: None) -> None:
    SITE.must_play("cutover", variables={"vllm_topology": "replicated"})
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
@pytest.mark.parametrize(("event", "host"), ANY_ORDER, ids=names)
def test_copies_in_any_order(replicated: None, event: Event, host: str) -> None:
    (other,) = set(observe.HOSTS) - {host}
    before = observe.start_of(host)
    with observe.untouched(other):
        event(host)
        seconds = lab.wait_for(
            lambda: (
                observe.start_of(host) != before and {observe.ask().copy for _number in range(6)} == set(observe.HOSTS)
            ),
            BUDGET,
            f"both copies serve again after {event.__name__} on {host}",
        )
    print(f"\n{event.__name__} on {host}: its copy serves again {seconds:.0f} s later")
    pair_life.one_engine_each()


@pytest.mark.rotating
def test_what_a_copy_owed_the_proxy_its_rank_of_a_pair_does_not(replicated: None) -> None:
    """The watchdog that took its copy out wants to see it pass the gate, and a rank without a port never would."""
    impatient = {"vllm_watchdog_stalled_seconds": 10}
    lab.on("spark2", "systemctl stop vllm")
    lab.wait_for(lambda: observe.admitted() == {"spark1"}, 30, "the watchdog of spark2 has its copy withdrawn")
    assert watching.state("spark2")["copy"] == "withdrawn"
    lab.wait_for(lambda: "spark2" in lab.on("proxy1", RECORD), 30, "the proxy keeps that it owes the copy its return")
    SITE.must_play("cutover", variables={**impatient, "vllm_topology": "split"})
    lab.wait_for(pair_life.is_formed, 30, "the pair's service adopts the pair after the rollout")
    before, formed = observe.starts(), watching.state("spark2")["time"]
    lab.wait_for(lambda: watching.state("spark2")["time"] > formed + 30, 60, "looks for three times the patience")
    assert observe.starts() == before
    observe.must_serve({"spark1"})
    assert watching.state("spark2")["copy"] == ""
    assert "spark2" not in lab.on("proxy1", RECORD), "and the proxy will not try to bring it back either"
    assert pair_life.keeper()["state"]["attempts"] == []
