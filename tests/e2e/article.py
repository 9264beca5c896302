# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts tokens in three ways: what clients got, what each copy says of itself, and what a monitor reads through a load balancer.

The last one is how the article's owners looked at two copies, and why they thought that a busy model was starved.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import site_of_lab as lab

sys.path.insert(0, str(lab.ROOT / ".collections"))

from ansible_collections.gb10.vllm.plugins.module_utils._metrics.span import advance
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.total import total

HOSTS = ("spark1", "spark2")
BALANCER, PORT = "/etc/nginx/conf.d/zz-article.conf", 8099


class Count:
    """Tokens that clients got, by the copy that wrote them, beside the state of each copy as its own metrics tell it."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.received: Counter[str] = Counter()
        self.known: dict[str, Any] = {}
        self.numbers = itertools.count()

    def ask(self, count: int) -> Counter[str]:
        """So many requests through the proxy, a few at once, every second one streamed; returns who answered how many."""
        answered: Counter[str] = Counter()
        with ThreadPoolExecutor(4) as pool:
            for copy, tokens in pool.map(lambda _n: one(next(self.numbers)), range(count)):
                self.received[copy] += tokens
                answered[copy] += 1
        return answered

    def look(self) -> dict[str, Any]:
        """Each copy is read on its own host, by the module; the sum is made here."""
        for host, result in read(self.engine).items():
            self.known[host] = {**advance(self.known.get(host), result["reading"]), "reason": result["reason"]}
        return total(self.known)

    def counted(self) -> dict[str, int]:
        spans = {host: state["span"] or {"counters": {}} for host, state in self.known.items()}
        return {host: span["counters"].get("generation_tokens") or 0 for host, span in spans.items()}

    def must_agree(self) -> dict[str, Any]:
        """Look until each copy has counted what its clients got: a server does that a little after it has answered."""
        found: dict[str, Any] = {}

        def same() -> bool:
            found.update(self.look())
            return self.counted() == {host: self.received[host] for host in HOSTS}

        lab.wait_for(same, 40, f"counted {self.counted()}, clients got {dict(self.received)}")
        return found


def one(number: int) -> tuple[str, int]:
    """One completion; returns the copy that answered, and its tokens."""
    tokens = 5 + number % 8
    query: dict[str, Any] = {"model": "tiny", "prompt": f"number {number}", "max_tokens": tokens, "temperature": 0}
    query |= {"ignore_eos": True}
    if number % 2:
        query |= {"stream": True, "stream_options": {"include_usage": True}}
    request = urllib.request.Request(
        f"{lab.base_url()}/completions", json.dumps(query).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        text, copy = answer.read().decode(), answer.headers["X-Vllm-Copy"]
    if number % 2:
        *_events, text, done = [line.removeprefix("data: ") for line in text.splitlines() if line]
        assert done == "[DONE]"
    got = json.loads(text)["usage"]["completion_tokens"]
    assert got == tokens
    return copy, got


def read(engine: str, *words: str, hosts: str = "engines") -> dict[str, Any]:
    """What the module finds on these hosts, by host."""
    command = [str(lab.BIN / "ansible"), "--inventory", "inventories/lab", "--one-line", hosts]
    command += ["--module-name", "gb10.vllm.copy_metrics", "--args", " ".join(["interval_seconds=0", *words])]
    environment = {**os.environ, "ENGINE": engine, "ANSIBLE_NOCOLOR": "1"}
    done = subprocess.run(command, cwd=lab.ROOT, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\S+) \| \S+ => (\{.*\})$", done.stdout, re.M)
    assert found, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return {host: json.loads(result) for host, result in found}


@contextlib.contextmanager
def plain_balancer() -> Iterator[None]:
    """Beside the site's own proxy, which refuses that, one that balances /metrics like anything else."""
    servers = "".join(f"server {lab.describe()['hosts'][host]['address']}:8000; " for host in HOSTS)
    listens = f"server {{ listen 127.0.0.1:{PORT}; location / {{ proxy_pass http://article; }} }}"
    text = f"upstream article {{ {servers}}} {listens}"
    lab.on("proxy1", f"echo '{text}' > {BALANCER} && nginx -t -q && nginx -s reload")
    page = f"curl --silent --fail --max-time 2 --output /dev/null http://127.0.0.1:{PORT}/metrics && echo yes || true"
    try:
        lab.wait_for(lambda: lab.on("proxy1", page).strip() == "yes", 20, "the plain load balancer answers")
        yield
    finally:
        lab.on("proxy1", f"rm -f {BALANCER} && nginx -t -q && nginx -s reload")


def through_the_balancer(looks: int) -> list[int]:
    """The counter as a monitor sees it that reads it several times through one address."""
    page = f"curl --silent --fail http://127.0.0.1:{PORT}/metrics | grep '^vllm:generation_tokens_total'"
    text = lab.on("proxy1", "; ".join([page] * looks))
    return [int(float(line.rsplit(" ", 1)[1])) for line in text.splitlines()]


def increase(series: list[int]) -> int:
    """What Prometheus makes of a counter: each fall is a restart, after which it began at 0."""
    return sum(now if now < before else now - before for before, now in itertools.pairwise(series))


def tell(count: Count) -> dict[str, Any]:
    """The story, for the engine of the count: two copies serve, and nobody else asks them anything."""
    assert count.look()["read"] == len(HOSTS)
    before = sum(lab_counters(count).values())
    assert set(count.ask(24)) == set(HOSTS)
    count.must_agree()
    with plain_balancer():
        quiet = through_the_balancer(8)
        by_balancer = read(count.engine, f"port={PORT}", hosts="proxy1")["proxy1"]
        lab.on("spark1", "systemctl stop vllm", timeout=120)
        assert set(count.ask(8)) == {"spark2"}, "the other copy has all clients"
        without = count.look()
        lab.on("spark1", "systemctl start vllm", timeout=120)
        health = "curl --silent --max-time 2 --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000/health"
        lab.wait_for(lambda: lab.on("spark1", f"{health} || true") == "200", 240, "spark1 is healthy again")
        lab.wait_for(lambda: "spark1" in count.ask(6), 60, "spark1 has clients again")
        whole = count.must_agree()
        again = through_the_balancer(8)
    return {
        "before": before,
        "quiet": quiet,
        "again": again,
        "by_balancer": by_balancer,
        "without": without,
        "whole": whole,
    }


def lab_counters(count: Count) -> dict[str, int]:
    """What the counters of the copies say now."""
    return {host: state["now"]["counters"]["generation_tokens"] for host, state in count.known.items()}


def must_be_right(count: Count, told: dict[str, Any]) -> None:
    """The sum is what clients got, and nothing that was read through a load balancer is."""
    received, whole = sum(count.received.values()), told["whole"]["span"]
    print(
        f"\ntokens that clients got: {received}, of these {dict(count.received)}"
        f"\nthe copies, each read for itself, through a restart of {', '.join(whole['restarted'])}: "
        f"{whole['counters']['generation_tokens']}, of these {count.counted()}"
        f"\nthe counter through a load balancer, nobody asking: {told['quiet']}, to Prometheus an increase by {increase(told['quiet'])}"
        f"\nthe same after the restart: {told['again']}, an increase by {increase(told['again'])}"
    )
    assert whole["counters"]["generation_tokens"] == received
    assert whole["restarted"] == ["spark1"]
    assert told["without"]["read"] == 1
    assert list(told["without"]["missing"]) == ["spark1"], "missing, and not a copy that does nothing"
    for series in (told["quiet"], told["again"]):
        assert any(now < before for before, now in itertools.pairwise(series)), "the counter jumps"
        assert increase(series) > 0, "although nobody asked for anything"
    assert "is a proxy, not an engine" in told["by_balancer"]["msg"]
