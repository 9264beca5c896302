# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _run_log


@pytest.mark.parametrize(
    "text",
    [
        "401 for Authorization: Bearer hunter2hunter2",
        "cannot reach https://operator:hunter2@registry.example/v2",
        "HF_TOKEN=hunter2 is wrong",
        "{'api_key': 'hunter2', 'a': 1}",
        '{"vllm_api_key": "hunter2 with spaces"}',
        "ran docker login --password hunter2 registry",
        "key sk-hunter2hunter2 refused",
        "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2 cut off",
    ],
)
def test_what_looks_like_a_secret_is_covered(text: str) -> None:
    assert "hunter2" not in _run_log.safe(text)
    assert _run_log.COVERED in _run_log.safe(text)


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 64 is too few",
        "the port 8000 is open",
        "tokens per second",
        "release replicated-0123456789ab is gone",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert _run_log.safe(text) == text


def test_words_are_one_line_and_bounded() -> None:
    assert _run_log.safe("a\nb") == "a b"
    assert len(_run_log.safe("x" * 10**6)) == _run_log.LONGEST


@pytest.mark.parametrize(
    ("kind", "result", "line"),
    [
        ("ok", {"changed": False, "stdout": "secret"}, {"result": "ok", "changed": False}),
        ("ok", {"changed": True}, {"result": "changed", "changed": True}),
        ("failed", {"msg": "no"}, {"result": "failed", "changed": False, "message": "no"}),
        ("failed", {"censored": "hidden", "msg": "hunter2"}, {"result": "failed", "changed": False, "hidden": True}),
        ("failed", {"_ansible_no_log": True, "msg": "hunter2"}, {"result": "failed", "changed": False, "hidden": True}),
        ("unreachable", {"msg": "gone"}, {"result": "unreachable", "changed": False, "message": "gone"}),
        ("ok", {"results": [{}, {}]}, {"result": "ok", "changed": False, "items": 2}),
        ("skipped", {}, {"result": "skipped", "changed": False}),
    ],
)
def test_outcomes(kind: str, result: dict[str, Any], line: dict[str, Any]) -> None:
    assert _run_log.outcome(kind, result) == line


def test_a_failure_that_is_ignored() -> None:
    assert _run_log.outcome("failed", {"msg": "no"}, ignored=True)["result"] == "ignored"


def test_items_of_a_loop_say_why_each_once_and_may_be_hidden_one_by_one() -> None:
    items = [{"failed": True, "msg": "no"}, {"failed": True, "msg": "no"}, {"msg": "fine"}]
    items += [{"failed": True, "msg": "hunter2", "_ansible_no_log": True}]
    assert _run_log.message({"results": items, "msg": "One or more items failed"}) == "no"


def test_one_line_whatever_is_in_it() -> None:
    text = _run_log.text({"task": "a\nb", "odd": object()})
    assert text.count("\n") == 1
    assert json.loads(text)["task"] == "a\nb"
