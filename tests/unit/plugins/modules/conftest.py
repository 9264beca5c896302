# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a module as Ansible does, in this process; and a host whose commands answer from a table."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gb10.vllm.plugins.module_utils import _host

Call = Callable[..., dict[str, Any]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a module's main with these options; the result is what Ansible would get."""

    def run(module: Any, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        with patch_module_args({**options, "_ansible_check_mode": check_mode}), pytest.raises(SystemExit):
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run


class Commands:
    """Stands in for the programs of a host: the longest known beginning of a command answers it.

    An answer is (status, stdout, stderr), or a function that is called for one; unknown commands fail the test.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def __call__(self, command: list[str], timeout: float = 60, check: bool = True) -> Any:
        line = " ".join(command)
        self.asked.append(line)
        known = sorted((begin for begin in self.answers if line.startswith(begin)), key=len)
        assert known, f"an unexpected command: {line}"
        answer = self.answers[known[-1]]
        status, stdout, stderr = answer() if callable(answer) else answer
        if check and status:
            raise _host.HostError(f"`{line}` failed ({status}): {stderr}")
        return subprocess.CompletedProcess(command, status, stdout, stderr)

    def begins(self, beginning: str) -> list[str]:
        return [line for line in self.asked if line.startswith(beginning)]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    stand_in = Commands()
    monkeypatch.setattr(_host, "run", stand_in)
    return stand_in
