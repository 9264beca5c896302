# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies that behave as they are told: an asyncio HTTP server per copy, and an address that drops packets.

A request says in its JSON body what it wants: {"seconds": 2} an answer after that time, {"stream": true, "pieces": 5,
"gap": 0.1} pieces of a stream, with "until_closed" in HTTP/1.0's manner, without chunks. The copy's own `fault` overrides
that and can be changed at any moment. A request with "messages" is the gate's: it is answered with `says`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import time
from collections import Counter
from typing import Any, Self

FAULTS = {
    "": "none",
    "503": "answers 503 at once",
    "silent": "accepts and never answers",
    "reset": "resets after it has read the request",
    "cut": "resets in the middle of a stream",
}
OVERLOADED = {"error": {"message": "The waiting queue is full.", "type": "ServiceUnavailable", "code": 503}}
PIECES_BEFORE_CUT = 2
MODEL = "tiny"


def free_port(address: str = "127.0.0.1") -> int:
    """A port that was free a moment ago."""
    with socket.create_server((address, 0)) as probe:
        return int(probe.getsockname()[1])


class Copy:
    """One copy. It knows each request that reached it by its X-Request-Id, so lost and doubled ones can be told."""

    def __init__(self, name: str, fault: str = "", host: str = "127.0.0.1") -> None:
        self.name, self.fault, self.host = name, fault, host
        self.says = "Paris"
        self.port = free_port(host)
        self.received: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.headers: dict[str, str] = {}  # of the newest request
        self.running = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Listen; also again after `stop`, on the same port."""
        self._server = await asyncio.start_server(self._serve, self.host, self.port, backlog=1024)

    async def stop(self) -> None:
        """As a process that is killed: connections are reset, new ones refused."""
        if self._server:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            reset(writer)
        while self._writers:
            await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # the other side hung up, or the copy was stopped
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; is another one welcome on this connection?"""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _colon, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = headers.get("x-request-id", "")
        self.headers = headers
        self.received[request] += 1
        self.running += 1
        try:
            if head[0].startswith("GET /v1/models "):
                await whole(writer, 200, {"data": [{"id": MODEL}]})
            elif await self._answer(reader, writer, json.loads(body or b"{}"), request):
                self.finished[request] += 1
        finally:
            self.running -= 1
        return headers.get("connection", "") != "close" and not head[0].endswith("HTTP/1.0")

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wish: dict[str, Any], request: str
    ) -> bool:
        if self.fault == "503":
            await whole(writer, 503, OVERLOADED)
            return False
        if self.fault == "reset":
            reset(writer)
            raise ConnectionResetError
        if self.fault == "silent":
            await reader.read()  # until the other side hangs up
            raise ConnectionResetError
        if not wish.get("stream"):
            await asyncio.sleep(wish.get("seconds", 0))
            said = (
                {"choices": [{"message": {"content": self.says}, "finish_reason": "stop"}]}
                if "messages" in wish
                else {}
            )
            await whole(writer, 200, {"copy": self.name, "request_id": request, **said})
            return True
        chunked = not wish.get("until_closed")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Connection: close\r\n\r\n")
        for number in range(wish.get("pieces", 5)):
            if self.fault == "cut" and number == PIECES_BEFORE_CUT:
                await asyncio.sleep(0.02)  # what was sent has to arrive before the reset overtakes it
                reset(writer)
                raise ConnectionResetError
            text = b"data: %d %.6f\n\n" % (number, time.monotonic())
            if "messages" in wish:
                text = b"data: %s\n\n" % (self._piece(number) if number < 4 else b"[DONE]")
            writer.write(b"%x\r\n%s\r\n" % (len(text), text) if chunked else text)
            await writer.drain()
            await asyncio.sleep(wish.get("gap", 0))
        if chunked:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        else:
            writer.close()
        return True

    def _piece(self, number: int) -> bytes:
        """Four pieces that say it."""
        choice = {
            "delta": {"content": self.says if number == 1 else ""},
            "finish_reason": "stop" if number == 3 else None,
        }
        return json.dumps({"choices": [choice]}).encode()


async def whole(writer: asyncio.StreamWriter, status: int, body: dict[str, Any]) -> None:
    """One JSON answer."""
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection with a TCP reset."""
    connection = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Blackhole:
    """An address that drops packets as a dead machine does: its queue of connections is full and nobody empties it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.received: Counter[str] = Counter()  # as Copy has; nothing ever arrives
        self.finished: Counter[str] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.port = int(self._listener.getsockname()[1])
        self._fillers: list[socket.socket] = []

    @property
    def address(self) -> str:
        """Where nobody answers."""
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        while True:
            filler = socket.socket()
            filler.setblocking(False)
            self._fillers.append(filler)
            try:
                await asyncio.wait_for(asyncio.get_running_loop().sock_connect(filler, ("127.0.0.1", self.port)), 0.2)
            except TimeoutError:
                return self  # this one's packets were dropped, and so are all later ones

    async def __aexit__(self, *_error: object) -> None:
        for held in (*self._fillers, self._listener):
            held.close()
