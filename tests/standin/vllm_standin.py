#!/usr/bin/env python3
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for ``vllm serve``: the same command line, log, HTTP answers, metrics and exit codes, without a model.

It is one file of standard library so that it can be copied into an image as the command ``vllm``. What it must have in
common with the real server is written down as assertions in tests/contract; what follows is what only it can do.

Settings come from the environment (``STANDIN_`` and the name in capitals) or, also while it runs, from the JSON object
in the file named by STANDIN_FAULTS_FILE (keys as below; the file wins and is read again at every use). A switch is on
for 1 or true.

===============  =========================================================================================
name             what it does
===============  =========================================================================================
load_seconds     time from start to ready (default 2); large = slow load
token_seconds    time per generated token (default 0.01)
kv_tokens        size of the reported KV cache (default 40960); small = short KV
refuse_memory    ends with code 1 at start: the memory is not free, in the real server's words
exit_loading     ends with code 1 in the middle of loading
exit_after       engine dies that many seconds after it was ready; the process ends with code 0, as the real one does
hang             generation never ends, everything else works (/health 200)
garbage          generation answers 200 with nonsense
repeat           generation says one word again and again
empty            generation answers 200 without a word
abort            generation ends with the finish reason "abort" and without a word
error_event      a stream carries an error event after its first piece, then ends; whole answers are good
think            generation thinks first, in a field of its own; the value "all" thinks until no token is left
fast_503         every request is refused at once with 503; the value "generate" spares /health, /metrics, /v1/models
reset_stream     a stream is cut by a TCP reset after that many tokens
never_answer     connections are accepted, nothing is ever answered
tool_calls       how a tool is called: "text" as text that no parser took out, "json" with broken arguments, "schema" with an
                 argument that no tool has asked for, "parts" in a stream without the pieces that say which call they belong
                 to, "length" without end until no token is left, "never" with words instead of calls
error_beside     a request that comes while another one runs is answered 500
===============  =========================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import hmac
import itertools
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

VERSION = "0.32.0"
# Not all that the real one has; a parser plugin brings others.
PARSERS = {
    "tool call": "glm45 hermes jamba kimi_k2 llama3_json minimax_m2 mistral openai pythonic qwen3_coder qwen3_xml xlam",
    "reasoning": "deepseek_r1 deepseek_v3 glm45 granite kimi_k2 minimax_m2 mistral openai_gptoss qwen3 seed_oss step3",
}
STARTED = time.time()
WORDS = "time stone river light paper garden window morning silver bridge winter cloud harbour music letter field"


# --- Settings and faults ---------------------------------------------------------------------------------------------


def setting(name: str, default: Any = None) -> Any:
    """The value of a setting now: the faults file first, then the environment."""
    # A file that is missing or half written switches nothing: the writer is at work.
    with contextlib.suppress(OSError, ValueError):
        faults = json.loads(Path(os.environ.get("STANDIN_FAULTS_FILE") or os.devnull).read_text())
        if name in faults:
            return faults[name]
    return os.environ.get(f"STANDIN_{name.upper()}", default)


def switched(name: str) -> bool:
    return str(setting(name, "")).lower() not in ("", "0", "false", "none")


def seconds(name: str, default: float) -> float:
    return float(setting(name, default))


# --- Log and end -----------------------------------------------------------------------------------------------------


def log(text: str, process: str = "APIServer", level: str = "INFO") -> None:
    stamp = time.strftime("%m-%d %H:%M:%S")
    print(f"({process} pid={os.getpid()}) {level} {stamp} [standin.py:1] {text}", flush=True)


def log_web(text: str) -> None:
    print(f"(APIServer pid={os.getpid()}) INFO:     {text}", flush=True)


def leave(code: int) -> NoReturn:
    """End without waiting for threads that may hang on purpose."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def fail_start(error: str) -> NoReturn:
    log("EngineCore failed to start.", "EngineCore", "ERROR")
    log(error, "EngineCore", "ERROR")
    log("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", level="ERROR")
    leave(1)


# --- Command line ----------------------------------------------------------------------------------------------------


def human_int(text: str) -> int:
    """Whole numbers as vLLM reads them: 4096, 4k (thousands), 4K (1024)."""
    scales = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
    if text[-1:] in scales:
        return int(float(text[:-1]) * scales[text[-1]])
    return int(text)


def length(text: str) -> int:
    return -1 if text == "auto" else human_int(text)


def json_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Value {text} cannot be converted to JSON: {error}") from None


# Options whose value matters to nobody here, by the kind of their value.
OPTIONS = {
    "switch": """
        async-scheduling disable-log-stats disable-uvicorn-access-log enable-auto-tool-choice enable-chunked-prefill
        enable-expert-parallel enable-flashinfer-autotune enable-log-requests enable-prefix-caching
        enable-prompt-tokens-details enable-request-id-headers enable-server-load-tracking enable-sleep-mode
        enforce-eager headless language-model-only skip-mm-profiling trust-remote-code""",
    "text": """
        attention-backend chat-template download-dir gdn-decode-kernel generation-config host kv-cache-dtype
        linear-backend load-format mamba-ssm-cache-dtype master-addr moe-backend quantization reasoning-parser revision
        root-path tokenizer tokenizer-revision tool-call-parser tool-parser-plugin""",
    "number": """
        api-server-count data-parallel-size distributed-timeout-seconds kv-cache-memory-bytes
        long-prefill-token-threshold max-cudagraph-capture-size max-num-batched-tokens max-num-queued-reqs
        num-gpu-blocks-override seed""",
    "object": """
        additional-config compilation-config default-chat-template-kwargs hf-overrides kv-transfer-config
        limit-mm-per-prompt mm-processor-kwargs model-loader-extra-config override-generation-config speculative-config
        structured-outputs-config""",
}


def make_parser() -> argparse.ArgumentParser:
    main = argparse.ArgumentParser(prog="vllm", description="vLLM CLI", allow_abbrev=False)
    main.add_argument("-v", "--version", action="version", version=VERSION)
    main.add_argument("--check-arguments", action="store_true", help="stand-in only: parse, start nothing")
    serve = main.add_subparsers(dest="subparser", required=True).add_parser("serve", allow_abbrev=False)
    add = serve.add_argument
    add("model", nargs="?", default="Qwen/Qwen3-0.6B", metavar="model_tag")
    kinds: dict[str, dict[str, Any]] = {
        "switch": {"action": argparse.BooleanOptionalAction, "default": False},
        "text": {},
        "number": {"type": human_int},
        "object": {"type": json_value},
    }
    for kind, how in kinds.items():
        for name in OPTIONS[kind].split():
            add(f"--{name}", **how)
    add("--api-key", nargs="*", default=[])
    add("--block-size", type=int, default=16)
    add("--distributed-executor-backend", choices=("ray", "mp", "uni", "external_launcher"))
    add("--dtype", default="auto", choices=("auto", "bfloat16", "float", "float16", "float32", "half"))
    add("--gpu-memory-utilization", type=float, default=0.92)
    add("--mamba-cache-mode", default="none", choices=("all", "align", "none"))
    add("--master-port", type=int, default=29501)
    add("--max-model-len", type=length)
    add("--max-num-seqs", type=int, default=256)
    add("--mm-encoder-tp-mode", default="weights", choices=("weights", "data"))
    add("--nnodes", type=int, default=1)
    add("--node-rank", type=int, default=0)
    add("--pipeline-parallel-size", "-pp", type=int, default=1)
    add("--port", type=int, default=8000)
    add("--served-model-name", nargs="+")
    add("--shutdown-timeout", type=int, default=0)
    add("--tensor-parallel-size", "-tp", type=int, default=1)
    add("--uvicorn-log-level", default="info", choices=("critical", "error", "warning", "info", "debug", "trace"))
    return main


def parse(argv: list[str]) -> argparse.Namespace:
    # The real parser takes --max_model_len for --max-model-len; the value after "=" stays as it is.
    dashed = [
        "=".join([head.replace("_", "-"), *tail]) if (head + " ").startswith("--") else "=".join([head, *tail])
        for head, *tail in (word.split("=", 1) for word in argv)
    ]
    options = make_parser().parse_args(dashed)
    if options.enable_auto_tool_choice and not options.tool_call_parser:
        raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")
    if not 0 < options.gpu_memory_utilization <= 1:
        raise ValueError(f"argument --gpu-memory-utilization: {options.gpu_memory_utilization} is not in (0, 1]")
    options.names = options.served_model_name or [options.model]
    options.keys = options.api_key or [key for key in [os.environ.get("VLLM_API_KEY")] if key]
    return options


# --- Engine: requests, words, counters -------------------------------------------------------------------------------


class Gone(Exception):
    """The client has hung up."""


class Refused(Exception):
    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


class Piece(NamedTuple):
    """`text` of the field tool_calls is JSON: the pieces of calls as a stream has them."""

    field: str
    text: str
    reason: str

    def delta(self) -> dict[str, Any]:
        return {self.field: json.loads(self.text) if self.field == "tool_calls" else self.text}


class Observed:
    """A histogram, printed with cumulative buckets as the real server does."""

    def __init__(self, *bounds: float) -> None:
        self.bounds, self.counts, self.sum = [*bounds, float("inf")], [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[next(place for place, bound in enumerate(self.bounds) if value <= bound)] += 1
        self.sum += value

    def lines(self, name: str, labels: str) -> list[str]:
        cumulated = [float(number) for number in itertools.accumulate(self.counts)]
        marks = [str(float(bound)).replace("inf", "+Inf") for bound in self.bounds]
        rows = [f'{name}_bucket{{{labels},le="{mark}"}} {n}' for mark, n in zip(marks, cumulated, strict=True)]
        return [
            f"# TYPE {name} histogram",
            *rows,
            f"{name}_count{{{labels}}} {cumulated[-1]}",
            f"{name}_sum{{{labels}}} {self.sum}",
        ]


class Engine:
    def __init__(self, options: argparse.Namespace, max_model_len: int) -> None:
        self.options = options
        self.max_model_len = max_model_len
        self.kv_tokens = int(setting("kv_tokens", 40960))
        self.lock = threading.Condition()
        self.running = self.waiting = self.kv_used = 0
        self.prompt_tokens = self.generation_tokens = 0
        self.finished = dict.fromkeys(("stop", "length", "abort", "error", "repetition"), 0)
        self.times = {
            "time_to_first_token_seconds": Observed(0.001, 0.01, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160),
            "inter_token_latency_seconds": Observed(0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 20, 40, 80),
            "e2e_request_latency_seconds": Observed(0.3, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 240, 480, 960, 1920),
            "request_queue_time_seconds": Observed(0.3, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 240, 480, 960, 1920),
        }
        self.draining = False  # after SIGTERM: no new requests
        self.aborted = threading.Event()  # running requests end now
        self.follower_lost = False

    @property
    def concurrency(self) -> float:
        return self.kv_tokens / self.max_model_len

    def die(self) -> NoReturn:
        log("EngineCore encountered an issue. See stack trace (above) for the root cause.", level="ERROR")
        log("EngineDeadError", level="ERROR")
        leave(0)  # not a mistake: the real API server reports success, whatever a unit file may hope for

    @contextlib.contextmanager
    def slot(self, tokens: int) -> Iterator[None]:
        """Wait for one of the max_num_seqs places, and hold it."""
        limit = self.options.max_num_queued_reqs
        with self.lock:
            if self.draining:
                raise Refused(500, "InternalServerError", "cannot schedule new futures after shutdown")
            if limit is not None and self.running >= self.options.max_num_seqs and self.waiting >= limit:
                raise Refused(503, "ServiceUnavailableError", "The server is overloaded: too many queued requests.")
            self.waiting += 1
            self.lock.wait_for(lambda: self.running < self.options.max_num_seqs)
            self.waiting -= 1
            self.running += 1
            self.kv_used += tokens
        try:
            yield
        finally:
            with self.lock:
                self.running -= 1
                self.kv_used -= tokens
                self.lock.notify_all()

    def generate(
        self, prompt: str, count: int, wanted: int | None, client: socket.socket, query: dict[str, Any]
    ) -> Iterator[Piece]:
        """Pieces of text or of tool calls; the last one has a finish reason."""
        pieces, reason = tool_answer(query, prompt, wanted) or answer(prompt, wanted)
        came = before = time.monotonic()
        with self.slot(count + len(pieces)):
            with self.lock:
                self.prompt_tokens += count
            self.observe("request_queue_time_seconds", came)
            for number, (field, text) in enumerate(pieces, 1):
                self.aborted.wait(seconds("token_seconds", 0.01))
                while switched("hang") and not self.aborted.wait(0.05):
                    self.check_client(client)
                self.check_client(client)
                if self.aborted.is_set() or switched("abort"):
                    self.finished["abort"] += 1
                    yield Piece("content", "", "abort")
                    return
                with self.lock:
                    self.generation_tokens += 1
                kind = "time_to_first_token_seconds" if number == 1 else "inter_token_latency_seconds"
                before = self.observe(kind, before)
                last = number == len(pieces)
                if last:
                    with self.lock:
                        self.finished["stop" if reason == "tool_calls" else reason] += 1
                    self.observe("e2e_request_latency_seconds", came)
                yield Piece(field, text, reason if last else "")

    def observe(self, kind: str, since: float) -> float:
        now = time.monotonic()
        with self.lock:
            self.times[kind].add(now - since)
        return now

    def check_client(self, client: socket.socket) -> None:
        readable, _, _ = select.select([client], [], [], 0)
        if readable and not client.recv(1, socket.MSG_PEEK):
            raise Gone  # counted nowhere, as in the real server

    def metrics(self) -> str:
        labels = f'engine="0",model_name="{self.options.names[0]}"'
        cache = {
            "block_size": self.options.block_size,
            "cache_dtype": self.options.kv_cache_dtype or "auto",
            "engine": 0,
            "gpu_memory_utilization": self.options.gpu_memory_utilization,
            "kv_cache_max_concurrency": self.concurrency,
            "kv_cache_size_tokens": self.kv_tokens,
            "num_gpu_blocks": self.kv_tokens // self.options.block_size,
        }
        rows: list[tuple[str, str, str, float]] = [
            ("vllm:num_requests_running", "gauge", labels, self.running),
            ("vllm:num_requests_waiting", "gauge", labels, self.waiting),
            ("vllm:kv_cache_usage_perc", "gauge", labels, min(1.0, self.kv_used / self.kv_tokens)),
            ("vllm:prompt_tokens_total", "counter", labels, self.prompt_tokens),
            ("vllm:generation_tokens_total", "counter", labels, self.generation_tokens),
            ("vllm:generation_tokens_created", "gauge", labels, STARTED),
            ("vllm:num_preemptions_total", "counter", labels, 0),
            ("vllm:prefix_cache_queries_total", "counter", labels, self.prompt_tokens),
            ("vllm:prefix_cache_hits_total", "counter", labels, 0),
            ("vllm:cache_config_info", "gauge", ",".join(f'{k}="{v}"' for k, v in cache.items()), 1),
            ("process_start_time_seconds", "gauge", "", STARTED),
        ]
        for reason, value in self.finished.items():
            rows.append(("vllm:request_success_total", "counter", f'{labels},finished_reason="{reason}"', value))
        lines = []
        for name, kind, label, number in rows:
            head = f"# TYPE {name.removesuffix('_total')} {kind}"
            lines += [head] if head not in lines else []
            lines.append(f"{name}{{{label}}} {float(number)}" if label else f"{name} {float(number)}")
        with self.lock:
            for name, observed in self.times.items():
                lines += observed.lines(f"vllm:{name}", labels)
        return "\n".join(lines) + "\n"


def answer(prompt: str, wanted: int | None) -> tuple[list[tuple[str, str]], str]:
    """The words for a prompt (always the same ones) with the field they go to, and why they end."""
    words, reason = plain_answer(prompt, wanted)
    if not switched("think"):
        return [("content", word) for word in words], reason
    thoughts = ["Let", " me", " think", " about", " this", "."]
    if setting("think") == "all":
        room = wanted or 16
        return [("reasoning", thoughts[i] if i < 6 else f" step{i}") for i in range(room)], "length"
    return [*(("reasoning", thought) for thought in thoughts), *(("content", word) for word in words)], reason


def plain_answer(prompt: str, wanted: int | None) -> tuple[list[str], str]:
    if switched("empty"):
        return [""], "stop"
    if switched("garbage"):
        return ["!!!!", "\ufffd\ufffd"] + ["!!!!"] * max(0, (wanted or 16) - 2), "length"
    if switched("repeat"):
        return ["Paris"] + [" Paris"] * max(0, (wanted or 16) - 1), "length"
    if "capital of France" in prompt:
        return ["Paris"], "stop"
    seed = hashlib.sha256(prompt.encode()).digest()
    known = WORDS.split()
    words = [known[seed[i % len(seed)] % len(known)] for i in range(wanted or 16)]
    return [word if i == 0 else f" {word}" for i, word in enumerate(words)], "length" if wanted else "stop"


# --- Tools -----------------------------------------------------------------------------------------------------------


def tool_answer(query: dict[str, Any], prompt: str, wanted: int | None) -> tuple[list[tuple[str, str]], str] | None:
    """The pieces of a call of the tool whose words are asked for, or of the answer after its result; None without tools."""
    choice, mode = query.get("tool_choice", "auto"), str(setting("tool_calls", ""))
    if not query.get("tools") or choice == "none":
        return None
    if mode == "never":
        return [("content", "There is no need for a tool.")], "stop"
    last = query["messages"][-1]
    if last.get("role") == "tool" and choice == "auto":
        return [("content", f"This is what was found: {flatten(last)}")], "stop"
    asked = next((flatten(said) for said in reversed(query["messages"]) if said.get("role") == "user"), prompt)
    tools = [tool["function"] for tool in query["tools"]]
    if isinstance(choice, dict):
        tools = [tool for tool in tools if tool["name"] == choice["function"]["name"]]
    best = max(tools, key=lambda tool: fitting(tool["name"], asked))
    if choice == "auto" and not fitting(best["name"], asked):
        return [("content", "No tool is for this.")], "stop"
    arguments = sample(best.get("parameters") or {}, asked)
    if mode == "schema":
        arguments = dict.fromkeys(arguments or {"unasked": 0}, [None])
    text = json.dumps(arguments)
    if mode == "text":
        return [("content", f'<tool_call>\n{{"name": "{best["name"]}", "arguments": {text}}}\n</tool_call>')], "stop"
    if mode == "json":
        text = text[:-1] + ', "unit": C}'
    head = {"id": f"chatcmpl-tool-{uuid.uuid4().hex}", "type": "function", "index": 0}
    calls: list[dict[str, Any]] = [{**head, "function": {"name": best["name"], "arguments": ""}}]
    calls += [{"index": 0, "function": {"arguments": text[at : at + 8]}} for at in range(0, len(text), 8)]
    reason = "stop" if isinstance(choice, dict) else "tool_calls"
    if mode == "length":
        calls, reason = (
            [calls[0], *({"index": 0, "function": {"arguments": " \n"}} for _ in range(wanted or 16))],
            "length",
        )
    if mode == "parts" and query.get("stream"):
        calls = [{name: value for name, value in call.items() if name not in ("id", "index")} for call in calls]
    if wanted and wanted < len(calls):
        calls, reason = calls[:wanted], "length"
    return [("tool_calls", json.dumps([call])) for call in calls], reason


def fitting(name: str, text: str) -> int:
    """How many words of a tool's name are in a text."""
    return sum(word in text.lower() for word in name.split("_") if len(word) > 3)


def sample(schema: dict[str, Any], asked: str) -> Any:
    """Something that fits a schema, made of what was asked."""
    if schema.get("enum"):
        return next((value for value in schema["enum"] if str(value) in asked.lower()), schema["enum"][0])
    kind = schema.get("type", "string")
    if kind == "object":
        parts = schema.get("properties") or {}
        return {name: sample(parts.get(name) or {}, asked) for name in schema.get("required") or parts}
    if kind == "array":
        return [sample(schema.get("items") or {}, asked)]
    names = [word.strip(".,?!'") for word in asked.split()[1:] if word[:1].isupper()]
    return {"integer": 1, "number": 1.5, "boolean": True}.get(kind, " ".join(names) or asked)


def whole_calls(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls of an answer that is not streamed, from the pieces of one that is."""
    calls: dict[int, dict[str, Any]] = {}
    for part in parts:
        call = calls.setdefault(
            part.get("index", 0), {"id": part.get("id"), "type": "function", "function": {"arguments": ""}}
        )
        call["function"].update({"name": part["function"]["name"]} if "name" in part["function"] else {})
        call["function"]["arguments"] += part["function"]["arguments"]
    return list(calls.values())


# --- HTTP ------------------------------------------------------------------------------------------------------------


def flatten(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "uvicorn", ""
    timeout = float(os.environ.get("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "5"))
    engine: Engine

    def do_GET(self) -> None:
        self.guard(self.get)

    def do_POST(self) -> None:
        self.guard(self.post)

    def guard(self, act: Any) -> None:
        """What comes before every answer, and what becomes of an answer that fails."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        generates = path in ("/v1/completions", "/v1/chat/completions")
        try:
            if switched("never_answer"):
                while True:
                    time.sleep(0.05)
                    self.engine.check_client(self.connection)
            if switched("fast_503") and (generates or setting("fast_503") != "generate"):
                raise Refused(503, "ServiceUnavailableError", "The server is overloaded.")
            if path.startswith("/v1") and self.engine.options.keys and not self.authorised():
                return self.send_json(401, {"error": "Unauthorized"})
            act(path)
        except Refused as refusal:
            self.send_json(refusal.status, refusal.body)
        except (Gone, ConnectionError, TimeoutError):
            self.close_connection = True

    def authorised(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return any(hmac.compare_digest(given.encode(), key.encode()) for key in self.engine.options.keys)

    def get(self, path: str) -> None:
        options = self.engine.options
        if path in ("/health", "/ping"):
            self.send(200, b"", "text/plain")
        elif path == "/version":
            self.send_json(200, {"version": VERSION})
        elif path == "/metrics":
            self.send(200, self.engine.metrics().encode(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/v1/models":
            common = {"object": "model", "created": int(time.time()), "owned_by": "vllm", "root": options.model}
            common |= {"parent": None, "max_model_len": self.engine.max_model_len}
            self.send_json(200, {"object": "list", "data": [{"id": name, **common} for name in options.names]})
        else:
            self.send_json(404, {"detail": "Not Found"})

    def post(self, path: str) -> None:
        if path == "/ping":
            return self.send(200, b"", "text/plain")
        if path not in ("/v1/completions", "/v1/chat/completions"):
            return self.send_json(404, {"detail": "Not Found"})
        chat = path == "/v1/chat/completions"
        try:
            query = json.loads(self.body)
            prompt = "\n".join(map(flatten, query["messages"])) if chat else str(query["prompt"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(400, "BadRequestError", f"The request cannot be read: {error!r}") from None
        options = self.engine.options
        model = query.get("model") or options.names[0]
        if model not in options.names:
            raise Refused(404, "NotFoundError", f"The model `{model}` does not exist.", "model")
        name = "max_completion_tokens" if query.get("max_completion_tokens") else "max_tokens"
        wanted = query.get(name) or (None if chat else 16)
        count, limit = max(1, len(prompt.split())), self.engine.max_model_len
        if wanted and wanted > limit:
            message = (
                f"{name}={wanted} cannot be greater than max_model_len={limit}. Please request fewer output tokens."
            )
            raise Refused(400, "BadRequestError", message, name)
        if count >= limit:
            message = f"This model's maximum context length is {limit} tokens. However, your prompt contains at least "
            message += f"{count} input tokens, which exceeds this limit even without any output tokens."
            raise Refused(400, "BadRequestError", message, "input_tokens")
        wanted = wanted and min(wanted, limit - count)  # more than fits is cut without a word
        if self.engine.follower_lost:
            self.send_json(500, Refused(500, "InternalServerError", "EngineCore encountered an issue.").body)
            self.engine.die()
        if query.get("tools") and query.get("tool_choice", "auto") == "auto" and not options.enable_auto_tool_choice:
            message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
            raise Refused(400, "BadRequestError", message)
        if switched("error_beside") and self.engine.running:
            raise Refused(500, "InternalServerError", "Internal server error")
        pieces = self.engine.generate(prompt, count, wanted, self.connection, query)
        reply = Reply(chat, options.names[0], count)  # the first name, whichever was asked for
        if query.get("stream"):
            self.stream(reply, pieces, bool((query.get("stream_options") or {}).get("include_usage")))
        else:
            self.send_json(200, reply.whole(list(pieces)))

    def stream(self, reply: Reply, pieces: Iterator[Piece], with_usage: bool) -> None:
        cut = int(float(setting("reset_stream", 0) or 0))
        first = next(pieces)  # a refusal must still be able to choose its status
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if reply.chat:
            self.event(reply.part({"role": "assistant", "content": ""}, ""))
        for number, piece in enumerate(itertools.chain([first], pieces), 1):
            self.event(reply.part(piece.delta(), piece.reason))
            if switched("error_event"):
                self.event(Refused(500, "InternalServerError", "Internal server error").body)
                break
            if cut and number >= cut:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                raise ConnectionResetError
        if with_usage and not switched("error_event"):
            self.event({**reply.head(".chunk"), "choices": [], "usage": reply.usage()})
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: Any) -> None:
        text = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def send_json(self, status: int, data: Any) -> None:
        self.send(status, json.dumps(data).encode(), "application/json")

    def send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        if not self.engine.options.disable_uvicorn_access_log:
            host, port = self.client_address[:2]
            log_web(f'{host}:{port} - "{self.requestline}" {int(code)} {self.responses[int(code)][0]}')

    def log_error(self, format: str, *args: Any) -> None:
        """An idle keep-alive connection that ends is no news."""


class Reply:
    """The bodies of one answer, in both dialects."""

    def __init__(self, chat: bool, model: str, prompt_tokens: int) -> None:
        self.chat, self.model, self.prompt_tokens, self.made = chat, model, prompt_tokens, 0
        self.id = ("chatcmpl-" if chat else "cmpl-") + uuid.uuid4().hex

    def head(self, suffix: str = "") -> dict[str, Any]:
        kind = f"chat.completion{suffix}" if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": int(time.time()), "model": self.model}

    def usage(self) -> dict[str, int]:
        total = self.prompt_tokens + self.made
        return {"prompt_tokens": self.prompt_tokens, "total_tokens": total, "completion_tokens": self.made}

    def part(self, delta: dict[str, Any], reason: str) -> dict[str, Any]:
        said = "".join(str(text) for name, text in delta.items() if name != "role")
        self.made += bool(said)
        text: dict[str, Any] = {"delta": delta} if self.chat else {"text": said}
        choice = {"index": 0, **text, "logprobs": None, "finish_reason": reason or None}
        return {**self.head(".chunk"), "choices": [choice]}

    def whole(self, pieces: list[Piece]) -> dict[str, Any]:
        self.made = sum(bool(piece.text) for piece in pieces)
        text = "".join(piece.text for piece in pieces if piece.field == "content")
        thought = "".join(piece.text for piece in pieces if piece.field == "reasoning")
        calls = whole_calls(
            [part for piece in pieces if piece.field == "tool_calls" for part in json.loads(piece.text)]
        )
        if pieces[-1].reason == "length":
            # The real parser finds no call in a text that was cut off, and gives the text itself.
            text, calls = text or "".join(call["function"]["arguments"] for call in calls), []
        body: dict[str, Any] = {"text": thought + text}
        if self.chat:
            message: dict[str, Any] = {
                "role": "assistant",
                "content": text or (None if thought or calls else ""),
                "tool_calls": calls,
            }
            body = {"message": {**message, "reasoning": thought or None}}
        choice = {"index": 0, **body, "logprobs": None, "finish_reason": pieces[-1].reason}
        return {**self.head(), "choices": [choice], "usage": self.usage()}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2048
    allow_reuse_address = True


# --- Several nodes ---------------------------------------------------------------------------------------------------


def gather(options: argparse.Namespace) -> list[socket.socket]:
    """Rank 0: wait until every other rank has come; there is no limit here that a test would live to see."""
    with socket.create_server((options.master_addr or "127.0.0.1", options.master_port)) as meeting:
        followers = [meeting.accept()[0] for _ in range(options.nnodes - 1)]
    for follower in followers:
        follower.sendall(b"go\n")
    return followers


def watch(engine: Engine, follower: socket.socket) -> None:
    """Nothing is noticed in the head when a follower dies, except by the next request."""
    with contextlib.suppress(OSError):
        while follower.recv(64):
            pass
    engine.follower_lost = True


def follow(options: argparse.Namespace) -> NoReturn:
    """Rank 1 and up: meet the head, load, then wait for ever, also when the head is long dead."""
    while True:
        try:
            head = socket.create_connection((options.master_addr or "127.0.0.1", options.master_port), timeout=5)
            head.settimeout(None)
            break
        except OSError:
            time.sleep(0.2)
    log(f"Connected to {options.master_addr}:{options.master_port} as rank {options.node_rank}", "Worker")
    if not head.recv(64):
        fail_start("torch.distributed.DistNetworkError: the head closed the connection during rendezvous")
    load_model(options, 0.8 * seconds("load_seconds", 2))
    head.sendall(b"loaded\n")
    log("Waiting for work from the head", "Worker")
    threading.Event().wait()
    leave(0)


# --- Start and stop --------------------------------------------------------------------------------------------------


def context_length(options: argparse.Namespace) -> int:
    if options.max_model_len and options.max_model_len > 0:
        return int(options.max_model_len)
    with contextlib.suppress(OSError, ValueError, KeyError):
        return int(json.loads((Path(options.model) / "config.json").read_text())["max_position_embeddings"])
    return 4096


def load_model(options: argparse.Namespace, duration: float) -> None:
    log(f"Starting to load model {options.model}...", "Worker")
    time.sleep(duration / 2)
    if switched("exit_loading"):
        fail_start("RuntimeError: the stand-in was told to fail while loading")
    time.sleep(duration / 2)
    log(f"Loading weights took {duration:.2f} seconds", "Worker")
    log(f"Model loading took 0.01 GiB memory and {duration:.6f} seconds", "Worker")


def start_engine(options: argparse.Namespace) -> Engine:
    duration = seconds("load_seconds", 2)
    config = f"model='{options.model}', tensor_parallel_size={options.tensor_parallel_size}, nnodes={options.nnodes}"
    log(f"Initializing a V1 LLM engine (v{VERSION}) with config: {config}", "EngineCore")
    utilization = options.gpu_memory_utilization
    if switched("refuse_memory"):
        fail_start(
            "ValueError: Free memory on device cuda:0 (40.12/121.63 GiB) on startup is less than desired GPU memory "
            f"utilization ({utilization}, {121.63 * utilization:.2f} GiB). Decrease GPU memory utilization or reduce "
            "GPU memory used by other processes."
        )
    followers = gather(options) if options.nnodes > 1 else []
    load_model(options, 0.8 * duration)
    for follower in followers:
        if not follower.recv(64):
            fail_start("RuntimeError: a follower was lost while loading")
    engine = Engine(options, context_length(options))
    for follower in followers:
        threading.Thread(target=watch, args=(engine, follower), daemon=True).start()
    log(f"Available KV cache memory: {engine.kv_tokens * 18e3 / 2**30:.2f} GiB", "Worker")
    if engine.kv_tokens < engine.max_model_len:
        fail_start(
            f"ValueError: To serve at least one request with the model's max seq len ({engine.max_model_len}), more KV "
            "cache is needed than there is. Based on the available memory, the estimated maximum model length is "
            f"{engine.kv_tokens}."
        )
    log(
        f"CPU KV cache size: {engine.kv_tokens:,} tokens, Maximum concurrency for {engine.max_model_len:,} tokens per "
        f"request: {engine.concurrency:.2f}x",
        "EngineCore",
    )
    time.sleep(0.1 * duration)
    log(f"init engine (profile, create kv cache, warmup model) took {duration:.2f} s", "EngineCore")
    return engine


def drain(engine: Engine, timeout: float) -> None:
    """Let running requests end within the timeout; cut off what is left."""
    with engine.lock:
        engine.draining = True
        engine.lock.wait_for(lambda: not (engine.running or engine.waiting), timeout)
    engine.aborted.set()
    with engine.lock:
        engine.lock.wait_for(lambda: not (engine.running or engine.waiting), 2)
    time.sleep(0.2)  # the last bytes of the last answer are written after its place is given back


def check_parsers(options: argparse.Namespace) -> None:
    """Later than the arguments, and with another exit status, as the real one does."""
    wanted = {"reasoning": options.reasoning_parser}
    if options.enable_auto_tool_choice and not options.tool_parser_plugin:
        wanted["tool call"] = options.tool_call_parser
    for kind, name in wanted.items():
        known = PARSERS[kind].split()
        if name and name not in known:
            raise KeyError(f"invalid {kind} parser: {name} (chose from {{ {','.join(known)} }})")


def serve(options: argparse.Namespace) -> NoReturn:
    log(f"version {VERSION}  model {options.model}")
    log(f"non-default args: {{'model_tag': {options.model!r}, 'served_model_name': {options.names}}}")
    check_parsers(options)
    server = Server((options.host or "", options.port), Handler, bind_and_activate=False)
    try:
        if not options.headless:
            server.server_bind()  # early and without listening, as the real one: connections are refused until ready
    except OSError as error:
        log(f"OSError: [Errno {error.errno}] {os.strerror(error.errno or 0)}", level="ERROR")
        leave(1)
    time.sleep(0.1 * seconds("load_seconds", 2))  # imports: a signal still kills

    stop, ready, signals = threading.Event(), threading.Event(), []

    def on_signal(number: int, _frame: object) -> None:
        signals.append(number)
        if options.node_rank or (not ready.is_set() and len(signals) > 1):
            leave(0)
        if ready.is_set():  # the first signal while loading is lost
            stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if options.node_rank:
        follow(options)
    engine = Handler.engine = start_engine(options)
    log(f"Starting vLLM server on http://{options.host or '0.0.0.0'}:{options.port}")
    log_web(f"Started server process [{os.getpid()}]")
    log_web("Waiting for application startup.")
    server.server_activate()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ready.set()
    log_web("Application startup complete.")

    born = time.monotonic()
    while not stop.wait(0.1):
        after = seconds("exit_after", 0)
        if after and time.monotonic() - born >= after:
            engine.die()
    log(f"[shutdown] API server: shutdown triggered, timeout={options.shutdown_timeout}")
    drain(engine, options.shutdown_timeout)
    log_web("Application shutdown complete.")
    leave(0)


def main() -> None:
    options = parse(sys.argv[1:])
    if not options.check_arguments:
        serve(options)


if __name__ == "__main__":
    main()
