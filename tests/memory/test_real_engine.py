# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory plan against the real engine: given its bytes, tokens and concurrency are predicted exactly.

Needs the lab's engine (`make lab`). The engines are plain processes on loopback, one after the other.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import (
    cache_info,
    engine_arguments,
    kv_dtype,
    startup_log,
    wire,
)
from ansible_collections.gb10.vllm.tests.contract import engines
from ansible_collections.gb10.vllm.tests.memory import layouts
from ansible_collections.gb10.vllm.tests.standin.server import Server

# No multiple of any block, so that rounding down is part of every figure.
KV_BYTES = 70_000_001
SMALL_BATCH = {"max_num_batched_tokens": 512}


def drafting(tokens: int) -> dict[str, Any]:
    return {"speculative_config": {"method": "mtp", "num_speculative_tokens": tokens}}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "grouped heads": ("GROUPED", {"max_model_len": 1000}),
    "smaller blocks": ("GROUPED", {"max_model_len": 2048, "block_size": 64}),
    "float32": ("GROUPED", {"max_model_len": 2048, "dtype": "float32"}),
    "fp8 cache": ("GROUPED", {"max_model_len": 2048, "kv_cache_dtype": "fp8"}),
    "some windows": ("WINDOWS", {"max_model_len": 4000, **SMALL_BATCH}),
    "some windows, short": ("WINDOWS", {"max_model_len": 600, **SMALL_BATCH}),
    "only windows": ("ALIKE", {"max_model_len": 4000, **SMALL_BATCH}),
    "delta nets, prefix caching": ("NETS", {"max_model_len": 3000, "enable_prefix_caching": True}),
    "delta nets, none": ("NETS", {"max_model_len": 3000, "enable_prefix_caching": False}),
    "delta nets, float32": ("NETS", {"max_model_len": 1000, "enable_prefix_caching": True, "dtype": "float32"}),
    "drafts, prefix caching": ("DRAFTS", {"max_model_len": 3000, "enable_prefix_caching": True, **drafting(2)}),
    "drafts, none": ("DRAFTS", {"max_model_len": 3000, "enable_prefix_caching": False, **drafting(4)}),
    "latent": ("LATENT", {"max_model_len": 2048}),
    "latent, longer": ("LATENT", {"max_model_len": 5000}),
}
# The CPU build refuses this case on a processor without AVX-512 or AMX; on one that has them the same engine says the following.
WIDE_ONLY = "fp8 cache"
WIDE = {"avx512f", "amx_tile"}
REFUSAL = "FP8 KV cache on CPU requires x86 with AVX-512 or AMX."
ON_A_WIDE_PROCESSOR = {
    "block_size": 128, "num_gpu_blocks": 712, "kv_cache_size_tokens": 91136, "kv_cache_max_concurrency": 44.5,
    "kv_cache_memory_bytes": KV_BYTES, "version": "0.32.0", "batched_tokens": 4096,
}  # fmt: skip
# What no argument says: the blocks that the CPU's kernels want, and that it keeps one batch in flight.
CPU = {"batches_in_flight": 1}
CPU_BLOCKS = {"GROUPED": 128, "WINDOWS": 128, "ALIKE": 128, "NETS": 128, "DRAFTS": 128, "LATENT": 16}


def predict(model: str, options: dict[str, Any], version: str, batched: int, ranks: int = 1) -> dict[str, Any]:
    """Our figures for an engine that was started in this way."""
    block = engine_arguments.engine_block({"max_num_batched_tokens": batched, **options})
    block = {"block_size": CPU_BLOCKS[model], **block, **CPU, "tensor_parallel_size": ranks}
    block.pop("utilization")
    (kind,) = kv_dtype.resolve_kv_dtype(block.pop("kv_cache_dtype", "auto"), "", version)
    return wire.capacity(getattr(layouts, model), block, KV_BYTES, version, kind)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every engine said of its cache, by case."""
    real, tiny = engines.real(), engines.newest("models/[!.]*")
    folder = tmp_path_factory.mktemp("layouts")
    for name in CPU_BLOCKS:
        layouts.write(folder / name, getattr(layouts, name), tiny)
    common = {"kv_cache_memory_bytes": KV_BYTES, "gpu_memory_utilization": 0.05}
    cases = [{"model": f"/models/tiny/{name}", **common, **options} for name, options in CASES.values()]
    architectures = sorted({"Qwen3NextMTP", *(getattr(layouts, name)["architectures"][0] for name in CPU_BLOCKS)})
    done = subprocess.run(
        [
            *(str(folder) if word == str(tiny) else word for word in real.python),
            "-",
            json.dumps(cases),
            json.dumps(architectures),
        ],
        input=Path(__file__).with_name("many_engines.py").read_text(),
        env={**os.environ, **real.env, "VLLM_ENABLE_V1_MULTIPROCESSING": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=True,
    )
    (folder / "log").write_text(done.stdout)
    lines = [line.split(" ", 2) for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    found = {list(CASES)[int(number)]: json.loads(text) for _word, number, text in lines}
    assert found, done.stdout[-4000:]
    if REFUSAL in done.stdout:
        assert not WIDE & set(Path("/proc/cpuinfo").read_text().split()), "refused on a processor that has them"
        found[WIDE_ONLY] = ON_A_WIDE_PROCESSOR
    return found


def test_the_record_is_what_the_engine_says_where_it_can(said: dict[str, dict[str, Any]]) -> None:
    assert said[WIDE_ONLY] == ON_A_WIDE_PROCESSOR


@pytest.mark.parametrize("case", CASES)
def test_tokens_and_concurrency_are_the_engines_own(said: dict[str, dict[str, Any]], case: str) -> None:
    model, options = CASES[case]
    assert case in said, "this engine did not start"
    engine = said[case]
    ours = predict(model, options, engine["version"], engine["batched_tokens"])
    assert (ours["block_size"], ours["blocks"]) == (engine["block_size"], engine["num_gpu_blocks"])
    assert ours["tokens"] == engine["kv_cache_size_tokens"]
    assert ours["concurrency"] == engine["kv_cache_max_concurrency"]


def test_two_ranks_through_log_and_metrics(tmp_path: Path) -> None:
    """A server with two ranks; its log and its metrics are read by what reads them on a host."""
    real, tiny = engines.real(), engines.newest("models/[!.]*")
    folder = layouts.write(tmp_path / "model", layouts.GROUPED, tiny)
    vllm = [str(folder) if word == str(tiny) else word for word in real.vllm]
    options = ["--load-format=dummy", "--enforce-eager", "--gpu-memory-utilization=0.05", "--max-num-seqs=8", "--max-model-len=2048",
               f"--kv-cache-memory-bytes={KV_BYTES}", "--tensor-parallel-size=2", "--distributed-executor-backend=mp"]  # fmt: skip
    command = [*vllm, "serve", "/models/tiny", *options, "--host=127.0.0.1", "--port={port}"]
    with Server(command, tmp_path / "log", {**real.env, "OMP_NUM_THREADS": "1"}) as server:
        server.wait_log("Application startup complete", real.patience)
        assert not server.ended(), server.tail()
        (info,) = cache_info.read_cache_info(server.get("/metrics").body.decode())
        figures = startup_log.read_start(server.log.splitlines())
    ours = predict("GROUPED", {"max_model_len": 2048}, figures.version, 2048, ranks=2)
    assert info.kv_bytes == KV_BYTES
    assert (ours["block_size"], ours["blocks"]) == (info.block_size, info.blocks)
    assert (ours["tokens"], ours["concurrency"]) == (info.tokens, info.concurrency)
    assert (figures.kv_tokens, figures.max_model_len) == (info.tokens, 2048)
    assert figures.concurrency == pytest.approx(ours["concurrency"], abs=0.005)
