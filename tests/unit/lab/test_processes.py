# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process id in a file counts only for the very process it was written for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import processes
import pytest

# pid, name, state, and then the fields up to the start time (the 22nd).
STAT = "42 ({name}) {state} " + " ".join(["0"] * 18) + " {born} 0 0\n"


def proc_with(folder: Path, name: str = "sshd", state: str = "S", born: int = 777) -> Path:
    (folder / "42").mkdir(parents=True)
    (folder / "42" / "stat").write_text(STAT.format(name=name, state=state, born=born))
    return folder


@pytest.mark.parametrize("name", ["sshd", "a b", "odd) S 1 (name", ")"])
def test_start_time_is_found_behind_any_name(name: str) -> None:
    stat = STAT.format(name=name, state="S", born=777)
    assert (processes.start_time(stat), processes.state(stat)) == (777, "S")


@pytest.mark.parametrize(
    ("record", "running", "expected"),
    [
        pytest.param({"pid": 42, "start_time": 777}, {}, 42, id="the same process"),
        pytest.param({"pid": 42, "start_time": 776}, {}, None, id="recycled id"),
        pytest.param({"pid": 42, "start_time": 777}, {"state": "Z"}, None, id="dead, not yet collected"),
        pytest.param({"pid": 43, "start_time": 777}, {}, None, id="no such process"),
        pytest.param({"pid": 42}, {}, None, id="record without a start time"),
        pytest.param([], {}, None, id="not a record"),
    ],
)
def test_remembered(tmp_path: Path, record: object, running: dict[str, str], expected: int | None) -> None:
    proc = proc_with(tmp_path / "proc", **running)
    path = tmp_path / "x.pid"
    path.write_text(json.dumps(record))
    assert processes.remembered(path, proc) == expected


@pytest.mark.parametrize("text", ["", "{", "null"])
def test_a_torn_record_is_no_process(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.pid").write_text(text)
    assert processes.remembered(tmp_path / "x.pid") is None


def test_end_ends_the_one_it_was_told_to(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        path = tmp_path / "x.pid"
        processes.remember(path, child.pid)
        assert processes.remembered(path) == child.pid
        assert processes.end(path)
        assert child.wait(5) == -signal.SIGKILL
        assert not path.exists()
        path.write_text(json.dumps({"pid": os.getpid(), "start_time": 1}))
        assert not processes.end(path)
    finally:
        child.kill()
        child.wait()
