# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What phase a start is in, from lines of real logs, and how a line is shown."""

from __future__ import annotations

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _phase

ENGINE = "(EngineCore_DP0 pid=271) INFO 09-29 10:11:12 [core.py:93] "
# One line per phase, in the order of a start.
START = [
    ("starting the container", "Started vllm.service - vLLM engine, release in /etc/gb10-vllm/current."),
    ("importing", "(APIServer pid=1) INFO 09-29 10:11:10 [api_server.py:1200] vLLM API server version 0.33.0"),
    ("creating the engine", ENGINE + "Initializing a V1 LLM engine (v0.33.0) with config: model='m'"),
    (
        "joining the pair",
        ENGINE + "world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://192.0.2.1:29501 backend=nccl",
    ),
    ("loading weights", ENGINE + "Starting to load model m..."),
    ("loading weights", "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:01<00:01,  1.2s/it]"),
    ("loaded weights", ENGINE + "Loading weights took 12.34 seconds"),
    ("compiling", ENGINE + "Dynamo bytecode transform time: 4.56 s"),
    ("sizing the KV cache", ENGINE + "GPU KV cache size: 1,080,000 tokens"),
    ("warming up", "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|██████████| 67/67"),
    (
        "opening the port",
        "(APIServer pid=1) INFO 09-29 10:12:12 [api_server.py:1600] Starting vLLM API server 0 on http://0.0.0.0:8000",
    ),
    ("ready", "(APIServer pid=1) INFO:     Application startup complete."),
]


@pytest.mark.parametrize("count", range(1, len(START) + 1))
def test_phase(count: int) -> None:
    assert _phase.phase(line for _name, line in START[:count]) == START[count - 1][0]


@pytest.mark.parametrize("lines", [[], ["something else"], [""]])
def test_unknown_lines_leave_the_phase(lines: list[str]) -> None:
    assert _phase.phase(lines, before="warming up") == "warming up"
    assert _phase.phase(lines) == "starting the container"


def test_unknown_lines_after_a_known_one() -> None:
    assert _phase.phase([START[4][1], "something else"]) == "loading weights"


@pytest.mark.parametrize(
    ("line", "short"),
    [
        ("(EngineCore_DP0 pid=271) INFO 09-29 10:11:12 [core.py:93] Starting", "Starting"),
        ("(EngineCore_DP0 pid=1) (Worker_TP0 pid=2) WARNING 09-29 10:11:12 [a.py:1] b", "b"),
        ("(APIServer pid=1) INFO:     Application startup complete.", "INFO:     Application startup complete."),
        ("INFO 09-29 10:11:12 no file", "no file"),
        ("  plain  ", "plain"),
        ("", ""),
        ("x" * 90, "x" * 90),
        ("x" * 91, "x" * 89 + "…"),
    ],
)
def test_short(line: str, short: str) -> None:
    assert _phase.short(line) == short
