# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _traces

LOG = """\
1780000000.100000 spark1 systemd[1]: Started vllm.service - the engine.
1780000003.500000 spark1 vllm[7]: (APIServer pid=1) INFO 05-28 20:26:43 [api_server.py:1] vLLM API server version 0.33.0
1780000004.000000 spark1 vllm[7]: INFO:     127.0.0.1:4000 - "GET /health HTTP/1.1" 503
1780000010.000000 spark1 vllm[7]: INFO 05-28 20:26:50 [gpu.py:1] Starting to load model /models/x
1780000015.000000 spark1 vllm[7]: INFO 05-28 20:26:55 [gpu.py:1] Loading safetensors checkpoint shards: 50%
not a line of the journal
1780000070.250000 spark1 vllm[7]: INFO:     Application startup complete.
1780000071.000000 spark1 vllm[7]: INFO 05-28 [gpu.py:1] Starting to load model again
"""


def test_phases_up_to_the_one_that_is_ready() -> None:
    found = _traces.phases(_traces.entries(LOG.splitlines()), 1780000000.0)
    assert [(phase["phase"], phase["at"] - 1780000000) for phase in found] == [
        ("starting the container", 0.0), ("importing", 3.5), ("loading weights", 10.0), ("ready", 70.25)
    ]  # fmt: skip


def test_when_the_unit_was_down() -> None:
    lines = [
        "1780000001.0 spark1 docker[7]: Stopped listening",
        "1780000002.0 spark1 systemd[1]: vllm.service: Deactivated successfully.",
        "1780000002.5 spark1 systemd[1]: Stopped vllm.service - the engine.",
        "1780000003.0 spark1 vllm[7]: bye",
    ]
    assert _traces.stopped(_traces.entries(lines)) == 1780000002.5
    assert _traces.stopped(_traces.entries(lines[3:])) is None


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True), ("api-key", True), ("API_KEY", True), ("MY_SECRET", True), ("DB_PASSWORD", True), ("ssl-keyfile", False),
        ("max-num-batched-tokens", False), ("MAX_TOKENS", False), ("num-speculative-tokens", False), ("MONKEY", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert _traces.is_secret(name) is secret


def test_no_secret_leaves_the_host_and_a_change_of_one_is_seen() -> None:
    def record(value: str) -> dict[str, Any]:
        return {
            "command": [
                ["serve", "/m"],
                ["--api-key", value],
                [f"--hf-token={value}"],
                ["--max-num-batched-tokens", "2048"],
            ],
            "environment": {"HF_TOKEN": value, "A": "1"},
            "container_options": [f"--env=HF_TOKEN={value}", "--ipc=host", "--rm"],
        }

    cover = _traces.Cover()
    found = [_traces.readable(record(value), cover) for value in ("hunter1", "hunter2", "hunter1")]
    assert "hunter" not in str(found)
    assert found[0] == found[2] != found[1]
    assert found[0]["command"][3] == ["--max-num-batched-tokens", "2048"]
    assert found[0]["container_options"][1:] == ["--ipc=host", "--rm"]


def test_measured_starts_of_the_releases() -> None:
    stored = [
        {"starts": [{"release": "b", "began": 2, "tokens": 5}, {"release": "c", "began": 3}]},
        {"starts": [{"release": "a"}]},
        {},
    ]
    found = _traces.measured(stored, ["a", "b"])
    assert [(start["release"], start["tokens"]) for start in found] == [("a", None), ("b", 5)]
