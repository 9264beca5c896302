# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a dead or late engine's log and unit are taken for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _failure, _failure_texts

CORE = "(EngineCore_DP0 pid=271) ERROR 11-29 10:11:12 [core.py:93] "
API = "(APIServer pid=1) "
ROOT = (
    API
    + "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}"
)
FREE = (
    "ValueError: Free memory on device cuda:0 (40.12/121.63 GiB) on startup is less than desired GPU memory utilization "
    "(0.8, 97.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)
KV = (
    "ValueError: To serve at least one request with the model's max seq len (262144), (9.5 GiB KV cache is needed, which is "
    "larger than the available KV cache memory (4.25 GiB). {}Try increasing `gpu_memory_utilization` or decreasing "
    "`max_model_len` when initializing the engine."
)
MOST = "Based on the available memory, the estimated maximum model length is 117264. "
HUB = (
    "MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /m/resolve\")"
)


@pytest.mark.parametrize(
    ("kind", "line", "sentence"),
    [
        ("memory_refused", CORE + FREE, "the memory was refused: 40.12 of 121.63 GiB were free, gpu-memory-utilization 0.8 asks for 97.3 GiB"),
        (
            "memory_refused",
            "ValueError: Free memory on device cuda:0 (1.0/2.0 GiB) on startup is less than the engine's budget after excluding "
            "external process's weights (0.5, 1.5 GiB). Decrease",
            "the memory was refused: 1.0 of 2.0 GiB were free, gpu-memory-utilization 0.5 asks for 1.5 GiB",
        ),
        (
            "memory_refused",
            "ValueError: Free memory on device (40.12/121.63 GiB) on startup is less than desired GPU memory utilization (0.9, 109.47 GiB)",
            "the memory was refused: 40.12 of 121.63 GiB were free, gpu-memory-utilization 0.9 asks for 109.47 GiB",
        ),
        ("memory_changed", CORE + "AssertionError: Error in memory profiling. Initial free memory 3 GiB", "another process released memory"),
        ("kv_too_small", CORE + KV.format(MOST), "max-model-len 262144: 117264 tokens would fit"),
        ("kv_too_small", CORE + KV.format(""), "the KV cache is too small for one request of max-model-len 262144"),
        ("kv_too_small", "ValueError: No available memory for the cache blocks. Try", "nothing was left for the KV cache"),
        ("kv_too_small", "ValueError: Cannot auto-fit max_model_len: not enough", "nothing was left for the KV cache"),
        ("parser_refused", "KeyError: 'invalid tool call parser: qwen9 (chose from { hermes,qwen3_xml })'", "no tool call parser named qwen9"),
        ("parser_refused", "KeyError: 'invalid reasoning parser: r9 (chose from { qwen3 })'", "no reasoning parser named r9"),
        ("parser_refused", "KeyError: \"Reasoning parser 'r9' not found. Available parsers: qwen3\"", "no Reasoning parser named r9"),
        ("bad_argument", "vllm: error: unrecognized arguments: --no-such 5", "refused its arguments: unrecognized arguments: --no-such 5"),
        ("bad_argument", "vllm serve: error: argument --dtype: invalid choice: 'int3'", "argument --dtype: invalid choice: 'int3'"),
        ("bad_argument", "api_server.py: error: argument --port: x", "argument --port: x"),
        ("bad_argument", "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser", "requires --tool-call-parser"),
        ("bad_argument", "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", "refused its configuration: ModelConfig"),
        ("port_taken", "OSError: [Errno 98] Address already in use", "a port that the engine needs is taken"),
        ("port_taken", "docker: Error response from daemon: Bind for 0.0.0.0:8000 failed: port is already allocated.", "a port"),
        ("offline_lookup", HUB, "looked for a file of the model on the network"),
        ("offline_lookup", "NameResolutionError: Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure)", "on the network"),
        ("offline_lookup", "OSError: We couldn't connect to 'https://huggingface.co' to load the files", "on the network"),
        ("offline_lookup", "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find", "on the network"),
        ("weights_incomplete", "RuntimeError: Cannot find any model weights with `/models/tiny`", "missing or damaged"),
        ("weights_incomplete", "OSError: /m does not appear to have a file named config.json", "missing or damaged"),
        ("image_missing", "docker: Error response from daemon: manifest for r/i@sha256:1 not found: manifest unknown.", "no such image"),
        ("image_missing", "docker: Error response from daemon: No such image: r/i@sha256:1", "no such image"),
        ("disk_full", "OSError: [Errno 28] No space left on device: '/root/.cache'", "a disk of this host is full"),
        ("device_memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "the GPU ran out of memory"),
        ("device_memory", "RuntimeError: CUDA error: out of memory", "the GPU ran out of memory"),
        ("device", "RuntimeError: CUDA error: unspecified launch failure", "could not be used unspecified launch failure"),
        ("device", 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].', "could not be used"),
        ("pair", "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms", "the ranks of the pair"),
    ],
)  # fmt: skip
def test_named_causes(kind: str, line: str, sentence: str) -> None:
    """The cause stands in the middle of a log, and the last line says nothing."""
    lines = [
        API + "INFO 11-29 10:11:10 [a.py:1] vLLM API server version 0.32.0",
        line,
        "Traceback (most recent call last):",
        ROOT,
    ]
    seen = _failure.classify(lines, {"ActiveState": "failed", "Result": "exit-code", "ExecMainStatus": "1"})
    assert (seen.kind, sentence in seen.sentence) == (kind, True), seen
    assert seen.advice
    assert not seen.sentence.endswith(".")


LOADED = API + "INFO:     Application startup complete."
SHUTDOWN = API + "INFO 11-29 10:11:12 [launcher.py:254] [shutdown] API server: shutdown triggered"
DEAD = [
    API
    + "ERROR 11-29 10:11:12 [async_llm.py:787] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. "
    "See stack trace (above) for the root cause."
]


def unit(active: str, result: str, status: str) -> dict[str, str]:
    return {"ActiveState": active, "Result": result, "ExecMainStatus": status}


WAITS = ("activating", "success", "0")


@pytest.mark.parametrize(
    ("kind", "lines", "state", "words"),
    [
        ("engine_dead", [LOADED, *DEAD], WAITS, "core died and the server ended with exit status 0"),
        ("engine_dead", [LOADED, *DEAD], ("failed", "exit-code", "1"), "exit status 1"),
        ("engine_dead", [LOADED, *DEAD, SHUTDOWN], WAITS, "core died"),
        ("engine_dead", [LOADED, "RuntimeError: Engine core process EngineCore_DP0 died unexpectedly."], WAITS, "died unexpectedly"),
        ("stopped", [LOADED, SHUTDOWN, *DEAD], WAITS, "stopped from outside"),
        ("stopped", [LOADED, SHUTDOWN], WAITS, "stopped from outside"),
        ("stopped", [LOADED], ("inactive", "success", "0"), "stopped from outside"),
        ("stopped", [LOADED], ("deactivating", "success", "0"), "stopped from outside"),
        ("stopped", [], ("activating", "exit-code", "143"), "stopped from outside"),
        ("stopped", [], ("failed", "signal", "15"), "stopped from outside"),
        ("killed", [LOADED], ("activating", "exit-code", "137"), "by SIGKILL"),
        ("killed", [LOADED], ("failed", "signal", "9"), "by SIGKILL"),
        ("killed", [LOADED], ("failed", "signal", "11"), "signal 11"),
        ("killed", [CORE + FREE], ("failed", "oom-kill", "137"), "host ran out of memory"),
        ("bad_argument", ["what is this?"], ("failed", "exit-code", "2"), "(exit status 2): what is this?"),
        ("container", ['docker: Error response from daemon: Conflict. The container name "/vllm" is in use.'], ("failed", "exit-code", "125"),
         'Conflict. The container name "/vllm" is in use.'),
        ("container", ["exec: vllm: not found"], ("failed", "exit-code", "127"), "exit status 127"),
        ("gave_up", ["RuntimeError: odd"], ("failed", "start-limit-hit", "1"), "after several failed starts: RuntimeError: odd"),
        ("ended", [LOADED], WAITS, "exit status 0 though nobody stopped it"),
        ("unknown", [CORE + "RuntimeError: odd", ROOT], ("failed", "exit-code", "1"), "RuntimeError: odd"),
        ("unknown", [LOADED], ("active", "success", "0"), "Application startup complete."),
        ("unknown", [], ("active", "success", "0"), ""),
    ],
)  # fmt: skip
def test_ends(kind: str, lines: list[str], state: tuple[str, str, str], words: str) -> None:
    seen = _failure.classify(lines, unit(*state))
    assert (seen.kind, words in seen.sentence) == (kind, True), seen
    assert seen.advice


def test_the_engines_words_win_over_its_status_and_later_lines_over_earlier_ones() -> None:
    lines = ["vllm: error: argument --x: old", "vllm: error: argument --x: new"]
    assert _failure.classify(lines, unit("failed", "exit-code", "137")).sentence.endswith("argument --x: new")


def test_a_container_that_the_kernel_killed() -> None:
    assert _failure.classify([], {}, {"oom_killed": True}).kind == "killed"
    assert _failure.classify([], {}, {"oom_killed": False}).kind == _failure.UNKNOWN


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([CORE + "ValueError: cause", CORE + "EngineCore failed to start.", ROOT], "ValueError: cause"),
        (["odd.Thing.WeirdException: deep", "ERROR 11-29 10:11:12 [a.py:1] it failed", "bye"], "odd.Thing.WeirdException: deep"),
        (["ERROR 11-29 10:11:12 [a.py:1] a request failed: ERROR", "INFO 11-29 10:11:12 [a.py:1] bye"], "a request failed: ERROR"),
        (["loading", "Traceback (most recent call last):", '  File "x.py", line 1, in y', "    ^^^^"], "loading"),
        (["loading", "vllm.service: Main process exited, code=exited, status=1/FAILURE"], "loading"),
        (["x" * 500], "x" * 199 + "…"),
        ([], ""),
    ],
)  # fmt: skip
def test_last_words(lines: list[str], words: str) -> None:
    assert _failure.last_words(lines) == words


@pytest.mark.parametrize(
    "line",
    [
        LOADED,
        "(Worker pid=1) INFO 11-29 10:11:12 [gpu_worker.py:1] Free memory on device (100.0/121.63 GiB) on startup. Desired GPU memory "
        "utilization is (0.8, 97.3 GiB). Actual usage is 1 GiB",
        API
        + "INFO 11-29 10:11:12 [config.py:1] HF_HUB_OFFLINE is True, replace model_id with /root/.cache/huggingface/x",
        API + "INFO 11-29 10:11:12 [a.py:1] Resolved architecture: Qwen3ForCausalLM",
        API + "INFO 11-29 10:11:12 [a.py:1] Available routes are: /v1/chat/completions",
        "Unable to find image 'r/i@sha256:1' locally",
        "UserWarning: CUDA initialization: no driver",
        API + "INFO 11-29 10:11:12 [a.py:1] Setting max_model_len to 262144",
    ],
)
def test_lines_of_good_starts_name_nothing(line: str) -> None:
    assert _failure.classify([line], unit("active", "success", "0")).kind == _failure.UNKNOWN


def test_every_text_has_a_way_out() -> None:
    for rule, other in itertools.pairwise([*_failure_texts.RULES, None]):
        assert rule is not None
        assert rule.advice
        assert rule.sentence
        assert other is None or rule.pattern != other.pattern


def test_nothing_at_all() -> None:
    nothing: Any = _failure.classify([])
    assert (nothing.kind, nothing.sentence) == (_failure.UNKNOWN, "")
