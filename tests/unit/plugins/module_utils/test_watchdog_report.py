# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the watchdog writes, and what it still knows after it was killed; and what the proxies' answers mean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _http, _members_client, _watchdog_report
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog_decide import Memory

STATE = {
    "time": 5.0,
    "verdict": "busy",
    "paused": "",
    "gave_up": "so",
    "copy": "withdrawn",
    "restarts": 2,
    "completion_seconds": None,
}


@pytest.fixture
def files(tmp_path: Path) -> _watchdog_report.Files:
    return _watchdog_report.Files(str(tmp_path / "state"), str(tmp_path / "run"))


def test_it_remembers(files: _watchdog_report.Files) -> None:
    assert files.remembered() == Memory()
    memory = Memory("r", "1", "i", (1.5, 2.5), "gave up", "withdrawn", "why", 3.5, True)
    files.remember(memory)
    assert files.remembered() == memory


@pytest.mark.parametrize("text", ["", "{", "[]", '{"unknown": 1}'])
def test_a_memory_that_cannot_be_read_is_none(files: _watchdog_report.Files, text: str) -> None:
    Path(files.memory).write_text(text)
    assert files.remembered() == Memory()


def test_the_log_is_bounded(files: _watchdog_report.Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_watchdog_report, "MOST_BYTES", 2000)
    for number in range(100):
        files.say(_watchdog_report.NOTE, "seen", f"number {number}")
    lines = [json.loads(line) for line in Path(files.log).read_text().splitlines()]
    assert lines[-1]["words"] == "number 99"
    assert len(Path(files.log).read_text()) < 2200


def test_figures_for_a_scraper(files: _watchdog_report.Files) -> None:
    files.show(STATE)
    text = Path(files.metrics).read_text()
    values = dict(line.rsplit(" ", maxsplit=1) for line in text.splitlines() if not line.startswith("#"))
    assert values['gb10_vllm_watchdog_verdict{verdict="busy"}'] == "1"
    assert values['gb10_vllm_watchdog_verdict{verdict="idle"}'] == "0"
    assert (values["gb10_vllm_watchdog_gave_up"], values["gb10_vllm_watchdog_paused"]) == ("1", "0")
    assert values["gb10_vllm_watchdog_withdrawn"] == "1"
    assert "gb10_vllm_watchdog_completion_seconds" not in values
    assert json.loads(Path(files.state).read_text()) == STATE


@pytest.mark.parametrize(
    ("answer", "done", "words"),
    [
        (_http.Answer(200, '{"message": "it is withdrawn"}'), True, "it is withdrawn"),
        (_http.Answer(202, "{}"), True, "not needed"),
        (_http.Answer(403, '{"message": "who"}'), True, "it does not know this host: who"),
        (_http.Answer(409, '{"message": "a rollout"}'), False, "409: a rollout"),
        (_http.Answer(422, '{"reason": "garbage"}'), False, "422: garbage"),
        (_http.Answer(500, "oops"), False, "500: oops"),
        (_http.Answer(0, "", "TimeoutError: timed out"), False, "no answer: TimeoutError: timed out"),
    ],
)
def test_what_a_proxy_says(answer: _http.Answer, done: bool, words: str) -> None:
    assert _members_client.read(answer) == _members_client.Reply(done, words)


def test_a_proxy_that_is_not_there_keeps_nobody_waiting() -> None:
    replies = _members_client.tell_all(["127.0.0.1:1", "127.0.0.1:2"], "withdrawn", "why")
    assert sorted(replies) == ["127.0.0.1:1", "127.0.0.1:2"]
    assert not any(reply.done for reply in replies.values())
