# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read from the metrics of the real server and of the stand-in alike: the same figures, and as many tokens as clients got.

Two servers run as copies. The last test ends one of them and starts it again.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.span import advance
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.total import total
from ansible_collections.gb10.vllm.tests.contract.engines import ENGINES, Engine
from ansible_collections.gb10.vllm.tests.standin.server import Server, wait_until

SERVE = ["--served-model-name", "tiny", "--max-model-len", "1024", "--host", "127.0.0.1", "--port", "{port}"]
KNOWN = {"prompt_tokens", "generation_tokens", "preemptions", "prefix_queries", "prefix_hits"}
DRAFTING = {"drafts", "draft_tokens", "accepted_tokens"}


def look(server: Server) -> dict[str, Any]:
    found = fetch.look("127.0.0.1", server.port, 10, "X-Vllm-Copy")
    assert found["state"] == "read", found
    reading: dict[str, Any] = found["reading"]
    return reading


@dataclass
class Received:
    """What clients got from one copy."""

    prompt: int = 0
    generation: int = 0
    requests: int = 0

    def add(self, usage: dict[str, int]) -> None:
        self.prompt += usage["prompt_tokens"]
        self.generation += usage["completion_tokens"]
        self.requests += 1


@dataclass
class Site:
    """Two copies under load: what their clients got, and what one knows of each from its metrics."""

    servers: dict[str, Server]
    start: Callable[[str], Server]
    received: dict[str, Received] = field(default_factory=lambda: {"a": Received(), "b": Received()})
    known: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        for name, server in self.servers.items():
            self.known[name] = advance(self.known.get(name), look(server))

    def ask(self, name: str, count: int) -> None:
        """So many requests at once, every second one streamed."""

        def one(number: int) -> dict[str, int]:
            query = {"model": "tiny", "prompt": f"number {number} " * (number % 5 + 1), "max_tokens": 5 + number % 7}
            query |= {"ignore_eos": True, "temperature": 0}
            if number % 2:
                reply = self.servers[name].post("/v1/completions", query)
                assert reply.status == 200, reply.body
                usage: dict[str, int] = reply.json["usage"]
                return usage
            query["stream_options"] = {"include_usage": True}
            *_events, last, _done = self.servers[name].stream("/v1/completions", query)
            return dict(json.loads(last)["usage"])

        with ThreadPoolExecutor(4) as pool:
            for usage in pool.map(one, range(count)):
                self.received[name].add(usage)

    def counted(self, name: str) -> tuple[int, int, int]:
        span = self.known[name]["span"]
        return span["counters"]["prompt_tokens"], span["counters"]["generation_tokens"], sum(span["requests"].values())

    def must_agree(self, name: str) -> None:
        """The real server counts a little after it has answered."""
        got = self.received[name]
        expected = (got.prompt, got.generation, got.requests)

        def same() -> bool:
            self.look()
            return self.counted(name) == expected

        wait_until(same, 20, lambda: f"{name} counted {self.counted(name)}, its clients got {expected}")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()


@pytest.fixture(scope="module")
def site(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder, numbers = tmp_path_factory.mktemp(engine.name), itertools.count()
    with ExitStack() as stack:

        def start(name: str) -> Server:
            log: Path = folder / f"{name}-{next(numbers)}"
            return stack.enter_context(engine.serve(log, SERVE))

        site = Site({name: start(name) for name in ("a", "b")}, start)
        for server in site.servers.values():
            server.wait_ready(2 * engine.patience)
        yield site


def test_the_same_figures_are_known(site: Site) -> None:
    site.look()
    for name, server in site.servers.items():
        reading = look(server)
        assert {key for key, value in reading["counters"].items() if value is not None} == KNOWN
        assert {key for key, value in reading["counters"].items() if value is None} == DRAFTING
        assert set(reading["requests"]) == {"stop", "length", "abort", "error", "repetition"}
        assert reading["gauges"] == {"running": 0, "waiting": 0}
        assert reading["kv_use"] == [pytest.approx(0, abs=0.01)]
        assert all(histogram and len(histogram["bounds"]) > 5 for histogram in reading["histograms"].values())
        assert (reading["engines"], reading["problems"]) == (1, [])
        assert reading["started"] > 1_700_000_000
        assert reading["born"] >= reading["started"] - 1
        assert reading["version"].startswith("0.")
        assert reading["instance"].endswith(f"/{server.port}"), name
        assert reading["listener"]


def test_two_copies_are_two_processes(site: Site) -> None:
    readings = {name: look(server) for name, server in site.servers.items()}
    for key in ("instance", "listener", "born"):
        assert readings["a"][key] != readings["b"][key]
    assert total({name: {"now": reading} for name, reading in readings.items()})["read"] == 2
    with pytest.raises(MetricsError, match="x and y are the same process"):
        total({"x": {"now": readings["a"]}, "y": {"now": look(site.servers["a"])}})


def test_tokens_are_those_that_clients_got(site: Site) -> None:
    site.look()
    site.ask("a", 20)
    site.ask("b", 12)
    for name in ("a", "b"):
        site.must_agree(name)
    found = total(site.known)["span"]
    got = list(site.received.values())
    assert found["counters"]["prompt_tokens"] == sum(one.prompt for one in got)
    assert found["counters"]["generation_tokens"] == sum(one.generation for one in got)
    assert found["requests"]["length"] == 32
    assert found["histograms"]["ttft"]["count"] == found["histograms"]["e2e"]["count"] == 32
    assert found["histograms"]["inter_token"]["count"] == sum(one.generation - one.requests for one in got)


def test_read_through_a_proxy_the_counters_jump(site: Site) -> None:
    """Each answer comes from another copy: what an ordinary reader would take for restarts is refused."""
    in_turn = [look(site.servers[name]) for name in "abab"]
    counts = [reading["counters"]["generation_tokens"] for reading in in_turn]
    assert counts[0] != counts[1]
    assert counts[:2] == counts[2:]
    with pytest.raises(MetricsError, match="more than one process answers under this address"):
        functools.reduce(advance, in_turn, None)


def test_the_sum_is_right_through_a_restart_of_one_copy(site: Site, engine: Engine) -> None:
    ended = site.servers["a"]
    ended.process.terminate()
    ended.wait_end(60)
    site.servers["a"] = site.start("a").wait_ready(engine.patience)
    site.ask("a", 9)
    site.ask("b", 5)
    for name in ("a", "b"):
        site.must_agree(name)
    found = total(site.known)
    got = list(site.received.values())
    assert found["span"]["restarted"] == ["a"]
    assert found["span"]["counters"]["prompt_tokens"] == sum(one.prompt for one in got)
    assert found["span"]["counters"]["generation_tokens"] == sum(one.generation for one in got)
    assert sum(found["span"]["requests"].values()) == 20 + 12 + 9 + 5
