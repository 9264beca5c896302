# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets requests wait while a rollout has no copy to give them to. Standard library only; started by gb10-vllm-hold.socket.

nginx asks here only when it has no copy for a request and nothing of it was sent to one: no healthy request comes by. It
keeps the request and its body, sends one line `HOLD` with the size and the time already waited, and waits for the answer:
`X-Accel-Redirect: @gb10_vllm_released` (give it to a copy now) or `@gb10_vllm_unavailable` (tell the client to come again).
If this process dies, nginx asks again, on the socket that systemd keeps open meanwhile.

A rollout declares the hold by a file (module gb10.vllm.proxy_hold) that says until when. Without it, after that time, above
the bounds, or when a request has waited its time, the answer is `@gb10_vllm_unavailable` at once. Released is when the
proxy itself answers /health from a copy several times in a row: first a few requests, then twice as many each second.
`GET /` on the same socket gives the counts since this rollout's declaration as JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import time
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RELEASED, UNAVAILABLE = "@gb10_vllm_released", "@gb10_vllm_unavailable"
POLL_SECONDS = 0.05
# nginx tells the old workers to end 100 ms after it has started the new ones, and until then both take connections. So many good
# looks in a row take twice that time: who is let go then meets new workers only, unless nginx's master itself was kept from running.
GOOD_LOOKS = 5
BIGGEST_QUESTION = 8192
# More than may wait, up to the kernel's own bound: when this process dies, all who waited queue at once until the next one takes them.
BACKLOG = 4096


@dataclass(frozen=True)
class Bounds:
    """How many requests may wait at once, of which size in bytes, for how many seconds; the first second's releases."""

    requests: int
    body_bytes: int
    seconds: float
    first_releases: int


@dataclass
class Hold:
    """Who waits, oldest first, and who is let go when. Pure: the time is always given."""

    bounds: Bounds
    waiting: OrderedDict[int, float] = field(default_factory=OrderedDict)
    counts: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    _begun: dict[int, float] = field(default_factory=dict)
    _good: int = 0
    _released_since: float | None = None
    _released: int = 0

    def refuses(self, armed: bool, size: int, waited: float) -> str | None:
        """Why a new request may not wait, None when it may."""
        if not armed:
            return "not_declared"
        if len(self.waiting) >= self.bounds.requests:
            return "full"
        if size > self.bounds.body_bytes:
            return "too_large"
        return "too_long" if waited >= self.bounds.seconds else None

    def enter(self, number: int, waited: float, now: float) -> None:
        """A request waits from now on; it has been with nginx for `waited` seconds already."""
        self.waiting[number] = now + self.bounds.seconds - waited
        self._begun[number] = now
        self.counts["held"] += 1

    def leave(self, number: int, how: str, now: float) -> None:
        """It waits no longer: `released`, `too_long`, `ended` (the rollout did) or `gone` (the client hung up)."""
        if self.waiting.pop(number, None) is not None:
            self.longest = max(self.longest, now - self._begun.pop(number))
            self.counts[how] += 1

    def overdue(self, now: float) -> list[int]:
        """Who has waited as long as one may. The order is that of arrival, not of the deadlines."""
        return [number for number, deadline in self.waiting.items() if deadline <= now]

    def look(self, serving: bool, now: float) -> list[int]:
        """What to let go after a look at the proxy: none before it is sure, then 1, 2, 4 … times the first second's share."""
        self._good = self._good + 1 if serving else 0
        if self._good < GOOD_LOOKS:
            self._released_since = None
            return []
        if self._released_since is None:
            self._released_since, self._released = now, 0
        # The integral of a rate that doubles every second: first * (2^t - 1), and one at once.
        allowed = 1 + int(self.bounds.first_releases * (2 ** min(now - self._released_since, 30) - 1))
        batch = list(self.waiting)[: max(0, allowed - self._released)]
        self._released += len(batch)
        return batch

    def forget(self) -> None:
        """Count from here on; who waits already is counted as held."""
        self.counts.clear()
        self.counts["held"], self.longest = len(self.waiting), 0.0

    def idle(self) -> None:
        """Nobody waits: the next hold begins with nothing known about the proxy."""
        self._good, self._released_since = 0, None


def declaration(path: Path) -> tuple[float, str]:
    """Until when the hold is declared, in seconds since the epoch, and what for; 0 when it is not or cannot be read."""
    try:
        declared = json.loads(path.read_text(encoding="utf-8"))
        return float(declared["until"]), str(declared["why"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0, ""


class Server:
    """The edge: the socket, the file, the look at the proxy."""

    def __init__(self, hold: Hold, declared: Path, port: int) -> None:
        self.hold, self.declared, self.port = hold, declared, port
        self.answers: dict[int, asyncio.Future[str]] = {}
        self.numbers = iter(range(1, 1 << 62))
        self.arrival = asyncio.Event()
        self.why = ""

    def armed(self) -> bool:
        """Whether requests may wait now. Another rollout begins with new counts."""
        until, why = declaration(self.declared)
        if until and why != self.why:
            self.why = why
            self.hold.forget()
        return until > time.time()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One question of nginx, or of the module."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            method, headers = _parse(await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10))
            if method == "HOLD":
                where = await self._wait(headers, reader)
                writer.write(
                    f"HTTP/1.1 200 OK\r\nX-Accel-Redirect: {where}\r\n".encode() + b"Content-Length: 0\r\n\r\n"
                )
            else:
                text = json.dumps(self.status()).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
            await writer.drain()
        writer.close()

    async def _wait(self, headers: dict[str, str], reader: asyncio.StreamReader) -> str:
        size, waited = int(headers["x-bytes"]), float(headers["x-waited"])
        refused = self.hold.refuses(self.armed(), size, waited)
        if refused:
            self.hold.counts[refused] += 1
            return UNAVAILABLE
        number = next(self.numbers)
        answer = self.answers[number] = asyncio.get_running_loop().create_future()
        self.hold.enter(number, waited, time.monotonic())
        self.arrival.set()
        hung_up = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait({answer, hung_up}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                self.hold.leave(number, "gone", time.monotonic())
                raise ConnectionError("the client hung up")
            return answer.result()
        finally:
            hung_up.cancel()
            del self.answers[number]

    def status(self) -> dict[str, Any]:
        armed = self.armed()
        return {
            "armed": armed,
            "waiting": len(self.hold.waiting),
            "longest_seconds": round(self.hold.longest, 3),
            **{name: self.hold.counts[name] for name in COUNTS},
            "turned_away": sum(self.hold.counts[name] for name in TURNED_AWAY),
        }

    async def watch(self) -> None:
        """While somebody waits, look at the file and the proxy, and let go whom that allows."""
        while True:
            if not self.hold.waiting:
                self.hold.idle()
                self.arrival.clear()
                await self.arrival.wait()
            serving = await self._serves()
            now = time.monotonic()
            self._let_go(self.hold.look(serving, now), "released", now)
            self._let_go(self.hold.overdue(now), "too_long", now)
            if not serving and not self.armed():
                self._let_go(list(self.hold.waiting), "ended", now)
            await asyncio.sleep(POLL_SECONDS)

    def _let_go(self, numbers: list[int], how: str, now: float) -> None:
        for number in numbers:
            self.hold.leave(number, how, now)
            if not self.answers[number].done():
                self.answers[number].set_result(RELEASED if how == "released" else UNAVAILABLE)

    async def _serves(self) -> bool:
        """Does the proxy give a request to a copy? Asked as the released requests will be: at its inner address."""
        try:
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.write(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
                status = await reader.readline()
                writer.close()
        except (OSError, TimeoutError):
            return False
        return status.split()[1:2] == [b"200"]


TURNED_AWAY = ("too_long", "ended", "full", "too_large")
COUNTS = ("held", "released", "gone", *TURNED_AWAY, "not_declared")


def _parse(question: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = question.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return first.partition(" ")[0], {name.strip().lower(): value.strip() for name, _colon, value in pairs}


def _listener(path: str) -> socket.socket:
    """The socket that systemd opened, or one of our own at `path` (for a try by hand)."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        return socket.socket(fileno=3)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    return listener


async def serve(arguments: argparse.Namespace) -> None:
    """Until the process is ended."""
    bounds = Bounds(arguments.requests, arguments.body_bytes, arguments.seconds, arguments.first_releases)
    server = Server(Hold(bounds), Path(arguments.declared), arguments.port)
    # asyncio sets the backlog anew, also that of systemd's socket, and to 100 unless told.
    listening = await asyncio.start_unix_server(
        server.answer, sock=_listener(arguments.socket), limit=BIGGEST_QUESTION, backlog=BACKLOG
    )
    async with listening:
        await asyncio.gather(listening.serve_forever(), server.watch())


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--declared", required=True, help="the file by which a rollout declares the hold")
    parser.add_argument("--port", type=int, required=True, help="the inner port of the proxy on 127.0.0.1")
    parser.add_argument("--socket", default="gb10-vllm-hold.sock", help="where to listen when systemd passes no socket")
    parser.add_argument("--requests", type=int, default=256, help="how many requests may wait at once")
    parser.add_argument("--body-bytes", type=int, default=8 << 20, help="the largest request that may wait")
    parser.add_argument("--seconds", type=float, default=540, help="how long one request may wait")
    parser.add_argument("--first-releases", type=int, default=8, help="how many are let go in the first second")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
