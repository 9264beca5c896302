# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller is killed after a write to the journal: nothing is lost, and both ways out end where they say.

GB10_KILL_SAMPLE says after how many of the writes of each loop: a number (another sample every day; GB10_KILL_TURN repeats one),
or `all`, which `make test-all` takes. How many writes there are is never written down here: the runs say it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kill_loop
import observe
import pytest
import site_of_lab as lab

SITE = lab.Site(
    "stand-in",
    {
        "vllm_topology": "replicated",
        "vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "1"},
        "vllm_gate_deadline_seconds": 20,
        "vllm_soak_seconds": 1,
    },
)
# The whole loop takes longer than an hour.
CLIENTS = ("--seconds", "20000")
SAMPLE = os.environ.get("GB10_KILL_SAMPLE", "1")
TURN = int(os.environ.get("GB10_KILL_TURN", time.time() // 86400))
KILLED = -9
# Every rollout of two hosts writes at least this often; the whole loop finds the end by itself.
WRITES = 12
LOOPS = [(path, way) for path in ("rolling", "switch") for way in ("resume", "rollback")]
if SAMPLE != "all":
    # One path and one way out a day: each with each in four days.
    LOOPS = [LOOPS[TURN % 4]]
IN_FRONT = {"replicated": {"spark1", "spark2"}, "split": {"spark1"}}


@pytest.fixture(scope="module")
def rows() -> Iterator[list[tuple[Any, ...]]]:
    """Every kill, told at the end."""
    found: list[tuple[Any, ...]] = []
    yield found
    print(f"\nKilled controllers (sample: {SAMPLE}, turn: {TURN})\n{kill_loop.table(found)}")


def another(path: str) -> dict[str, Any]:
    """Variables of a change by this path, away from what runs now."""
    runs = observe.record()
    if path == "switch":
        return {"vllm_topology": "split" if runs["topology"] == "replicated" else "replicated"}
    share = 8 if ["--max-num-seqs", "9"] in runs["command"] else 9
    return {"vllm_topology": "replicated", "vllm_replicated_overrides": {"max-num-seqs": share}}


def look(path: str) -> str:
    """What clients get from a site whose controller is gone: an answer, or in a declared window a place to wait."""
    answer = observe.ask(5)
    if answer.good:
        return "serves"
    assert path == "switch", f"copies are renewed while others serve, but: {answer}"
    assert "timed out" in answer.text, answer
    assert kill_loop.declared_window(lab.journal())
    assert observe.waiting() > 0
    return "in its window"


def told_of_stale_lock(rollout: str, refused: bool) -> None:
    """`status` says whose lock was left and what to do; a cutover is refused in the same words, and changes nothing."""
    words = " ".join(SITE.must_play("status").split())
    for part in (rollout, "stale", "resume.yml", "rollback.yml"):
        assert part in words, f"status does not say {part!r}: {words}"
    if refused:
        before = (observe.starts(), observe.admitted(), observe.lock())
        done = SITE.play("cutover", variables=another("rolling"))
        assert done.returncode not in (0, KILLED)
        for part in (rollout, "stale", "resume.yml"):
            assert part in observe.in_words(done)
        assert (observe.starts(), observe.admitted(), observe.lock()) == before


def settled(releases: dict[str, str]) -> None:
    """The site is whole, on these releases, and free for the next rollout."""
    assert observe.currents() == releases
    observe.must_serve(IN_FRONT[observe.record()["topology"]])
    assert observe.lock() is None
    states = {host: lab.on(host, "systemctl is-active vllm || true").strip() for host in observe.HOSTS}
    assert set(states.values()) == {"active"}, states


def way_out(way: str, over: bool) -> float:
    """Play it; the seconds it took. A rollout that was over when its controller died leaves nothing to resume."""
    started = time.monotonic()
    if way == "resume" and over:
        assert "nothing to resume" in observe.in_words(SITE.play(way))
    else:
        SITE.must_play(way)
    return time.monotonic() - started


@pytest.mark.parametrize(("path", "way"), LOOPS, ids=["-".join(loop) for loop in LOOPS])
def test_killed_after_a_write(path: str, way: str, records: Path, rows: list[tuple[Any, ...]]) -> None:
    sent, looped = len(observe.read(records)), False
    for number in kill_loop.numbers(SAMPLE, WRITES, TURN // 4):
        before = observe.currents()
        done = SITE.killed_play("cutover", number, another(path))
        if done.returncode != KILLED:
            assert done.returncode == 0, observe.in_words(done)
            assert number > WRITES, "it was killed after all of its writes but the last"
            rows.append((path, way, f"{number}: ended before", kill_loop.last_act(lab.journal()), "serves", "-"))
            break
        events, found = lab.journal(), look(path)
        begin, over = events[0], any(event["step"] == "end" for event in events)
        assert (begin["step"], begin["verb"], begin["path"]) == ("begin", "cutover", path)
        left = observe.lock()
        assert left or over, "only a rollout that has ended gives its lock back"
        if left and way == "resume":
            told_of_stale_lock(left["rollout"], refused=not looped and path == "rolling")
        seconds = way_out(way, over)
        settled(begin["targets"] if way == "resume" else before)
        rows.append((path, way, number, kill_loop.last_act(events), found, f"{seconds:.1f} s"))
        print(f"\n{kill_loop.table(rows[-1:])}")
        looped = True
    assert looped
    assert len(observe.read(records)) > sent + 50, "clients were sending all the while"
    assert observe.failures(records, sent) == [], "whoever came in a window has waited"
