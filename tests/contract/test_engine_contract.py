# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this project relies on in vLLM, asserted of the real server and of the stand-in alike.

Each is started once, as a plain process on loopback. The tests run in the order of this file: the last one
ends the shared server. The real server needs the lab's engine (`make lab`).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _gate_probe, _phase
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_wire
from ansible_collections.gb10.vllm.tests.contract.engines import ENGINES, LENGTH, Engine
from ansible_collections.gb10.vllm.tests.standin.server import Server, wait_until

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
KEY = "a-key-of-the-contract"
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
SERVE = ["--served-model-name", "tiny", "other-name", "--max-model-len", str(LENGTH), "--host", "127.0.0.1"]
SERVE += ["--port", "{port}", "--api-key", KEY, "--shutdown-timeout", "120"]
SERVE += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
CITIES = ["Paris", "Tokyo"]
PLACE = {"type": "object", "properties": {"city": {"type": "string", "enum": CITIES}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": PLACE}}


@dataclass
class Running:
    server: Server
    listened_before_ready: bool

    def post(self, path: str, **data: Any) -> Any:
        reply = self.server.post(path, {"model": "tiny", "temperature": 0, **data}, KEY)
        assert reply.status == 200, reply.body
        return reply.json

    def stream(self, path: str, **data: Any) -> tuple[list[Any], str]:
        """The events of a stream, decoded, and the last one as it came."""
        *events, last = self.server.stream(path, {"model": "tiny", "temperature": 0, **data}, KEY)
        return [json.loads(event) for event in events], last

    def status(self, path: str, **data: Any) -> int:
        return self.server.post(path, {"model": "tiny", "prompt": "a", "max_tokens": 1, **data}, KEY).status


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()


@pytest.fixture(scope="module")
def running(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    log = tmp_path_factory.mktemp(engine.name) / "log"
    with engine.serve(log, SERVE) as server:
        server.wait_log("Initializing a V1 LLM engine", engine.patience)
        early = server.listening()
        assert "startup complete" not in server.log, "too late to look at the time before"
        server.wait_ready(engine.patience)
        yield Running(server, early)


# --- Ready -----------------------------------------------------------------------------------------------------------


def test_connections_are_refused_before_it_is_ready(running: Running) -> None:
    assert running.listened_before_ready is False


def test_log_leads_through_the_phases_to_ready(running: Running) -> None:
    order = ["importing", "creating the engine", "loading weights", "loaded weights", "sizing the KV cache", "ready"]
    seen = ["importing"]
    for line in running.server.log.splitlines():
        now = _phase.phase([line], seen[-1])
        if now in order and now != seen[-1]:
            seen.append(now)
    assert list(dict.fromkeys(seen)) == order
    assert seen[-1] == "ready"


def test_log_tells_the_size_of_the_kv_cache(running: Running) -> None:
    found = re.findall(
        r"KV cache size: ([\d,]+) tokens, Maximum concurrency for ([\d,]+) tokens per request: ([\d.]+)x",
        running.server.log,
    )
    assert len(found) == 1
    tokens, length, concurrency = (float(number.replace(",", "")) for number in found[0])
    assert length == LENGTH
    assert concurrency == pytest.approx(tokens / length, abs=0.01)
    (info,) = [series for series in running.server.metrics() if series.startswith("vllm:cache_config_info{")]
    labels = dict(re.findall(r'(\w+)="([^"]*)"', info))
    assert int(labels["kv_cache_size_tokens"]) == tokens
    assert float(labels["kv_cache_max_concurrency"]) == pytest.approx(concurrency, abs=0.01)
    assert int(labels["num_gpu_blocks"]) * int(labels["block_size"]) >= tokens


def test_log_marks_the_engine_and_the_end_of_its_start(running: Running) -> None:
    ordered = ["Initializing a V1 LLM engine", "init engine (profile, create kv cache, warmup model) took"]
    ordered += ["Starting vLLM server on http://127.0.0.1:", "Application startup complete."]
    places = [running.server.log.find(text) for text in ordered]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("path", ["/health", "/ping", "/version", "/metrics"])
def test_open_without_a_key(running: Running, path: str) -> None:
    assert running.server.get(path).status == 200


def test_health_is_empty(running: Running) -> None:
    assert running.server.get("/health").body == b""


def test_version(running: Running) -> None:
    assert re.match(r"0\.\d+\.\d+", running.server.get("/version").json["version"])


def test_models(running: Running, engine: Engine) -> None:
    listing = running.server.get("/v1/models", KEY).json
    assert listing["object"] == "list"
    assert [model["id"] for model in listing["data"]] == ["tiny", "other-name"]
    for model in listing["data"]:
        assert (model["object"], model["max_model_len"], model["root"]) == ("model", LENGTH, engine.model)


# --- Answers ---------------------------------------------------------------------------------------------------------


def test_chat(running: Running) -> None:
    body = running.post(CHAT, messages=QUESTION, max_tokens=20)
    (choice,) = body["choices"]
    assert (body["object"], body["model"], choice["index"]) == ("chat.completion", "tiny", 0)
    assert choice["message"]["role"] == "assistant"
    assert "Paris" in choice["message"]["content"]
    assert choice["finish_reason"] in ("stop", "length")
    assert body["usage"]["prompt_tokens"] > 0
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] + body["usage"]["completion_tokens"]


def test_chat_streamed(running: Running) -> None:
    events, last = running.stream(CHAT, messages=QUESTION, max_tokens=20, stream_options={"include_usage": True})
    assert last == "[DONE]"
    *chunks, usage = events
    assert {chunk["object"] for chunk in events} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in events}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons[-1] in ("stop", "length")
    assert set(reasons[:-1]) == {None}
    assert usage["choices"] == []
    whole = running.post(CHAT, messages=QUESTION, max_tokens=20)
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    assert text == whole["choices"][0]["message"]["content"]
    assert usage["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]


def test_stream_without_usage_ends_with_its_reason(running: Running) -> None:
    events, last = running.stream(CHAT, messages=QUESTION, max_tokens=20)
    assert last == "[DONE]"
    assert events[-1]["choices"][0]["finish_reason"] in ("stop", "length")


def test_one_token_is_enough_for_a_probe(running: Running) -> None:
    body = running.post(CHAT, messages=QUESTION, max_tokens=1)
    assert body["usage"]["completion_tokens"] == 1
    assert body["choices"][0]["message"]["content"]


def test_completion(running: Running) -> None:
    body = running.post(TEXT, prompt="one two three", max_tokens=7, ignore_eos=True)
    (choice,) = body["choices"]
    assert (body["object"], body["model"], choice["finish_reason"]) == ("text_completion", "tiny", "length")
    assert choice["text"]
    assert body["usage"]["completion_tokens"] == 7
    assert (
        running.post(TEXT, prompt="one two three", max_tokens=7, ignore_eos=True)["choices"][0]["text"]
        == choice["text"]
    )


def test_completion_streamed(running: Running) -> None:
    query: dict[str, Any] = {"prompt": "one two three", "max_tokens": 7, "ignore_eos": True}
    events, last = running.stream(TEXT, **query, stream_options={"include_usage": True})
    assert last == "[DONE]"
    *chunks, usage = events
    assert {chunk["object"] for chunk in events} == {"text_completion"}
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "length"
    text = "".join(chunk["choices"][0]["text"] for chunk in chunks)
    assert text == running.post(TEXT, **query)["choices"][0]["text"]
    assert usage["usage"]["completion_tokens"] == 7


def test_every_served_name_is_answered_under_the_first(running: Running) -> None:
    assert running.post(TEXT, model="other-name", prompt="a", max_tokens=1)["model"] == "tiny"


def test_more_tokens_than_fit_are_cut_without_an_error(running: Running) -> None:
    body = running.post(TEXT, prompt="one two three " * 60, max_tokens=LENGTH, ignore_eos=True)
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == LENGTH


# --- The gate ------------------------------------------------------------------------------------------------------------


def gate(running: Running, **options: Any) -> tuple[str, str, str]:
    """Verdict, step and reason; questions as the module's defaults ask them."""
    defaults = {name: option.get("default") for name, option in {**_gate_probe.OPTIONS, **_gate_probe.SERIES}.items()}
    asked = {**defaults, "model": "tiny", "max_model_len": LENGTH, "api_key": KEY, "deadline_seconds": 120, **options}
    base = _gate_probe.base_url("127.0.0.1", running.server.port)
    verdict, state, _at = _gate_probe.wait(base, asked, loaded=True)
    return verdict, state.step, state.reason


def test_gate_passes(running: Running) -> None:
    assert gate(running) == (_gate.PASS, "stream", "")


@pytest.mark.parametrize(
    ("options", "verdict", "step", "words"),
    [
        ({"api_key": ""}, _gate.ERROR, "models", "vllm_api_key is not set"),
        ({"api_key": "wrong"}, _gate.ERROR, "models", "vllm_api_key is not the key"),
        ({"model": "unknown"}, _gate.FAIL, "models", "serves other-name, tiny instead of unknown"),
        ({"max_model_len": LENGTH + 1}, _gate.FAIL, "models", f"max_model_len is {LENGTH}"),
        ({"expect": "Rome"}, _gate.FAIL, "completion", "does not match 'Rome'"),
    ],
)
def test_gate_does_not_pass(running: Running, options: dict[str, Any], verdict: str, step: str, words: str) -> None:
    seen = gate(running, **options)
    assert seen[:2] == (verdict, step)
    assert words in seen[2]


# --- Tool calls ------------------------------------------------------------------------------------------------------


def tool_answers(running: Running, choice: Any, **more: Any) -> tuple[dict[str, Any], list[_evaluation_wire.Answer]]:
    """What was asked, and the whole and the streamed answer as the tool-call test reads them."""
    asked = [{"role": "user", "content": "What is the weather in Paris?"}]
    query = {"messages": asked, "tools": [TOOL], "tool_choice": choice, "parallel_tool_calls": False, "max_tokens": 200}
    query |= {"model": "tiny", "temperature": 1, "seed": 1, **more}
    events = "".join(f"data: {event}\n\n" for event in running.server.stream(CHAT, query, KEY))
    whole = json.dumps(running.post(CHAT, **query))
    return query, [_evaluation_wire.read(whole, False), _evaluation_wire.read(events, True)]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "get_weather"}}])
def test_forced_tool_calls_come_in_the_right_form(running: Running, choice: Any) -> None:
    query, answers = tool_answers(running, choice)
    for answer in answers:
        assert _evaluation_wire.faults(query, answer) == {}
        assert [(name, json.loads(text)["city"] in CITIES) for name, text in answer.calls] == [("get_weather", True)]
        assert answer.finish == "tool_calls" if choice == "required" else answer.finish in ("stop", "tool_calls")


def test_a_tool_call_that_is_cut_off_says_so_in_both_ways(running: Running) -> None:
    query, (whole, streamed) = tool_answers(running, "required", max_tokens=2)
    assert (whole.finish, streamed.finish) == ("length", "length")
    assert whole.calls == []
    for answer in (whole, streamed):
        assert list(_evaluation_wire.faults(query, answer)) == ["length"]


# --- Refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/v1/models", CHAT, TEXT])
@pytest.mark.parametrize("key", [None, "wrong"])
def test_401(running: Running, path: str, key: str | None) -> None:
    reply = running.server.get(path, key) if path == "/v1/models" else running.server.post(path, {}, key)
    assert (reply.status, reply.json) == (401, {"error": "Unauthorized"})


@pytest.mark.parametrize(
    ("path", "data", "status", "kind", "words"),
    [
        (TEXT, {"model": "unknown", "prompt": "a"}, 404, "NotFoundError", "`unknown` does not exist"),
        (CHAT, {"model": "unknown", "messages": QUESTION}, 404, "NotFoundError", "`unknown` does not exist"),
        (TEXT, {"prompt": "a", "max_tokens": LENGTH + 1}, 400, "BadRequestError", f"max_model_len={LENGTH}"),
        (CHAT, {"messages": QUESTION, "max_tokens": LENGTH + 1}, 400, "BadRequestError", f"max_model_len={LENGTH}"),
        (TEXT, {"prompt": "one " * 2 * LENGTH}, 400, "BadRequestError", f"maximum context length is {LENGTH} tokens"),
        (CHAT, {"messages": 5}, 400, "BadRequestError", ""),
    ],
)
def test_error_bodies(running: Running, path: str, data: Any, status: int, kind: str, words: str) -> None:
    for stream in (False, True):
        reply = running.server.post(path, {"model": "tiny", **data, "stream": stream}, KEY)
        error = reply.json["error"]
        assert (reply.status, error["code"], error["type"]) == (status, status, kind)
        assert words in error["message"]
        assert "param" in error


def test_unknown_path(running: Running) -> None:
    assert running.server.get("/nothing-here").status == 404


# --- Metrics ---------------------------------------------------------------------------------------------------------


def test_counters_move_with_the_requests(running: Running) -> None:
    names = ["vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:request_success_total"]

    def values() -> list[float]:
        return [running.server.total(name) for name in names]

    before = values()
    usage = running.post(TEXT, prompt="one two three", max_tokens=7, ignore_eos=True)["usage"]
    expected = [before[0] + usage["prompt_tokens"], before[1] + 7, before[2] + 1]
    # the real server counts a little after it has answered
    wait_until(lambda: values() == expected, 10, lambda: f"{names} are {values()}, not {expected}")


def test_finish_reasons_are_counted_apart(running: Running) -> None:
    def value(reason: str) -> float:
        return running.server.total("vllm:request_success_total", f'finished_reason="{reason}"')

    before = value("length")
    running.post(TEXT, prompt="a", max_tokens=2, ignore_eos=True)
    wait_until(lambda: value("length") == before + 1, 10, lambda: f"length at {before + 1}, it is {value('length')}")
    assert {value("abort"), value("error")} == {0}


@pytest.mark.parametrize(
    "name",
    ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total"]
    + ["generation_tokens_total"],
)
def test_series_have_the_labels_of_model_and_engine(running: Running, name: str) -> None:
    assert f'vllm:{name}{{engine="0",model_name="tiny"}}' in running.server.metrics()


def test_process_start_time(running: Running) -> None:
    assert running.server.metrics()["process_start_time_seconds"] > 1_700_000_000


def test_gauges_follow_a_running_request(running: Running) -> None:
    events = running.server.stream(TEXT, long_request(), KEY)
    next(events)
    wait_until(lambda: running.server.total("vllm:num_requests_running") == 1, 10, lambda: "one running request")
    assert 0 < running.server.total("vllm:kv_cache_usage_perc") < 1
    events.close()  # type: ignore[attr-defined]


def test_client_that_hangs_up_frees_its_place_and_is_counted_nowhere(running: Running) -> None:
    events = running.server.stream(TEXT, long_request(), KEY)
    next(events)
    wait_until(lambda: running.server.total("vllm:num_requests_running") == 1, 10, lambda: "one running request")
    before = running.server.total("vllm:request_success_total")
    events.close()  # type: ignore[attr-defined]
    wait_until(lambda: running.server.total("vllm:num_requests_running") == 0, 20, lambda: "no running request")
    assert running.server.total("vllm:request_success_total") == before


def long_request() -> dict[str, Any]:
    return {"model": "tiny", "prompt": "a", "max_tokens": LENGTH - 100, "ignore_eos": True}


# --- The end of the shared server ------------------------------------------------------------------------------------


def test_sigterm_lets_a_running_stream_finish(running: Running) -> None:
    """Last of the tests that share the server, since it ends it."""
    server = running.server
    events = server.stream(TEXT, {**long_request(), "stream_options": {"include_usage": True}}, KEY)
    received = [next(events)]
    reader = threading.Thread(target=lambda: received.extend(events))
    server.process.terminate()
    reader.start()
    server.wait_log("[shutdown] API server: shutdown triggered")
    wait_until(lambda: running.status(TEXT) == 500, 10, lambda: "a new request to get 500")
    assert server.get("/health").status == 200  # a green health says nothing about a server that drains
    assert reader.is_alive(), "the stream was over before anything could be seen"
    reader.join(120)
    assert received[-1] == "[DONE]"
    assert json.loads(received[-2])["usage"]["completion_tokens"] == LENGTH - 100
    assert server.wait_end(30) == 0
    assert not server.listening()
