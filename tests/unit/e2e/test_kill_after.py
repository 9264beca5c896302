# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kill after a write to the journal, with a real ansible-playbook on this machine only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# Five writes: two plain ones of two hosts, a loop of two, and one with the lock; the read in between is none.
PLAYBOOK = """
- hosts: all
  gather_facts: false
  strategy: ansible.builtin.free
  tasks:
    - gb10.vllm.rollout_journal:
        folder: {folder}
        rollout: 20260101-000000-test
        events: [{{step: first, host: "{{{{ inventory_hostname }}}}", result: ok}}]
      when: inventory_hostname != 'busy'
    - ansible.builtin.command: sleep {seconds}
      when: inventory_hostname == 'busy'
      changed_when: false
    - gb10.vllm.rollout_journal:
        folder: {folder}
    - gb10.vllm.rollout_journal:
        folder: {folder}
        rollout: 20260101-000000-test
        events: [{{step: "{{{{ item }}}}", host: a, result: ok}}]
      loop: [second, third]
      delegate_to: b
      when: inventory_hostname == 'a'
    - gb10.vllm.rollout_lock:
        folder: {folder}
        state: held
        rollout: 20260101-000000-test
        event: {{step: last, host: a, result: ok}}
      when: inventory_hostname == 'a'
"""
INVENTORY = "all: {hosts: {a: {}, b: {}, busy: {}}, vars: {ansible_connection: local, ansible_python_interpreter: %s}}"


def play(folder: Path, after: int, seconds: str) -> subprocess.CompletedProcess[str]:
    (folder / "play.yml").write_text(PLAYBOOK.format(folder=folder, seconds=seconds))
    (folder / "hosts.yml").write_text(INVENTORY % sys.executable)
    plugin = {
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "e2e" / "callbacks"),
        "ANSIBLE_CALLBACKS_ENABLED": "kill_after",
        "KILL_AFTER": str(after),
        "KILL_COUNT_FILE": str(folder / "count"),
    }
    return subprocess.run(
        [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            str(folder / "hosts.yml"),
            str(folder / "play.yml"),
        ],
        cwd=ROOT,
        env={**os.environ, **plugin},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def steps(folder: Path) -> list[str]:
    text = (folder / "20260101-000000-test.jsonl").read_text()
    return [json.loads(line)["step"] for line in text.splitlines()]


def runs(words: str) -> bool:
    """Whether a process of this machine has these words in its command."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return any(words in line for line in found)


def test_a_run_that_nobody_kills_tells_its_writes(tmp_path: Path) -> None:
    done = play(tmp_path, 0, "0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "count").read_text() == "5"
    assert sorted(steps(tmp_path)) == ["first", "first", "last", "second", "third"]


@pytest.mark.parametrize("after", [1, 4, 5])
def test_the_controller_and_all_its_workers_are_gone(tmp_path: Path, after: int) -> None:
    # A number that no other process has.
    seconds = f"300.{os.getpid()}{after}"
    done = play(tmp_path, after, seconds)
    assert done.returncode == -9, done.stdout + done.stderr
    # A process that was killed is gone when the kernel comes to it.
    end = time.monotonic() + 20
    while runs(f"sleep {seconds}") and time.monotonic() < end:
        time.sleep(0.05)
    assert not runs(f"sleep {seconds}")
    assert not (tmp_path / "count").exists()
    assert after <= len(steps(tmp_path)) <= after + 1, "the other host may have written in the same moment"


def test_a_number_that_is_never_reached_kills_nobody(tmp_path: Path) -> None:
    assert play(tmp_path, 6, "0").returncode == 0
    assert (tmp_path / "count").read_text() == "5"
