# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal survives a power loss, and the lock has one holder."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _journal

HOLDER = {"rollout": "1-cutover", "who": "ann", "why": "switch"}


def test_append_and_read(tmp_path: Path) -> None:
    folder = str(tmp_path / "a" / "rollouts")
    before = time.time()
    written = _journal.append(folder, "1", [{"step": "begin", "host": "p"}, {"step": "end", "time": "12.34567"}])
    assert before - 1 < written[0]["time"] < time.time() + 1
    assert written[1] == {"step": "end", "time": 12.346}
    _journal.append(folder, "1", [{"step": "later"}])
    assert [event["step"] for event in _journal.read(folder, "1")] == ["begin", "end", "later"]
    assert _journal.read(folder, "2") == []


@pytest.mark.parametrize("given", [0, "0", "", None])
def test_a_time_that_is_not_known_is_now(tmp_path: Path, given: Any) -> None:
    """Tasks hand on times of steps that may have been skipped."""
    (event,) = _journal.append(str(tmp_path), "1", [{"step": "x", "time": given}])
    assert event["time"] > 1e9


@pytest.mark.parametrize("torn", ['{"step": "sto', '{"step": "stop", "time": 12', "{", '"'])
def test_a_torn_line_takes_nothing_with_it(tmp_path: Path, torn: str) -> None:
    _journal.append(str(tmp_path), "1", [{"step": "begin"}])
    with open(tmp_path / "1.jsonl", "a") as file:
        file.write(torn)
    assert [event["step"] for event in _journal.read(str(tmp_path), "1")] == ["begin"]
    _journal.append(str(tmp_path), "1", [{"step": "resume"}])
    assert [event["step"] for event in _journal.read(str(tmp_path), "1")] == ["begin", "resume"]


def test_many_writers(tmp_path: Path) -> None:
    """Hosts of one play write at the same time; no line is lost or mixed with another one."""

    def write(number: int) -> None:
        for step in range(20):
            _journal.append(str(tmp_path), "1", [{"host": number, "step": step, "reason": "x" * 500}])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [(event["host"], event["step"]) for event in _journal.read(str(tmp_path), "1")]
    assert sorted(seen) == [(host, step) for host in range(4) for step in range(20)]


def test_rollouts(tmp_path: Path) -> None:
    assert _journal.rollouts(str(tmp_path / "none")) == []
    for name in ("20261129-2-cutover.jsonl", "20261129-1-rollback.jsonl", "lock.json"):
        (tmp_path / name).write_text("")
    assert _journal.rollouts(str(tmp_path)) == ["20261129-1-rollback", "20261129-2-cutover"]


def test_lock(tmp_path: Path) -> None:
    folder = str(tmp_path / "rollouts")
    assert _journal.lock_holder(folder) is None
    assert _journal.acquire(folder, HOLDER) is True
    assert _journal.acquire(folder, HOLDER) is False
    holder = _journal.lock_holder(folder)
    assert holder is not None
    assert {name: holder[name] for name in HOLDER} == HOLDER
    assert holder["seen"] == pytest.approx(time.time(), abs=5)
    with pytest.raises(_journal.LockedError, match=r"rollout 1-cutover \(switch\) of ann has held the lock for 0 min"):
        _journal.acquire(folder, {**HOLDER, "rollout": "2-cutover"})
    with pytest.raises(_journal.LockedError):
        _journal.release(folder, "2-cutover")
    assert _journal.release(folder, "1-cutover") is True
    assert _journal.release(folder, "1-cutover") is False
    assert os.listdir(folder) == []


CONTROLLER = {"host": "desk", "boot": "b", "pid": 7, "started": "noon"}


@pytest.mark.parametrize(
    ("holder", "gone", "stale"),
    [
        ({"controller": CONTROLLER, "seen": 990, "quiet_seconds": 60}, True, "its process 7 on desk is gone"),
        ({"controller": CONTROLLER, "seen": 10, "quiet_seconds": 60}, False, ""),
        ({"controller": CONTROLLER, "seen": 990, "quiet_seconds": 60}, None, ""),
        ({"controller": CONTROLLER, "seen": 400, "quiet_seconds": 300}, None, "it has been silent for 10 min, longer"),
        ({"seen": 10}, None, ""),
        ({}, None, ""),
    ],
)
def test_stale(holder: dict[str, Any], gone: bool | None, stale: str) -> None:
    said = _journal.staleness(holder, gone, 1000)
    assert said.startswith(stale) if stale else said == ""


def test_only_the_lock_that_was_looked_at_is_taken_over(tmp_path: Path) -> None:
    folder = str(tmp_path)
    _journal.acquire(folder, HOLDER)
    assert _journal.acquire(folder, {**HOLDER, "rollout": "2-resume"}, "gone", "1-cutover", write=False) is True
    assert _journal.acquire(folder, {**HOLDER, "rollout": "2-resume"}, "gone", "1-cutover") is True
    with pytest.raises(_journal.LockedError, match="2-resume"):
        _journal.acquire(folder, {**HOLDER, "rollout": "3-resume"}, "gone", "1-cutover")
    with pytest.raises(_journal.LockedError, match=r"the lock is stale: gone.*resume.yml.*rollback.yml.*unlock.yml"):
        _journal.acquire(folder, {**HOLDER, "rollout": "3-cutover"}, "gone")


def test_each_act_is_a_sign_of_life_of_its_own_rollout(tmp_path: Path) -> None:
    folder = str(tmp_path)
    _journal.acquire(folder, HOLDER)
    os.utime(tmp_path / "lock.json", (1000, 1000))
    _journal.append(folder, "2-other", [{"step": "x"}])
    assert (_journal.lock_holder(folder) or {})["seen"] == 1000
    _journal.append(folder, "1-cutover", [{"step": "x"}])
    assert (_journal.lock_holder(folder) or {})["seen"] > 1000


def test_the_lock_of_a_process_at_work_is_not_released_with_any(tmp_path: Path) -> None:
    _journal.acquire(str(tmp_path), {**HOLDER, "controller": CONTROLLER})
    with pytest.raises(_journal.LockedError, match="process 7 on desk"):
        _journal.release(str(tmp_path), "any", gone=False)
    assert _journal.release(str(tmp_path), "any", gone=None, write=False) is True
    assert _journal.release(str(tmp_path), "any", gone=True) is True


def test_audit_line() -> None:
    event = {"time": 1, "step": "stopped", "host": "a", "result": "failed", "reason": "busy", "by": "", "seconds": 3}
    assert (
        _journal.audit_line("1-x", event)
        == "gb10.vllm rollout=1-x step='stopped' host='a' result='failed' reason='busy'"
    )


def test_any_lock_can_be_released(tmp_path: Path) -> None:
    _journal.acquire(str(tmp_path), HOLDER)
    assert _journal.release(str(tmp_path), "any") is True
    assert _journal.lock_holder(str(tmp_path)) is None


def test_one_of_many_gets_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rollout is a process of its own; threads stand in for them, so each gets a number of its own."""
    monkeypatch.setattr(os, "getpid", threading.get_ident)
    got: list[str] = []
    barrier = threading.Barrier(8)

    def take(number: int) -> None:
        barrier.wait()
        try:
            _journal.acquire(str(tmp_path), {**HOLDER, "rollout": str(number)})
            got.append(str(number))
        except _journal.LockedError:
            pass

    threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    holder = _journal.lock_holder(str(tmp_path))
    assert holder is not None
    assert got == [holder["rollout"]]
    assert os.listdir(tmp_path) == ["lock.json"]


def test_refusal_says_what_can_be_done() -> None:
    words = _journal.refusal({**HOLDER, "since": 1000}, 1000 + 61 * 60)
    assert "1-cutover (switch) of ann has held the lock for 61 min" in words
    assert "status.yml" in words
    assert "unlock.yml" in words
    assert _journal.refusal({}, 0).startswith("rollout ? (?) of ? has held the lock for 0 min")


def test_a_damaged_lock_is_not_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text("{")
    with pytest.raises(_host.HostError, match="is not JSON"):
        _journal.lock_holder(str(tmp_path))


def test_events_are_one_object_per_line(tmp_path: Path) -> None:
    _journal.append(str(tmp_path), "1", [{"step": "x", "reason": "two\nlines", "host": "ü"}])
    (line,) = (tmp_path / "1.jsonl").read_text().splitlines()
    assert json.loads(line)["reason"] == "two\nlines"
