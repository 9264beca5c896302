# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewals that go well and rollouts that fail, with the stand-in engine, because the real one cannot misbehave on demand.

Every test goes on from where the one before ended; the first failure ends the story.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import demo
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
EIGHT = {"vllm_replicated_overrides": {"max-num-seqs": 8}}


@pytest.fixture(scope="module", autouse=True)
def copies_serve() -> None:
    """Two copies of the stand-in on new hosts."""
    lab.lab("up", "--engine", "both")
    lab.lab("fresh", "spark1", "spark2", "proxy1")
    SITE.must_play("cutover")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clients that send all the while; without retries of their own, so that nothing is hidden."""
    out = tmp_path_factory.mktemp("traffic") / "requests.jsonl"
    with lab.clients(out, "--retries", "0"):
        demo.steady(out)
        yield out


def start_of(host: str) -> str:
    return lab.on(host, "systemctl show vllm --property=InvocationID,MainPID")


def current(host: str) -> str:
    return lab.on(host, "readlink /etc/gb10-vllm/current").strip()


def previous(host: str) -> str:
    return lab.on(host, "readlink /etc/gb10-vllm/previous").strip()


def in_words(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stdout + done.stderr).split())


def failures(records: Path, since: int) -> list[dict[str, Any]]:
    return [record for record in demo.read(records)[since:] if not record["complete"]]


def test_copies_are_renewed_one_after_the_other_without_a_failed_request(records: Path) -> None:
    before, sent = {host: start_of(host) for host in ("spark1", "spark2")}, len(demo.read(records))
    output = SITE.must_play("cutover", variables=EIGHT)
    demo.steady(records)
    assert "Copies are renewed one after the other" in " ".join(output.split())
    assert failures(records, sent) == []
    assert {host: start_of(host) for host in before} != before
    steps = [(event["step"], event["host"]) for event in lab.journal()]
    assert steps.index(("admitted", "spark1")) < steps.index(("withdrawn", "spark2")), (
        "one is back before the next one leaves"
    )


def test_a_release_that_answers_garbage_is_taken_back_and_the_other_copy_is_not_touched(records: Path) -> None:
    good, untouched, sent = current("spark1"), start_of("spark2"), len(demo.read(records))
    before = previous("spark1")
    done = SITE.play("cutover", variables={**EIGHT, "vllm_environment_overrides": {"STANDIN_GARBAGE": "1"}})
    demo.steady(records)
    assert done.returncode != 0
    assert "does not match" in in_words(done)
    assert "it serves its previous release again" in in_words(done)
    assert "spark2: not touched, because spark1 failed before" in in_words(done)
    assert current("spark1") == good
    assert previous("spark1") == before, "a rollback would not bring the failed release"
    assert start_of("spark2") == untouched
    assert failures(records, sent) == []
    assert {r["copy"] for r in demo.read(records)[-20:]} == {"spark1", "spark2"}


def test_a_topology_that_does_not_come_up_gives_way_to_the_one_before(records: Path) -> None:
    before = {host: (current(host), previous(host)) for host in ("spark1", "spark2")}
    done = SITE.play(
        "cutover", variables={"vllm_topology": "split", "vllm_environment_overrides": {"STANDIN_EXIT_LOADING": "1"}}
    )
    demo.steady(records)
    assert done.returncode != 0
    assert "the release before was brought back and serves from spark1 and spark2" in in_words(done)
    assert "process ended" in in_words(done)
    assert {host: (current(host), previous(host)) for host in before} == before
    assert {r["copy"] for r in demo.read(records)[-20:]} == {"spark1", "spark2"}


def test_a_long_answer_outlasts_the_drain_and_nothing_is_stopped(records: Path) -> None:
    before = {host: start_of(host) for host in ("spark1", "spark2")}
    lab.on("proxy1", f"cat > /run/long_answers.py <<'END'\n{LONG_ANSWERS}\nEND")
    for number in range(4):
        lab.on("proxy1", f"systemd-run --collect --quiet --unit=long-answers-{number} python3 /run/long_answers.py")
    done = SITE.play("cutover", variables={"vllm_topology": "split", "vllm_drain_seconds": 1})
    assert done.returncode != 0
    assert "nothing was stopped" in in_words(done).lower()
    assert {host: start_of(host) for host in before} == before
    lab.on("proxy1", "systemctl stop 'long-answers-*'")
    demo.steady(records)
    assert {r["copy"] for r in demo.read(records)[-20:]} == {"spark1", "spark2"}


def test_the_second_operator_is_told_who_holds_the_lock() -> None:
    lock = {"rollout": "20260101-000000-cutover", "who": "ada@desk", "why": "a test", "since": 1767225600.0}
    lab.on("proxy1", f"cat > /var/lib/gb10-vllm/rollouts/lock.json <<'END'\n{json.dumps(lock)}\nEND")
    done = SITE.play("cutover", variables={"vllm_replicated_overrides": {"max-num-seqs": 9}})
    assert done.returncode != 0
    for words in ("20260101-000000-cutover", "ada@desk", "a test", "has held the lock", "unlock.yml"):
        assert words in in_words(done)
    assert "lock: held by ada@desk" in SITE.must_play("status")
    assert "Released the lock of rollout 20260101-000000-cutover of ada@desk" in " ".join(
        SITE.must_play("unlock").split()
    )
