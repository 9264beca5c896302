# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host is asked for a status, and how a site is shown once, again and again, and until somebody has seen enough."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsiblePromptInterrupt
from ansible.playbook.task import Task
from ansible_collections.gb10.vllm.plugins.action import host_status, rollout_lock, site_status


def action(plugin: Any, arguments: dict[str, Any]) -> Any:
    task = Task()
    task.args = arguments
    return plugin.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())


def ask(answers: dict[str, Any], **arguments: Any) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The result, and with what each module was called."""
    asked: dict[str, dict[str, Any]] = {}

    def execute(module_name: str = "host_status", module_args: Any = None, task_vars: Any = None) -> dict[str, Any]:
        name = module_name.rpartition(".")[2]
        asked[name] = module_args
        return {"_ansible_parsed": True, "invocation": {}, **answers.get(name, {})}

    plugin = action(host_status, arguments)
    plugin._execute_module = execute
    return plugin.run(task_vars={}), asked


def test_one_module_says_it_all_where_nobody_holds_the_lock() -> None:
    result, asked = ask({"host_status": {"watch": {}, "journal": {"lock": None}}}, keeper=True)
    assert list(asked) == ["host_status"]
    assert (result["watch"], result["journal"]) == ({}, {"lock": None})


def test_the_process_that_holds_the_lock_is_looked_for() -> None:
    own = rollout_lock.controller(os.getpid())
    for holder, gone in ((own, False), ({**own, "started": "never"}, True), ({**own, "host": "other"}, None)):
        answers = {"host_status": {"journal": {"lock": {"controller": holder}}}, "rollout_lock": {"stale": "it is"}}
        result, asked = ask(answers, keeper=True)
        assert asked["rollout_lock"] == {"state": "seen"} | ({} if gone is None else {"gone": gone})
        assert result["journal"]["stale"] == "it is"


def test_a_host_that_cannot_be_reached_is_unreachable() -> None:
    plugin = action(host_status, {})
    plugin._execute_module = MagicMock(side_effect=AnsibleConnectionFailure("ssh"))
    with pytest.raises(AnsibleConnectionFailure):
        plugin.run(task_vars={})


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person sees."""
    words: list[str] = []
    monkeypatch.setattr(site_status, "Display", lambda: MagicMock(display=words.append))
    monkeypatch.setattr(site_status.constants, "DEFAULT_LOCAL_TMP", None)
    return words


def test_once(shown: list[str]) -> None:
    assert action(site_status, {"text": "A table"}).run(task_vars={})["text"] == "A table"
    assert shown == ["A table"]


def test_a_look_of_its_own_goes_into_the_file(shown: list[str], tmp_path: Path) -> None:
    to = tmp_path / "status"
    action(site_status, {"text": "A table", "to": str(to), "watch": 3}).run(task_vars={})
    assert (to.read_text(), shown) == ("A table", [])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"watch": "soon"}, "vllm_status_watch is 'soon' and vllm_status_count None, they must be numbers"),
        ({"watch": -1}, "vllm_status_watch is -1 and vllm_status_count 0, they must be 0 or more"),
        ({"watch": 1, "count": -2}, "vllm_status_count -2, they must be 0 or more"),
        ({"watch": 1, "count": "x"}, "vllm_status_count 'x', they must be numbers"),
        ({"watch": float("nan")}, "vllm_status_watch is nan"),
        ({"watch": float("inf")}, "vllm_status_watch is inf"),
    ],
)
def test_numbers_that_are_none(shown: list[str], arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleActionFail) as caught:
        action(site_status, {"text": "A table", **arguments}).run(task_vars={})
    assert words in str(caught.value)
    assert shown == []


def test_the_same_command_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_status.context, "CLIARGS", {"ask_pass": False})
    monkeypatch.setattr(sys, "argv", ["/opt/bin/ansible-playbook", "-i", "site", "status.yml"])
    assert site_status.command() == [sys.executable, "/opt/bin/ansible-playbook", "-i", "site", "status.yml"]


@pytest.mark.parametrize(
    ("program", "asked", "words"),
    [
        ("ansible-runner", {}, "vllm_status_watch repeats the command ansible-playbook, this is ansible-runner"),
        ("ansible-playbook", {"become_ask_pass": True}, "vllm_status_watch cannot repeat --ask-become-pass"),
    ],
)
def test_a_command_that_cannot_be_repeated(
    monkeypatch: pytest.MonkeyPatch, program: str, asked: Any, words: str
) -> None:
    monkeypatch.setattr(site_status.context, "CLIARGS", asked)
    monkeypatch.setattr(sys, "argv", [program])
    with pytest.raises(AnsibleActionFail, match=words):
        site_status.command()


def test_several_looks(monkeypatch: pytest.MonkeyPatch, shown: list[str]) -> None:
    waited: list[float] = []
    texts = iter(['{\n  "look": 2}', "no JSON this time"])
    monkeypatch.setattr(site_status, "wait", lambda seconds, _words: waited.append(seconds))
    monkeypatch.setattr(
        site_status, "look", lambda once, _to: f"{next(texts)}" if once[:2] == ["again", "--extra-vars"] else ""
    )
    assert site_status.watch('{\n  "look": 1}', 2.0, 3, ["again"]) == 3
    assert [words.removeprefix(site_status.CLEAR) for words in shown] == [
        '{"look": 1}',
        '{"look": 2}',
        "no JSON this time",
    ]
    assert waited == [2.0, 2.0]


def test_ctrl_c_ends_it(monkeypatch: pytest.MonkeyPatch, shown: list[str]) -> None:
    monkeypatch.setattr(site_status, "wait", MagicMock(side_effect=[None, AnsiblePromptInterrupt("^C")]))
    monkeypatch.setattr(site_status, "look", lambda once, to: "next")
    assert site_status.watch("first", 1, 0, ["again"]) == 2
    assert len(shown) == 2


def test_a_look_is_what_the_command_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    to = tmp_path / "status"
    monkeypatch.setattr(site_status, "wait", lambda seconds, words, process: process.wait(30))
    write = f"open({str(to)!r}, 'w').write('seen'); print('noise')"
    assert site_status.look([sys.executable, "-c", write], to) == "seen"
    failed = site_status.look([sys.executable, "-c", "raise SystemExit('no such inventory')"], to)
    assert failed == "This look failed (1): no such inventory"


def test_ctrl_c_during_a_look_ends_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []

    def interrupt(_seconds: float, _words: str, process: Any) -> None:
        begun.append(process)
        raise AnsiblePromptInterrupt("^C")

    monkeypatch.setattr(site_status, "wait", interrupt)
    with pytest.raises(AnsiblePromptInterrupt):
        site_status.look([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path / "status")
    assert begun[0].poll() is not None


def test_json_of_several_looks_is_one_line_each() -> None:
    text = json.dumps({"a": [1, 2]}, indent=2)
    assert site_status.line_of(text) == '{"a": [1, 2]}'
    assert site_status.line_of("COPY  UNIT") == "COPY  UNIT"
