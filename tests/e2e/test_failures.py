# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewals that go well and rollouts that fail, with the stand-in engine, because the real one cannot misbehave on demand.

Every test goes on from where the one before ended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20})
# Answers of some 20 s, one after the other, so that there always is one running on each copy.
LONG_ANSWERS = """
import json, urllib.request
body = {"model": "tiny", "max_tokens": 2000, "messages": [{"role": "user", "content": "Tell me a long story."}]}
for _number in range(8):
    request = urllib.request.Request(
        "http://127.0.0.1:8080/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=120).read()
"""


@dataclass(frozen=True)
class Fault:
    """A new release that is no good: what is wrong with it, and the words (a pattern) in which that must be said."""

    name: str
    environment: dict[str, str]
    reason: str
    variables: dict[str, Any] = field(default_factory=dict)
    # A request that runs on an engine in the moment of its sudden death cannot be saved by anybody.
    may_lose: int = 0


FAULTS = [
    Fault("garbage", {"GARBAGE": "1"}, r"does not match|no text"),
    Fault("hangs with a good health", {"HANG": "1"}, r"completion", {"vllm_gate_completion_seconds": 4}),
    Fault("exits while loading", {"EXIT_LOADING": "1"}, r"process ended|ended with exit|told to fail while loading"),
    Fault(
        "exits 0 after its gate", {"EXIT_AFTER": "6"}, r"soak|ended|died|gone", {"vllm_soak_seconds": 15}, may_lose=1
    ),
    Fault("needs more memory", {"REFUSE_MEMORY": "1"}, r"(?i)free memory|memory.{0,40}(refused|not free)"),
    Fault("cache far under plan", {"KV_TOKENS": "2048"}, r"(?i)planned|fewer|short", {"vllm_plan_shortfall": 0.5}),
]


def faulty(fault: dict[str, str], where: str = "") -> dict[str, Any]:
    """Variables of a release with this fault, everywhere or on one host only."""
    words = {f"STANDIN_{name}": value for name, value in fault.items()}
    return {
        "vllm_environment_overrides": f"{{{{ {words} if inventory_hostname == '{where}' else {{}} }}}}"
        if where
        else words
    }


def test_copies_are_renewed_one_after_the_other_without_a_failed_request(records: Path) -> None:
    before, sent = observe.starts(), len(observe.read(records))
    words = SITE.must_play("cutover", variables={"vllm_replicated_overrides": {"max-num-seqs": 8}})
    observe.answered_more(records, 25)
    assert "Copies are renewed one after the other" in " ".join(words.split())
    assert observe.failures(records, sent) == []
    after = observe.starts()
    assert all(after[host] != before[host] for host in observe.HOSTS)
    steps = [(event["step"], event["host"]) for event in lab.journal()]
    assert steps.index(("admitted", "spark1")) < steps.index(("withdrawn", "spark2")), (
        "one is back before the next one leaves"
    )


@pytest.mark.rotating
@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name for fault in FAULTS])
def test_a_bad_release_is_taken_back_and_the_other_copy_is_not_touched(fault: Fault, records: Path) -> None:
    good, before, sent = observe.current("spark1"), observe.previous("spark1"), len(observe.read(records))
    eight = {"vllm_replicated_overrides": {"max-num-seqs": 8}}
    with observe.untouched("spark2"):
        done = SITE.play("cutover", variables={**eight, **fault.variables, **faulty(fault.environment)})
    observe.answered_more(records, 25)
    words = observe.in_words(done)
    assert done.returncode != 0
    said = re.search(r"spark1: ((?:(?!spark1: ).)+?)\(it serves its previous release again\)", words)
    assert said, words[-3000:]
    assert re.search(fault.reason, said[1]), said[1]
    assert "spark2: not touched, because spark1 failed before" in words
    assert observe.current("spark1") == good
    assert observe.previous("spark1") == before, "a rollback would not bring the failed release"
    assert len(observe.failures(records, sent)) <= fault.may_lose, observe.failures(records, sent)
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
def test_a_slow_but_good_release_passes(records: Path) -> None:
    sent = len(observe.read(records))
    SITE.must_play("cutover", variables=faulty({"LOAD_SECONDS": "20"}))
    assert observe.failures(records, sent) == []
    loaded = [event["seconds"] for event in lab.journal() if event["step"] == "loaded"]
    assert len(loaded) == 2
    assert min(loaded) > 15
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
def test_a_topology_that_does_not_come_up_gives_way_to_the_one_before(records: Path) -> None:
    before = {host: (observe.current(host), observe.previous(host)) for host in observe.HOSTS}
    done = SITE.play("cutover", variables={"vllm_topology": "split", **faulty({"EXIT_LOADING": "1"})})
    assert done.returncode != 0
    words = observe.in_words(done)
    assert "the release before was brought back and serves from spark1 and spark2" in words
    assert "process ended" in words
    assert {host: (observe.current(host), observe.previous(host)) for host in before} == before
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
def test_a_long_answer_outlasts_the_drain_and_nothing_is_stopped(records: Path) -> None:
    lab.on("proxy1", f"cat > /run/long_answers.py <<'END'\n{LONG_ANSWERS}\nEND")
    for number in range(4):
        lab.on("proxy1", f"systemd-run --collect --quiet --unit=long-answers-{number} python3 /run/long_answers.py")
    with observe.untouched(*observe.HOSTS):
        done = SITE.play("cutover", variables={"vllm_topology": "split", "vllm_drain_seconds": 1})
    lab.on("proxy1", "systemctl stop 'long-answers-*'")
    assert done.returncode != 0
    assert "nothing was stopped" in observe.in_words(done).lower()
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
def test_a_copy_that_comes_up_serves_although_its_neighbour_does_not(records: Path) -> None:
    SITE.must_play("cutover", variables={"vllm_topology": "split"})
    split = observe.currents()
    done = SITE.play("cutover", variables=faulty({"EXIT_LOADING": "1"}, where="spark2"))
    words = observe.in_words(done)
    assert done.returncode != 0
    assert "Clients are served by spark1" in words
    assert "spark2: " in words
    assert "brought back" not in words, "a healthy copy is not taken down for its neighbour's sake"
    assert observe.current("spark1") != split["spark1"]
    assert observe.record("spark1")["topology"] == "replicated"
    assert observe.lock() is None
    observe.must_serve({"spark1"})
