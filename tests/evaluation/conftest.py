# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the collection importable, starts stand-ins that call tools, and runs the module's action against them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from ansible.playbook.task import Task
from ansible.plugins.loader import init_plugin_loader

init_plugin_loader([str(Path(__file__).resolve().parents[2] / ".collections")])

from ansible_collections.gb10.vllm.plugins.action import evaluate  # noqa: E402
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server  # noqa: E402

Start = Callable[..., Server]
OPTIONS = ("--served-model-name", "tiny", "--port", "{port}", "--host", "127.0.0.1", "--max-model-len", "40000")
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
RELEASE = {
    "topology": "replicated",
    "image": f"eugr/spark-vllm-b12x@sha256:{'1' * 64}",
    "model": "/models/tiny",
    "revision": "r1",
    "served_model_name": "tiny",
    "command": ["serve", "/models/tiny", "--max-num-seqs", "4"],
}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """start(tool_calls="text"): a ready stand-in with these switches."""
    with ExitStack() as stack:

        def begin(**switches: str) -> Server:
            quick = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.001"}
            log = tmp_path / f"engine-{len(list(tmp_path.iterdir()))}.log"
            environment = {**quick, **{f"STANDIN_{name.upper()}": value for name, value in switches.items()}}
            return stack.enter_context(
                Server([*STAND_IN, "serve", "/models/tiny", *OPTIONS, *TOOLS], log, environment)
            ).wait_ready()

        yield begin


@pytest.fixture
def test(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """test(server): the result of the module, with the real suite; it comes with the development tools."""

    def run(server: Server, check_mode: bool = False, **options: Any) -> dict[str, Any]:
        task = Task()
        task.check_mode = check_mode
        task.args = {
            "against": "spark1",
            "url": f"http://127.0.0.1:{server.port}",
            "releases": [{"name": "replicated-1", "record": RELEASE}],
            "thinking": False,
            "request": {"max_tokens": 60},
            "concurrency": 4,
            "seconds": 60,
            "venv": sys.prefix,
            "work_dir": str(tmp_path / "work"),
            **options,
        }
        plugin = evaluate.ActionModule(task, MagicMock(), MagicMock(), MagicMock(), MagicMock(), MagicMock())
        result: dict[str, Any] = plugin.run(task_vars={})
        return result

    return run
