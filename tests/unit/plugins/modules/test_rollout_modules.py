# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock and the journal as Ansible calls them: no lock without a beginning, no end with a lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _journal
from ansible_collections.gb10.vllm.plugins.modules import rollout_journal, rollout_lock

BEGIN = {"step": "begin", "host": "proxy1", "result": "ok"}
END = {"step": "end", "host": "proxy1", "result": "ok"}
DESK = {"host": "desk", "boot": "b", "pid": 7, "started": "noon"}


@pytest.fixture
def lock(call: Any, tmp_path: Path) -> Any:
    def run(state: str, rollout: str = "1-cutover", **more: Any) -> dict[str, Any]:
        options = {"who": "ann", "why": "switch", "controller": DESK, **more}
        result: dict[str, Any] = call(rollout_lock, folder=str(tmp_path), state=state, rollout=rollout, **options)
        return result

    return run


def steps(folder: Path, rollout: str = "1-cutover") -> list[tuple[str, str]]:
    return [(event["step"], event.get("by", "")) for event in _journal.read(str(folder), rollout)]


def test_begin_and_end(lock: Any, tmp_path: Path) -> None:
    held = lock("held", event=BEGIN)
    assert (held["changed"], held["before"], held["stale"]) == (True, None, "")
    assert (held["holder"]["who"], held["holder"]["why"], held["holder"]["controller"]) == ("ann", "switch", DESK)
    assert lock("held", event=BEGIN)["changed"] is False
    assert lock("seen")["holder"]["rollout"] == "1-cutover"
    assert lock("released", event=END)["changed"] is True
    assert lock("released", event=END)["changed"] is False
    assert steps(tmp_path) == [("begin", "ann"), ("end", "ann")]
    assert lock("seen")["holder"] is None


def test_check_mode_writes_nothing(lock: Any, tmp_path: Path) -> None:
    assert lock("held", event=BEGIN, check_mode=True)["changed"] is True
    assert steps(tmp_path) == []
    lock("held", event=BEGIN)
    assert lock("released", event=END, check_mode=True)["changed"] is True
    assert steps(tmp_path) == [("begin", "ann")]
    assert "of ann has held the lock" in lock("held", rollout="2-cutover", check_mode=True)["msg"]


def test_a_stale_lock_is_taken_over_on_request_only(lock: Any, tmp_path: Path) -> None:
    lock("held", event=BEGIN)
    refused = lock("held", rollout="2-cutover", gone=True)
    assert "the lock is stale: its process 7 on desk is gone" in refused["msg"]
    assert steps(tmp_path, "2-cutover") == []
    for alive in ({"gone": False}, {}):
        assert lock("held", rollout="2-resume", take_over=True, **alive)["failed"] is True
    taken = lock("held", rollout="2-resume", take_over=True, gone=True, event=BEGIN)
    assert (taken["holder"]["rollout"], taken["before"]["rollout"]) == ("2-resume", "1-cutover")
    assert taken["stale"] == "its process 7 on desk is gone"
    assert steps(tmp_path, "2-resume") == [("begin", "ann")]


def test_unlock_is_written_into_the_journal_of_the_one_who_held_it(lock: Any, tmp_path: Path) -> None:
    lock("held", event=BEGIN)
    assert lock("released", rollout="any", gone=False, event={"step": "unlocked"}, who="bob")["failed"] is True
    assert lock("released", rollout="any", event={"step": "unlocked"}, who="bob")["before"]["rollout"] == "1-cutover"
    assert steps(tmp_path) == [("begin", "ann"), ("unlocked", "bob")]


def test_a_rollout_whose_lock_was_taken_over_writes_nothing_more(call: Any, lock: Any, tmp_path: Path) -> None:
    lock("held", event=BEGIN)
    write = {
        "folder": str(tmp_path),
        "rollout": "1-cutover",
        "events": [{"step": "stopped", "host": "a", "result": "ok"}],
    }
    assert call(rollout_journal, **write)["changed"] is True
    lock("held", rollout="2-resume", take_over=True, gone=True, event=BEGIN)
    refused = call(rollout_journal, **write)
    assert refused["fenced"] is True, "the rescues of the rollout look at this and do nothing"
    assert "rollout 1-cutover does not hold the lock any more, rollout 2-resume of ann does" in refused["msg"]
    assert [step for step, _by in steps(tmp_path)] == ["begin", "stopped"]
