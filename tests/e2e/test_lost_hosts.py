# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is lost before, during and after its stop: the rollout ends as failed, the other host serves, and it can be finished.

Every test goes on from where the one before ended.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

# Who has a request on a host that is cut off does not wait for ever.
CLIENTS = ("--timeout", "60")
# What is not under test waits no longer than a lost host needs to be noticed.
SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20, "vllm_stop_seconds": 60})
# A stop that lasts, so that there is time to pull the cable in the middle of it.
SLOW_STOP = "/etc/systemd/system/vllm.service.d/99-slow-stop.conf"
# A start that lasts, so that there is time to pull the plug after the stop and before the admission.
SLOW_START = {"vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "8"}}
BUDGET = 480

pytestmark = pytest.mark.rotating


def seats(number: int) -> dict[str, Any]:
    return {"vllm_replicated_overrides": {"max-num-seqs": number}}


@contextlib.contextmanager
def slow_stop(host: str) -> Iterator[None]:
    lab.on(host, f"printf '[Service]\\nExecStopPost=/bin/sleep 10\\n' > {SLOW_STOP} && systemctl daemon-reload")
    try:
        yield
    finally:
        lab.on(host, f"rm -f {SLOW_STOP} && systemctl daemon-reload")


def stopping(host: str) -> bool:
    return lab.on(host, "systemctl is-active vllm || true").strip() == "deactivating"


def failed(done: subprocess.CompletedProcess[str], lost: str) -> None:
    """Ended as failed and says whom it lost; nobody waits for it with the lock in hand, and the proxy does not point at it."""
    words = observe.in_words(done)
    assert done.returncode not in (0, -9)
    assert lost in words
    assert "could not be reached" in words or "unreachable" in words.lower()
    assert lost not in observe.admitted()
    assert observe.lock() is None


def told(lost: str) -> None:
    words = " ".join(SITE.must_play("status").split())
    assert f"{lost} ? ? no ? ?" in words, "the lost host is a row of its own, and the proxies say that it is out"
    assert "could not be reached" in words
    assert "ended as failed" in words


def finished(releases: dict[str, str], copies: tuple[str, ...] = observe.HOSTS) -> None:
    assert observe.currents() == releases
    assert observe.lock() is None
    observe.must_serve(copies)


def test_lost_before_the_rollout_nothing_begins(records: Path) -> None:
    journals = observe.journals()
    lab.lab("kill", "spark2")
    # What the dead host was answering is lost with it; from here on nothing may be.
    lab.wait_for(lambda: observe.ask().good, 20, "the other copy answers")
    observe.answered_more(records, 5)
    sent = len(observe.read(records))
    with observe.untouched("spark1"):
        done = SITE.play("cutover", variables=seats(8), timeout=BUDGET)
    assert done.returncode not in (0, -9)
    assert "spark2" in observe.in_words(done)
    assert (observe.journals(), observe.lock()) == (journals, None), "no rollout was begun"
    assert observe.failures(records, sent) == []
    lab.lab("boot", "spark2")
    lab.wait_for(lambda: {observe.ask().copy for _number in range(4)} == set(observe.HOSTS), 120, "both serve again")


def test_lost_during_its_stop_and_finished_by_resume(records: Path) -> None:
    sent = len(observe.read(records))
    with slow_stop("spark1"), observe.untouched("spark2"):
        with lab.meanwhile(SITE.play, "cutover", variables=seats(8), timeout=BUDGET) as run:
            lab.wait_within(run, lambda: stopping("spark1"), "spark1 is being stopped")
            lab.lab("cut", "spark1")
        try:
            failed(run.result(), "spark1")
            observe.must_serve({"spark2"})
            told("spark1")
        finally:
            lab.lab("mend", "spark1")
    targets = lab.journal()[0]["targets"]
    SITE.must_play("resume")
    finished(targets)
    assert observe.failures(records, sent) == []


def test_lost_after_its_stop_and_taken_back_by_rollback(records: Path) -> None:
    sent, before, began = len(observe.read(records)), observe.currents(), time.time()
    with lab.meanwhile(SITE.play, "cutover", variables={**seats(9), **SLOW_START}, timeout=BUDGET) as run:
        lab.wait_within(run, lambda: observe.happened("stopped", "spark2", began), "spark2 is stopped")
        lab.lab("kill", "spark2")
    failed(run.result(), "spark2")
    observe.must_serve({"spark1"})
    told("spark2")
    assert observe.current("spark1") == lab.journal()[0]["targets"]["spark1"], "the one that was renewed stays"
    lab.lab("boot", "spark2")
    SITE.must_play("rollback")
    finished(before)
    assert observe.failures(records, sent) == []


def test_lost_in_a_switch_the_other_copy_serves_and_resume_finishes(records: Path) -> None:
    SITE.must_play("cutover", variables={"vllm_topology": "split"})
    sent, began = len(observe.read(records)), time.time()
    with lab.meanwhile(SITE.play, "cutover", variables={**seats(9), **SLOW_START}, timeout=BUDGET) as run:
        lab.wait_within(run, lambda: observe.happened("started", "spark2", began), "the engines are started")
        lab.lab("kill", "spark2")
    failed(run.result(), "spark2")
    with observe.untouched("spark1"):
        observe.must_serve({"spark1"})
        told("spark2")
        lab.lab("boot", "spark2")
        SITE.must_play("resume")
    finished(lab.journal()[0]["targets"])
    assert {entry["status"] for entry in observe.failures(records, sent)} <= {503}, "nothing but the declared window"
