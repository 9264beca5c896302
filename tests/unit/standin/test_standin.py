# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only the stand-in can do: its fault switches, its pair over two processes, its argument check.

What it shares with the real server is in tests/contract.
"""

from __future__ import annotations

import http.client
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.standin import vllm_standin
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server, free_port, wait_until

CHAT = "/v1/chat/completions"
QUICK = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.001"}
Start = Callable[..., Server]


def ask(text: str = "hello there", **more: Any) -> dict[str, Any]:
    return {"model": "tiny", "messages": [{"role": "user", "content": text}], **more}


def content(body: Any) -> str:
    return str(body["choices"][0]["message"]["content"])


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts stand-ins; ends what is left of them with the test."""
    with ExitStack() as stack:

        def run(*options: str, **env: str) -> Server:
            command = [*STAND_IN, "serve", "/models/tiny", "--served-model-name", "tiny"]
            command += ["--host", "127.0.0.1", "--port", "{port}", *options]
            settings = {**QUICK, **{f"STANDIN_{name.upper()}": value for name, value in env.items()}}
            log = tmp_path / f"log-{time.monotonic_ns()}"
            return stack.enter_context(Server(command, log, settings))

        yield run


@pytest.mark.parametrize(
    ("name", "text"), [("refuse_memory", "less than desired GPU memory utilization"), ("exit_loading", "told to fail")]
)
def test_failed_start_ends_with_1(start: Start, name: str, text: str) -> None:
    server = start(**{name: "1"})
    assert server.wait_end() == 1
    assert text in server.log
    assert "Engine core initialization failed." in server.log.splitlines()[-1]
    assert "startup complete" not in server.log


def test_context_that_does_not_fit_the_kv_cache_ends_with_1(start: Start) -> None:
    server = start("--max-model-len", "4096", kv_tokens="4000")
    assert server.wait_end() == 1
    assert "To serve at least one request with the model's max seq len (4096)" in server.log


def test_short_kv_is_reported_everywhere(start: Start) -> None:
    server = start("--max-model-len", "2048", kv_tokens="5120").wait_ready()
    assert "KV cache size: 5,120 tokens, Maximum concurrency for 2,048 tokens per request: 2.50x" in server.log
    info = next(series for series in server.metrics() if series.startswith("vllm:cache_config_info"))
    assert 'kv_cache_size_tokens="5120"' in info
    assert 'kv_cache_max_concurrency="2.5"' in info


def test_exit_after_is_an_engine_death_with_code_0(start: Start) -> None:
    server = start(exit_after="0.3").wait_ready()
    assert server.wait_end() == 0
    assert "EngineDeadError" in server.log


def test_faults_are_switched_on_and_off_while_it_runs(start: Start, tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    server = start(faults_file=str(faults)).wait_ready()
    assert content(server.post(CHAT, ask("What is the capital of France?")).json) == "Paris"
    faults.write_text(json.dumps({"garbage": True}))
    garbage = server.post(CHAT, ask("What is the capital of France?"))
    assert (garbage.status, "Paris" in content(garbage.json)) == (200, False)
    faults.write_text("{half")
    assert content(server.post(CHAT, ask("What is the capital of France?")).json) == "Paris"


def test_hang_leaves_health_green_and_ends_with_the_fault(start: Start, tmp_path: Path) -> None:
    faults = tmp_path / "faults.json"
    faults.write_text('{"hang": true}')
    server = start(faults_file=str(faults)).wait_ready()
    with pytest.raises(TimeoutError):
        server.post(CHAT, ask(), seconds=0.5)
    assert server.get("/health").status == 200
    # the client that gave up is noticed, as by the real server
    wait_until(lambda: server.total("vllm:num_requests_running") == 0, 5, lambda: "the hung request to be given up")
    faults.write_text("{}")
    assert server.post(CHAT, ask(max_tokens=2)).status == 200


@pytest.mark.parametrize(("value", "health", "models"), [("1", 503, 503), ("generate", 200, 200)])
def test_fast_503(start: Start, value: str, health: int, models: int) -> None:
    server = start(fast_503=value).wait_ready()
    reply = server.post(CHAT, ask())
    assert (reply.status, reply.json["error"]["code"]) == (503, 503)
    assert (server.get("/health").status, server.get("/v1/models").status) == (health, models)


def test_stream_cut_by_a_reset(start: Start) -> None:
    server = start(reset_stream="2").wait_ready()
    events = server.stream(CHAT, ask(max_tokens=50))
    assert json.loads(next(events))["choices"][0]["delta"]["role"] == "assistant"
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        list(events)


def test_never_answer(start: Start) -> None:
    server = start(never_answer="1").wait_ready()
    for path in ("/health", "/v1/models"):
        with pytest.raises(TimeoutError):
            server.get(path, seconds=0.3)


def test_queue_limit_answers_503_and_gauges_show_the_queue(start: Start) -> None:
    server = start("--max-num-seqs", "1", "--max-num-queued-reqs", "1", token_seconds="0.05").wait_ready()
    threads = [threading.Thread(target=server.post, args=(CHAT, ask(max_tokens=30))) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.total("vllm:num_requests_waiting") == 1, 5, lambda: "one request in the queue")
    assert server.total("vllm:num_requests_running") == 1
    assert 0 < server.total("vllm:kv_cache_usage_perc") < 1
    assert server.post(CHAT, ask(max_tokens=1)).status == 503
    for thread in threads:
        thread.join()
    assert server.total("vllm:request_success_total", 'finished_reason="length"') == 2


def test_sigterm_without_a_timeout_aborts_at_once(start: Start) -> None:
    server = start(token_seconds="0.05").wait_ready()
    events = server.stream(CHAT, ask(max_tokens=1000))
    next(events)
    server.process.terminate()
    rest = list(events)
    assert rest[-1] == "[DONE]"
    assert json.loads(rest[-2])["choices"][0]["finish_reason"] == "abort"
    assert server.wait_end() == 0


def test_first_sigterm_while_loading_is_lost(start: Start) -> None:
    server = start(load_seconds="1")
    server.wait_log("Starting to load model")
    server.process.terminate()
    server.wait_ready()
    assert server.get("/health").status == 200
    server.process.terminate()
    assert server.wait_end() == 0


def test_second_sigterm_while_loading_ends_it(start: Start) -> None:
    server = start(load_seconds="15")
    server.wait_log("Starting to load model", 20)
    server.process.terminate()
    time.sleep(0.2)  # two signals in one moment are one
    server.process.terminate()
    assert server.wait_end() == 0


def test_sigterm_during_imports_kills(start: Start) -> None:
    server = start(load_seconds="100")
    server.wait_log("non-default args")
    server.process.terminate()
    assert server.wait_end() == -signal.SIGTERM


class TestPair:
    def pair(self, start: Start) -> tuple[Server, Server]:
        options = ["--tensor-parallel-size", "2", "--nnodes", "2", "--master-addr", "127.0.0.1"]
        options += ["--master-port", str(free_port())]
        follower = start(*options, "--node-rank", "1", "--headless")
        return start(*options, "--node-rank", "0"), follower

    def test_serves_on_the_head_only(self, start: Start) -> None:
        head, follower = self.pair(start)
        head.wait_ready()
        follower.wait_log("Waiting for work")
        assert head.post(CHAT, ask(max_tokens=2)).status == 200
        assert not follower.listening()

    def test_head_waits_for_its_follower(self, start: Start) -> None:
        head = start("-tp", "2", "--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port()))
        head.wait_log("Initializing a V1 LLM engine")
        time.sleep(1)  # five times its load time: that nothing happens can only be seen by looking for a while
        assert "Starting to load model" not in head.log
        assert not head.listening()

    def test_lost_follower_is_noticed_by_the_next_request(self, start: Start) -> None:
        head, follower = self.pair(start)
        head.wait_ready()
        follower.process.kill()
        follower.wait_end()
        wait_until(lambda: head.get("/health").status == 200, 10, lambda: "a green health")
        wait_until(lambda: self.refuses(head), 20, lambda: "a 500")
        assert head.wait_end() == 0

    def refuses(self, head: Server) -> bool:
        return head.post(CHAT, ask(max_tokens=1)).status == 500

    def test_follower_outlives_its_head(self, start: Start) -> None:
        head, follower = self.pair(start)
        head.wait_ready()
        head.process.kill()
        head.wait_end()
        time.sleep(0.5)  # that it stays can only be seen by looking for a while
        assert follower.process.poll() is None
        follower.process.terminate()
        assert follower.wait_end() == 0


class TestArguments:
    RECIPES = (
        """serve local-inference-lab/Qwen3.8-Flash-Next-NVFP4 --served-model-name flash --tensor-parallel-size 1
        --pipeline-parallel-size 1 --max-model-len 262144 --max-num-seqs 8 --max-num-batched-tokens 4096
        --enable-chunked-prefill --enable-prefix-caching --mamba-cache-mode align --block-size 16 --dtype bfloat16
        --kv-cache-dtype fp8 --quantization modelopt_mixed --load-format b12x --linear-backend b12x --moe-backend b12x
        --gdn-decode-kernel b12x --no-enable-flashinfer-autotune
        --speculative-config {"method":"mtp","num_speculative_tokens":4} --reasoning-parser qwen3
        --tool-call-parser qwen3_xml --enable-auto-tool-choice --mm-encoder-tp-mode data
        --compilation-config {"pass_config":{"fuse_act_quant":true}} --gpu-memory-utilization 0.8
        --trust-remote-code --host 0.0.0.0 --port 8000 --shutdown-timeout 60""",
        """serve nvidia/Qwen3.8-Flash-Next-NVFP4 -tp 2 --max-num-seqs 16 --gpu-memory-utilization 0.7
        --load-format safetensors --speculative-config {"method":"mtp","moe_backend":"triton"} --nnodes 2 --node-rank 1
        --master-addr 192.0.2.1 --master-port 29501 --headless""",
        "serve m --max_model_len=256k --api-key a b",
    )

    @pytest.mark.parametrize("words", RECIPES)
    def test_recipes_are_accepted(self, words: str) -> None:
        assert vllm_standin.parse(words.split()).subparser == "serve"

    @pytest.mark.parametrize(
        ("words", "named"),
        [
            ("serve m --max-modellen 5", "--max-modellen"),
            ("serve m --max-model 5", "--max-model"),
            ("serve m --port high", "--port"),
            ("serve m --dtype int3", "--dtype"),
            ("serve m --speculative-config {x", "--speculative-config"),
            ("serve m --max-num-seqs", "--max-num-seqs"),
            ("start m", "start"),
        ],
    )
    def test_mistakes_are_named(self, words: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as end:
            vllm_standin.parse(words.split())
        assert end.value.code == 2
        assert named in capsys.readouterr().err.splitlines()[-1]

    @pytest.mark.parametrize(
        ("text", "number"), [("4096", 4096), ("4k", 4000), ("4K", 4096), ("25.6k", 25600), ("1M", 2**20)]
    )
    def test_numbers(self, text: str, number: int) -> None:
        assert vllm_standin.human_int(text) == number


def test_answers_are_deterministic_and_as_long_as_asked() -> None:
    first, reason = vllm_standin.answer("the same prompt", 7)
    assert vllm_standin.answer("the same prompt", 7) == (first, "length")
    assert (len(first), reason) == (7, "length")
    assert vllm_standin.answer("another prompt", 7)[0] != first
    assert vllm_standin.answer("What is the capital of France? Answer with one word.", 50) == (
        [("content", "Paris")],
        "stop",
    )


CAPITAL = ask("What is the capital of France? Answer with one word.", max_tokens=16)


@pytest.mark.parametrize(
    ("settings", "content", "reasoning", "finish"),
    [
        ({}, "Paris", None, "stop"),
        ({"empty": "1"}, "", None, "stop"),
        ({"repeat": "1"}, "Paris" + " Paris" * 15, None, "length"),
        ({"abort": "1"}, "", None, "abort"),
        ({"error_event": "1"}, "Paris", None, "stop"),
        ({"think": "1"}, "Paris", "Let me think about this.", "stop"),
        ({"think": "all"}, None, "Let me think about this." + "".join(f" step{i}" for i in range(6, 16)), "length"),
    ],
)
def test_answers_of_faults(
    start: Start, settings: dict[str, str], content: str | None, reasoning: str | None, finish: str
) -> None:
    server = start(**settings).wait_ready()
    (choice,) = server.post(CHAT, CAPITAL).json["choices"]
    assert (choice["message"]["content"], choice["message"]["reasoning"]) == (content, reasoning)
    assert choice["finish_reason"] == finish
    *events, last = server.stream(CHAT, CAPITAL)
    assert last == "[DONE]"
    decoded = [json.loads(event) for event in events]
    if "error_event" in settings:
        assert decoded.pop()["error"]["code"] == 500
        content = "Paris"
    deltas = [event["choices"][0]["delta"] for event in decoded]
    assert "".join(delta.get("content") or "" for delta in deltas) == (content or "")
    assert "".join(delta.get("reasoning") or "" for delta in deltas) == (reasoning or "")
    assert decoded[-1]["choices"][0]["finish_reason"] == finish
