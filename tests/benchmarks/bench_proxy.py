# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy adds to a small request, beside no proxy, a plain nginx and HAProxy, in one run on loopback.

direct        the client speaks to a copy (an nginx that answers a fixed chat completion)
plain nginx   proxy_pass and nothing else
ours          what the role installs, with both copies admitted
ours, armed   the same while a rollout has declared that requests may wait, with the helper running
HAProxy       leastconn, as in its manual; it keeps connections to the copies, the nginx ones open one for each request

Clients keep their connections. The rounds of all are interleaved, so drift of the machine hits all alike.
The last line is one JSON object; the exit status is 1 when ours is more than 0.1 ms (p50) slower than plain nginx.

    bench_proxy.py [--rounds 20] [--requests 400] [--clients 4] [--seconds 1]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from ansible.plugins.loader import init_plugin_loader

ROOT = Path(__file__).resolve().parents[2]
init_plugin_loader([str(ROOT / ".collections")])
sys.path.insert(0, str(ROOT / "tests" / "lab"))

import prerequisites  # noqa: E402
from ansible_collections.gb10.vllm.tests.proxy.copies import free_port  # noqa: E402
from ansible_collections.gb10.vllm.tests.proxy.hold_helper import Helper  # noqa: E402
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site, wait_for  # noqa: E402

GOAL_MS = 0.1
WISH = json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]})
REQUEST = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: proxy\r\nContent-Type: application/json\r\n"
    f"Content-Length: {len(WISH)}\r\n\r\n{WISH}"
).encode()
COPY = """
server {
    listen 127.0.0.1:{port} backlog=4096;
    location / {
        default_type application/json;
        return 200 '{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Paris"}}]}';
    }
}
"""
PLAIN = """
upstream copies {
    server %s;
    server %s;
}
server {
    listen 127.0.0.1:{port};
    location / {
        proxy_pass http://copies;
    }
}
"""
HAPROXY = """
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
listen copies
    bind 127.0.0.1:%d
    balance leastconn
    server spark1 %s
    server spark2 %s
"""


@dataclass
class Fixed:
    """A copy: an nginx with a fixed answer."""

    name: str
    site: Site

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.site.port}"


class Client:
    """One kept connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connect()

    def _connect(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> float:
        """Seconds from sending a request to its whole answer."""
        begun = time.perf_counter()
        self.socket.sendall(REQUEST)
        data = self.socket.recv(65536)
        while b"\r\n\r\n" not in data or not _whole(data):
            more = self.socket.recv(65536)
            assert more, f"cut after {data!r}"
            data += more
        seconds = time.perf_counter() - begun
        assert data.startswith(b"HTTP/1.1 200"), data
        if b"\r\nConnection: close" in data:
            self.socket.close()
            self._connect()
        return seconds


def _whole(data: bytes) -> bool:
    head, _blank, body = data.partition(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(lower.split(b"content-length:")[1].split(b"\r\n")[0])


def latencies(port: int, requests: int) -> list[float]:
    """One request after the other."""
    client = Client(port)
    for _request in range(20):
        client.ask()
    return [client.ask() for _request in range(requests)]


def _busy(port: int, seconds: float, gate: Barrier, counts: Queue[int]) -> None:
    client, count = Client(port), 0
    gate.wait()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        client.ask()
        count += 1
    counts.put(count)


def rate(port: int, clients: int, seconds: float) -> float:
    """Requests per second of so many processes at once."""
    gate = multiprocessing.Barrier(clients)
    counts: Queue[int] = multiprocessing.Queue()
    crowd = [multiprocessing.Process(target=_busy, args=(port, seconds, gate, counts)) for _client in range(clients)]
    for process in crowd:
        process.start()
    total = sum(counts.get(timeout=seconds + 30) for _process in crowd)
    for process in crowd:
        process.join()
    return total / seconds


@contextmanager
def haproxy(copies: list[Fixed]) -> Iterator[int]:
    """The port of a running HAProxy."""
    if shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        prerequisites.apt_install(["haproxy"])
    with tempfile.TemporaryDirectory() as folder:
        port, file = free_port(), Path(folder) / "haproxy.cfg"
        file.write_text(HAPROXY % (port, *(copy.address for copy in copies)))
        process = subprocess.Popen(["/usr/sbin/haproxy", "-db", "-f", str(file)], stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: _listens(port), "haproxy listens")
            yield port
        finally:
            process.terminate()
            process.wait(10)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return False
    return True


def ours(stack: ExitStack, copies: list[Fixed], armed: bool) -> int:
    """The port of the role's proxy."""
    site = stack.enter_context(Site(copies))
    site.set_members(copies)
    if armed:
        stack.enter_context(Helper(site)).arm(3600)
    return site.port


def summary(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"p50_ms": cuts[49] * 1000, "p99_ms": cuts[98] * 1000}


def main() -> int:
    """Prints the table; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--requests", type=int, default=400, help="of each proxy in each round, one after the other")
    parser.add_argument("--clients", type=int, default=4, help="processes that ask at once for the requests per second")
    parser.add_argument("--seconds", type=float, default=1, help="how long they do so, in every fourth round")
    options = parser.parse_args()
    with ExitStack() as stack:
        copies = [Fixed(name, stack.enter_context(Site([], text=COPY))) for name in ("spark1", "spark2")]
        addresses = tuple(copy.address for copy in copies)
        ports = {
            "direct": copies[0].site.port,
            "plain nginx": stack.enter_context(Site([], text=PLAIN % addresses)).port,
            "ours": ours(stack, copies, armed=False),
            "ours, armed": ours(stack, copies, armed=True),
            "HAProxy": stack.enter_context(haproxy(copies)),
        }
        times: dict[str, list[list[float]]] = {name: [] for name in ports}
        rates: dict[str, list[float]] = {name: [] for name in ports}
        names = list(ports)
        for number in range(options.rounds):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                times[name].append(latencies(ports[name], options.requests))
                if number % 4 == 0:
                    rates[name].append(rate(ports[name], options.clients, options.seconds))
    rows = {
        name: {**summary(sum(times[name], [])), "requests_per_second": statistics.median(rates[name])} for name in names
    }
    print(f"{'':12} {'p50 ms':>8} {'p99 ms':>8} {'added p50':>10} {'added p99':>10} {'requests/s':>11}")
    for name, row in rows.items():
        for key in ("p50_ms", "p99_ms"):
            row[f"added_{key}"] = row[key] - rows["direct"][key]
        print(
            f"{name:12} {row['p50_ms']:8.3f} {row['p99_ms']:8.3f} {row['added_p50_ms']:10.3f} {row['added_p99_ms']:10.3f} "
            f"{row['requests_per_second']:11.0f}"
        )

    def beside_plain(name: str) -> float:
        pairs = zip(times[name], times["plain nginx"], strict=True)
        return statistics.median(statistics.median(a) - statistics.median(b) for a, b in pairs) * 1000

    more = {name: beside_plain(name) for name in ("ours", "ours, armed")}
    met = max(more.values()) <= GOAL_MS
    print(
        f"\nbeside plain nginx, median of the rounds: ours {more['ours']:+.3f} ms, armed {more['ours, armed']:+.3f} ms "
        f"(goal: at most {GOAL_MS} ms): {'met' if met else 'missed'}"
    )
    rounded = {name: {key: round(value, 4) for key, value in row.items()} for name, row in rows.items()}
    print(json.dumps({"bench": "proxy", "rows": rounded, "ours_minus_plain_ms": round(more["ours"], 4), "met": met}))
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
