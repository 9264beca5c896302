# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two boxes and nothing else, an engine and a proxy on each: rollouts lose nothing at either proxy, and either box may lose its power.

Every test goes on from where the one before ended.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site(
    "stand-in",
    {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20, "vllm_stop_seconds": 60},
    inventory="tests/e2e/two_boxes",
)
# The first one keeps the journal.
KEEPER, OTHER = PROXIES = observe.HOSTS
BUDGET = 480

pytestmark = pytest.mark.rotating


def seats(number: int) -> dict[str, Any]:
    return {"vllm_replicated_overrides": {"max-num-seqs": number}}


def serve_everywhere(*copies: str) -> None:
    """The same copies answer through both proxies, and no rollout is under way."""
    for proxy in PROXIES:
        observe.must_serve(copies, proxy)
    assert observe.lock(KEEPER) is None


def good(proxy: str) -> bool:
    return all(observe.ask(proxy=proxy).good for _number in range(3))


@pytest.fixture(scope="module")
def boxes(hosts: None) -> Iterator[None]:
    """New hosts before, because others' proxy is a host of its own, and new ones for the others afterwards."""
    lab.lab("fresh", *observe.HOSTS)
    SITE.must_play("cutover")
    SITE.must_play("service_address")
    serve_everywhere(*observe.HOSTS)
    yield
    lab.lab("fresh", *observe.HOSTS, "proxy1")


@pytest.fixture(scope="module")
def records(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """By proxy what its clients got; they try nothing a second time, and wait no longer for a lost box than a person would."""
    folder = tmp_path_factory.mktemp("traffic")
    out = {proxy: folder / f"{proxy}.jsonl" for proxy in PROXIES}
    with ExitStack() as stack:
        for proxy in PROXIES:
            stack.enter_context(lab.clients(out[proxy], "--retries", "0", "--timeout", "60", proxy=proxy))
        for path in out.values():
            observe.answered_more(path, 25)
        yield out


def sent(records: dict[str, Path]) -> dict[str, int]:
    return {proxy: len(observe.read(path)) for proxy, path in records.items()}


def failures(records: dict[str, Path], since: dict[str, int]) -> list[dict[str, Any]]:
    """Of both proxies, after some more requests."""
    for path in records.values():
        observe.answered_more(path, 10)
    return [entry for proxy, path in records.items() for entry in observe.failures(path, since[proxy])]


def test_a_switch_there_and_back_loses_nothing_at_either_proxy(records: dict[str, Path]) -> None:
    before = sent(records)
    SITE.must_play("cutover", variables={"vllm_topology": "split"})
    serve_everywhere(KEEPER)
    SITE.must_play("cutover")
    serve_everywhere(*observe.HOSTS)
    assert failures(records, before) == []


def test_a_new_release_reaches_both_while_both_proxies_serve(records: dict[str, Path]) -> None:
    before = sent(records)
    SITE.must_play("cutover", variables=seats(8))
    serve_everywhere(*observe.HOSTS)
    assert failures(records, before) == []
    steps = [(event["step"], event["host"]) for event in lab.journal(KEEPER)]
    assert steps.index(("admitted", KEEPER)) < steps.index(("withdrawn", OTHER)), "never both away"


def test_the_other_box_loses_its_power_and_comes_back_by_itself(records: dict[str, Path]) -> None:
    lab.lab("kill", OTHER)
    # What the lost copy was answering is lost with it; from here on nothing may be.
    lab.wait_for(lambda: good(KEEPER), 30, "the copy that is left answers")
    observe.answered_more(records[KEEPER], 5)
    since = len(observe.read(records[KEEPER]))
    observe.answered_more(records[KEEPER], 50)
    lab.lab("boot", OTHER)
    lab.wait_for(
        lambda: {observe.ask(proxy=proxy).copy for proxy in PROXIES for _number in range(4)} == set(observe.HOSTS),
        120,
        "both serve again, through both",
    )
    serve_everywhere(*observe.HOSTS)
    assert observe.failures(records[KEEPER], since) == []


def test_the_box_with_the_journal_loses_its_power_within_a_rollout_and_resume_finishes(
    records: dict[str, Path],
) -> None:
    began = time.time()
    with observe.untouched(OTHER):
        with lab.meanwhile(SITE.play, "cutover", variables=seats(9), timeout=BUDGET) as run:
            lab.wait_within(run, lambda: observe.happened("stopped", KEEPER, began, KEEPER), f"{KEEPER} is stopped")
            since = len(observe.read(records[OTHER]))
            lab.lab("kill", KEEPER)
        words = observe.in_words(run.result())
        assert run.result().returncode not in (0, -9)
        assert KEEPER in words
        assert "unreachable" in words.lower() or "could not be reached" in words
        observe.must_serve({OTHER}, OTHER)
        lab.lab("boot", KEEPER)
        words = " ".join(SITE.must_play("status").split())
        assert "has not ended" in words, words
    SITE.must_play("resume")
    serve_everywhere(*observe.HOSTS)
    assert len(set(observe.currents().values())) == 1, "the same release on both"
    assert ["--max-num-seqs", "9"] in observe.record(OTHER)["command"]
    observe.answered_more(records[OTHER], 10)
    assert observe.failures(records[OTHER], since) == []


def test_the_address_moves_to_the_box_that_is_left(records: dict[str, Path]) -> None:
    address = lab.describe()["hosts"][KEEPER]["address"].rpartition(".")[0] + ".50"

    def holders() -> list[str]:
        return [proxy for proxy in PROXIES if address in lab.on(proxy, "ip -brief -4 address")]

    (first,) = holders()
    (second,) = set(PROXIES) - {first}
    lab.lab("kill", first)
    seconds = lab.wait_for(lambda: address in lab.on(second, "ip -brief -4 address"), 10, f"{second} has the address")
    print(f"\n{second} had the address after {seconds:.1f} s")
    lab.wait_for(lambda: good(second), 30, "the copy that is left answers")
    lab.lab("boot", first)
    lab.wait_for(lambda: len(holders()) == 1, 60, "one of the two has the address")
    lab.wait_for(
        lambda: all(observe.admitted(proxy) == set(observe.HOSTS) for proxy in PROXIES), 60, "both are admitted"
    )
