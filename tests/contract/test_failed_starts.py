# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts that fail and servers that die: exit status, log, and the cause that is read from them.

Asserted of the real server and of the stand-in alike; every test starts its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _failure
from ansible_collections.gb10.vllm.tests.contract.engines import ENGINES, LENGTH, Engine
from ansible_collections.gb10.vllm.tests.standin.server import Server

GOOD = ["--max-model-len", "1k", "--tool-call-parser", "hermes", "--enable-auto-tool-choice", "--kv-cache-dtype", "fp8"]


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()


def named_cause(server: Server, status: int) -> tuple[str, str]:
    """Kind and sentence of the failure, from the log and the way systemd would see the end."""
    ended = {"ActiveState": "activating", "Result": "exit-code" if status else "success", "ExecMainStatus": str(status)}
    failure = _failure.classify(server.log.splitlines(), ended)
    return failure.kind, failure.sentence


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--no-such-option"], "unrecognized arguments: --no-such-option"),
        (["--dtype", "int3"], "argument --dtype: invalid choice: 'int3'"),
    ],
)
def test_mistaken_option_ends_with_2(engine: Engine, tmp_path: Path, options: list[str], named: str) -> None:
    with engine.serve(tmp_path / "log", options) as server:
        assert server.wait_end(engine.patience) == 2
        assert named in server.log
        kind, sentence = named_cause(server, 2)
        assert kind == "bad_argument"
        assert named in sentence


@pytest.mark.parametrize(
    "options", [["--enable-auto-tool-choice", "--tool-call-parser", "parser9"], ["--reasoning-parser", "parser9"]]
)
def test_unknown_parser_ends_with_1(engine: Engine, tmp_path: Path, options: list[str]) -> None:
    with engine.serve(tmp_path / "log", ["--port", "{port}", *options]) as server:
        assert server.wait_end(engine.patience) == 1
        kind, sentence = named_cause(server, 1)
        assert kind == "parser_refused"
        assert sentence.endswith("parser named parser9")


def test_port_in_use_ends_with_1(engine: Engine, tmp_path: Path) -> None:
    with engine.serve(tmp_path / "log", ["--host", "127.0.0.1", "--port", "{port}"], port_taken=True) as server:
        assert server.wait_end(engine.patience) == 1
        assert "Address already in use" in server.log
        assert "Starting to load model" not in server.log
        assert named_cause(server, 1)[0] == "port_taken"


def test_failed_start_ends_with_1(engine: Engine, tmp_path: Path) -> None:
    with engine.serve(tmp_path / "log", ["--port", "{port}", *engine.refused_memory], engine.refused_env) as server:
        assert server.wait_end(engine.patience) == 1
        assert re.search(r"on startup is less than desired \w+ memory utilization", server.log)
        assert "Engine core initialization failed. See root cause above." in server.log
        assert named_cause(server, 1)[0] == "memory_refused"


def test_short_kv_cache_ends_with_1(engine: Engine, tmp_path: Path) -> None:
    options = ["--port", "{port}", "--max-model-len", str(LENGTH), *engine.short_kv]
    with engine.serve(tmp_path / "log", options, engine.short_kv_env) as server:
        assert server.wait_end(engine.patience) == 1
        assert f"To serve at least one request with the model's max seq len ({LENGTH})" in server.log
        kind, sentence = named_cause(server, 1)
        assert kind == "kv_too_small"
        assert f"max-model-len {LENGTH}" in sentence


def test_a_dead_core_ends_the_server_with_0(engine: Engine, tmp_path: Path) -> None:
    """So a restart on failure would never happen, and only the log tells it from a stop."""
    faults = tmp_path / "faults"
    options = ["--host", "127.0.0.1", "--port", "{port}", "--max-model-len", str(LENGTH)]
    with engine.serve(tmp_path / "log", options, {"STANDIN_FAULTS_FILE": str(faults)}) as server:
        server.wait_ready(engine.patience)
        engine.kill_core(server, faults)
        assert server.wait_end(30) == 0
        assert named_cause(server, 0)[0] == "engine_dead"


@pytest.mark.parametrize(
    ("options", "ok", "message"),
    [
        (
            [*GOOD, "-tp", "2", "--nnodes", "2", "--node-rank", "1", "--master-addr", "192.0.2.1", "--headless"],
            True,
            "",
        ),
        (["--no-such-option", "5"], False, "unrecognized arguments: --no-such-option 5"),
        (["--speculative-config", "{x"], False, "argument --speculative-config"),
        (["--enable-auto-tool-choice"], False, "--enable-auto-tool-choice requires --tool-call-parser"),
        (["--gpu-memory-utilization", "78"], False, "argument --gpu-memory-utilization: 78.0"),
    ],
)
def test_arguments_are_checked_without_a_start(
    engine: Engine, tmp_path: Path, options: list[str], ok: bool, message: str
) -> None:
    result = engine.check_arguments(options, tmp_path)
    assert result["ok"] is ok, result
    assert message in result["message"]
