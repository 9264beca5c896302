# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The log of a run, kept by Ansible itself on this machine."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gb10.vllm.tests.unit.playbooks import play

PLAYBOOK = """
- name: First
  hosts: all
  gather_facts: false
  tasks:
    - name: Say hello
      ansible.builtin.command: echo hunter2
      changed_when: true
    - name: Never
      ansible.builtin.debug:
      when: false
    - name: Fail without a word
      ansible.builtin.fail:
        msg: "the password is hunter2"
      no_log: true
      ignore_errors: true
    - name: Fail in a loop
      ansible.builtin.fail:
        msg: "{{ item }}"
      loop: [one, "token=hunter2"]
      ignore_errors: true
    - name: Somewhere else
      ansible.builtin.debug:
        msg: x
      delegate_to: localhost
- name: Second
  hosts: here
  gather_facts: false
  tasks:
    - name: Fail
      ansible.builtin.fail:
        msg: "the model is not there"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "playbook.yml").write_text(PLAYBOOK)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    away = {"ansible_host": "192.0.2.9"}
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": {"here": local, "away": away, "localhost": local}}})
    )
    return folder


def run(site: Path, path: Path, **more: str) -> tuple[Any, list[dict[str, Any]]]:
    # `play` gives Ansible an environment of its own, so the settings come from a configuration.
    settings = "".join(f"{key} = {value}\n" for key, value in {"path": str(path), **more}.items())
    configuration = site / "ansible.cfg"
    configuration.write_text(f"[defaults]\ncallbacks_enabled = gb10.vllm.run_log\n[callback_run_log]\n{settings}")
    done = play(site, site / "playbook.yml", site / "inventory.yml", configuration=configuration)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    return done, lines


def test_a_run_with_failures(site: Path, tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    done, lines = run(site, path, skipped="true")
    assert done.returncode != 0
    assert (lines[0]["event"], lines[0]["playbook"], lines[0]["check_mode"]) == ("begin", "playbook.yml", False)
    assert [line["play"] for line in lines if line["event"] == "play"] == ["First", "Second"]
    here = {line["task"]: line for line in lines if line.get("host") == "here"}
    assert {task: line["result"] for task, line in here.items()} == {
        "Say hello": "changed", "Never": "skipped", "Fail without a word": "ignored", "Fail in a loop": "ignored", "Somewhere else": "ok", "Fail": "failed"
    }  # fmt: skip
    assert here["Fail"]["message"] == "the model is not there"
    assert here["Fail in a loop"]["items"] == 2
    assert here["Fail without a word"]["hidden"]
    assert "message" not in here["Fail without a word"]
    assert here["Somewhere else"]["delegated_to"] == "localhost"
    assert here["Say hello"]["action"] == "ansible.builtin.command"
    assert all(line["seconds"] >= 0 for line in here.values())
    assert [line["result"] for line in lines if line.get("host") == "away"] == ["unreachable"]
    assert (lines[-1]["event"], lines[-1]["result"]) == ("end", "failed")
    assert lines[-1]["hosts"]["here"]["ignored"] == 2
    assert len({line["run"] for line in lines}) == 1
    assert "hunter2" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_log_that_cannot_be_written_is_a_warning(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done, lines = run(site, tmp_path / "file" / "runs.jsonl")
    assert lines == []
    assert (done.stdout + done.stderr).count("no log of this run is kept") == 1
    assert "the model is not there" in done.stdout
