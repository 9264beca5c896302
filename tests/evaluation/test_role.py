# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's own tasks with a stand-in on this machine: what they keep, what they show, and what a rollout reads of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gb10.vllm.tests.standin.server import Server

ROOT = Path(__file__).resolve().parents[2]
Start = Callable[..., Server]
Play = Callable[..., tuple[int, str]]
INVENTORY = "all: {children: {engines: {hosts: {spark1: }}, proxies: {hosts: {proxy1: }}}}\n"


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """play(server, "gate.yml"): the exit status of the role's tasks on spark1, and what was printed, in one line."""
    release = tmp_path / "base" / "releases" / "replicated-1"
    release.mkdir(parents=True)
    content = {
        "model": "/models/tiny",
        "served_model_name": "tiny",
        "image": "a@sha256:1",
        "command": ["--max-num-seqs", "4"],
    }
    (release / "release.json").write_text(json.dumps(content))
    (tmp_path / "hosts.yml").write_text(INVENTORY)

    def run(server: Server, tasks: str, **variables: Any) -> tuple[int, str]:
        include = {
            "name": "Test",
            "ansible.builtin.include_role": {"name": "gb10.vllm.evaluation", "tasks_from": tasks},
        }
        (tmp_path / "play.yml").write_text(
            yaml.safe_dump([{"hosts": "spark1", "gather_facts": False, "tasks": [include]}])
        )
        given = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "vllm_evaluation_venv": sys.prefix,
            "vllm_evaluation_dir": str(tmp_path / "evaluations"),
            "vllm_evaluation_work_dir": str(tmp_path / "work"),
            "vllm_evaluation_only": ["TC-01", "TC-02", "TC-10"],
            "vllm_evaluation_modes": ["whole"],
            "vllm_evaluation_thinking": False,
            "vllm_evaluation_request": {"max_tokens": 60},
            "vllm_gate_tool_calls_scenarios": "short",
            "vllm_gate_tool_calls_seconds": 60,
            "vllm_rollout_dir": str(tmp_path / "rollouts"),
            "__vllm_rollout": "20261130-080000-cutover",
            "__vllm_release_id": "replicated-1",
            "__vllm_record": {"port": server.port},
            "__vllm_facts": {"base_dir": str(tmp_path / "base"), "port": server.port},
            "__vllm_decided": {"targets": {"spark1": "replicated-1"}},
            **variables,
        }
        command = [
            f"{sys.prefix}/bin/ansible-playbook",
            "-i",
            str(tmp_path / "hosts.yml"),
            str(tmp_path / "play.yml"),
            "-e",
            json.dumps(given),
        ]
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "HOME": str(tmp_path),
        }
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "evaluations").glob("*.json"))]


def journal(folder: Path) -> list[dict[str, Any]]:
    (path,) = (folder / "rollouts").glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_gate_keeps_a_record_writes_a_line_and_asks_once(start: Start, play: Play, tmp_path: Path) -> None:
    server = start()
    status, said = play(server, "gate.yml")
    assert status == 0, said
    (record,) = kept(tmp_path)
    assert (record["verdict"], record["kind"], record["against"], record["what"]["release"]) == (
        "pass",
        "gate",
        "spark1",
        "replicated-1",
    )
    assert f"The record is {tmp_path}/evaluations/{record['id']}.json on proxy1." in said
    (line,) = journal(tmp_path)
    assert (line["step"], line["host"], line["result"], line["verdict"]) == ("evaluated", "spark1", "ok", "pass")
    assert (line["record"], line["score"]) == (record["id"], record["score"])
    assert line["seconds"] > 0
    asked = server.total("vllm:request_success_total")
    status, said = play(server, "gate.yml")
    assert status == 0, said
    assert server.total("vllm:request_success_total") == asked
    assert len(kept(tmp_path)) == 1
    assert (journal(tmp_path)[1]["record"], journal(tmp_path)[1]["seconds"]) == (record["id"], 0)


def test_a_gate_that_does_not_pass_fails_the_host_and_says_why(start: Start, play: Play, tmp_path: Path) -> None:
    status, said = play(start(tool_calls="json"), "gate.yml")
    assert status != 0
    assert "the tool-call test of spark1 ended with the verdict fail: " in said
    (record,) = kept(tmp_path)
    assert (record["verdict"], record["accepted"]) == ("fail", False)
    (line,) = journal(tmp_path)
    assert (line["result"], line["verdict"], line["reason"]) == ("failed", "fail", record["reason"])
    assert "arguments that are no JSON object" in line["reason"]


def test_the_preflight_asks_nothing_and_names_what_is_missing(start: Start, play: Play, tmp_path: Path) -> None:
    server = start()
    status, said = play(server, "preflight.yml")
    assert status == 0, said
    status, said = play(server, "preflight.yml", vllm_evaluation_venv=str(tmp_path / "none"))
    assert status != 0
    assert f"the suite tool-eval-bench 3.0.0 is not in {tmp_path}/none on the controller" in said
    assert (kept(tmp_path), server.total("vllm:request_success_total")) == ([], 0)
