# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that records what a person would want to know of each answer, and crowds of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

NUMBERS = itertools.count(1)
COPY_HEADER = "x-vllm-copy"


@dataclass
class Answer:
    """One request and what came of it."""

    request: str
    begun: float
    status: int = 0  # 0: no answer at all
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    arrivals: list[float] = field(default_factory=list)  # of the pieces of the body, in seconds after `begun`
    seconds: float = 0
    error: str = ""  # why the answer is missing or incomplete

    @property
    def good(self) -> bool:
        return self.status == 200 and not self.error

    @property
    def copy(self) -> str:
        return self.headers.get(COPY_HEADER, "")

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def first_byte(self) -> float:
        return self.arrivals[0] if self.arrivals else float("inf")

    @property
    def gaps(self) -> list[float]:
        return [late - early for early, late in itertools.pairwise(self.arrivals)]

    @property
    def why(self) -> str:
        """Empty for a good answer."""
        if self.good:
            return ""
        code = ""
        with contextlib.suppress(ValueError, TypeError, KeyError):
            code = f" {self.json['error']['code']}"
        if self.status == 503 and self.copy:
            code = " of the copy"
        return self.error or f"{self.status}{code}"


@dataclass
class Kept:
    """A connection that a client uses again, as SDKs do. `patient`: a request is sent anew when the server had closed it meanwhile."""

    patient: bool = True
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
    renewed: int = 0


async def ask(
    port: int,
    wish: dict[str, Any] | None = None,
    *,
    method: str = "POST",
    path: str = "/v1/chat/completions",
    headers: dict[str, str] | None = None,
    timeout: float = 20,
    address: str = "127.0.0.1",
    kept: Kept | None = None,
    enough: int = sys.maxsize,
) -> Answer:
    """One request, on a connection of its own unless one is kept; never raises for what the server does.

    `enough`: hang up after so many events of a stream.
    """
    answer = Answer(f"request-{next(NUMBERS)}", time.monotonic())
    body = b"" if wish is None else json.dumps(wish).encode()
    sent = {"Host": "proxy", "X-Request-Id": answer.request, "Accept-Encoding": "gzip"}
    sent |= {} if kept else {"Connection": "close"}
    sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))} if body else {}
    lines = [f"{method} {path} HTTP/1.1", *(f"{key}: {value}" for key, value in {**sent, **(headers or {})}.items())]
    message = "\r\n".join([*lines, "", ""]).encode() + body
    try:
        async with asyncio.timeout(timeout):
            while await _has_to_be_sent_anew(address, port, message, answer, kept, enough):
                pass
    except TimeoutError:
        answer.error = f"nothing within {timeout:g} s"
    except ConnectionRefusedError:
        answer.error = "refused"
    except (OSError, asyncio.IncompleteReadError):
        answer.error = "cut" if answer.status else "closed without an answer"
    answer.seconds = time.monotonic() - answer.begun
    return answer


async def _has_to_be_sent_anew(
    address: str, port: int, message: bytes, answer: Answer, kept: Kept | None, enough: int
) -> bool:
    used = kept.streams if kept else None
    reader, writer = used or await asyncio.open_connection(address, port)
    if kept:
        kept.streams = None
    try:
        writer.write(message)
        await _read(reader, answer, enough)
        if kept and answer.headers.get("connection") != "close":
            kept.streams = reader, writer
    except (OSError, asyncio.IncompleteReadError):
        if kept and kept.patient and used and not answer.status:
            kept.renewed += 1
            return True
        raise
    finally:
        if not (kept and kept.streams):
            writer.close()
    return False


async def _read(reader: asyncio.StreamReader, answer: Answer, enough: int) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    answer.status = int(head[0].split()[1])
    pairs = (line.partition(": ") for line in head[1:] if line)
    answer.headers = {name.lower(): value for name, _colon, value in pairs}
    if answer.headers.get("transfer-encoding") != "chunked":
        length = answer.headers.get("content-length")
        _arrived(answer, await (reader.read() if length is None else reader.readexactly(int(length))))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        _arrived(answer, (await reader.readexactly(size + 2))[:-2])
        if len(answer.arrivals) >= enough:
            return
    await reader.readuntil(b"\r\n")


def _arrived(answer: Answer, data: bytes) -> None:
    """Events of a stream count one by one, however they were packed on their way."""
    stream = answer.headers.get("content-type", "").startswith("text/event-stream")
    answer.body += data
    answer.arrivals += [time.monotonic() - answer.begun] * (data.count(b"\n\n") if stream else 1)


@asynccontextmanager
async def crowd(
    port: int,
    clients: int,
    wish: dict[str, Any] | None = None,
    pause: float = 0,
    timeout: float = 20,
    kept: Sequence[Kept] = (),
) -> AsyncIterator[list[Answer]]:
    """So many clients, each asking again as soon as it has its answer, until the block ends; then all are waited for.

    `kept`: one for each client that keeps its connection.
    """
    answers: list[Answer] = []
    over = asyncio.Event()

    async def one(own: Kept | None) -> None:
        while not over.is_set():
            answers.append(await ask(port, wish or {}, timeout=timeout, kept=own))
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for _client, own in itertools.zip_longest(range(clients), kept):
            group.create_task(one(own))
        try:
            yield answers
        finally:
            over.set()


async def at_once(port: int, count: int, wish: dict[str, Any], every: float = 0, timeout: float = 30) -> list[Answer]:
    """So many requests without waiting for answers in between, one `every` so many seconds."""

    async def later(seconds: float) -> Answer:
        await asyncio.sleep(seconds)
        return await ask(port, wish, timeout=timeout)

    return list(await asyncio.gather(*(later(number * every) for number in range(count))))


def shares(answers: Iterable[Answer]) -> Counter[str]:
    """How many good answers each copy gave."""
    return Counter(answer.copy for answer in answers if answer.good)


def failures(answers: Iterable[Answer]) -> Counter[str]:
    """The reasons of the answers that were not good."""
    return Counter(answer.why for answer in answers if not answer.good)
