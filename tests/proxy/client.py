# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that records what a person would want to know of each answer, and crowds of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
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


async def ask(
    port: int,
    wish: dict[str, Any] | None = None,
    *,
    method: str = "POST",
    path: str = "/v1/chat/completions",
    headers: dict[str, str] | None = None,
    timeout: float = 20,
    address: str = "127.0.0.1",
) -> Answer:
    """One request on a connection of its own; never raises for what the server does."""
    answer = Answer(f"request-{next(NUMBERS)}", time.monotonic())
    body = b"" if wish is None else json.dumps(wish).encode()
    sent = {"Host": "proxy", "X-Request-Id": answer.request, "Connection": "close", "Accept-Encoding": "gzip"}
    sent |= {"Content-Type": "application/json", "Content-Length": str(len(body))} if body else {}
    lines = [f"{method} {path} HTTP/1.1", *(f"{key}: {value}" for key, value in {**sent, **(headers or {})}.items())]
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection(address, port)
            try:
                writer.write("\r\n".join([*lines, "", ""]).encode() + body)
                await _read(reader, answer)
            finally:
                writer.close()
    except TimeoutError:
        answer.error = f"nothing within {timeout:g} s"
    except ConnectionRefusedError:
        answer.error = "refused"
    except (OSError, asyncio.IncompleteReadError):
        answer.error = "cut" if answer.status else "closed without an answer"
    answer.seconds = time.monotonic() - answer.begun
    return answer


async def _read(reader: asyncio.StreamReader, answer: Answer) -> None:
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
    await reader.readuntil(b"\r\n")


def _arrived(answer: Answer, piece: bytes) -> None:
    answer.body += piece
    answer.arrivals.append(time.monotonic() - answer.begun)


@asynccontextmanager
async def crowd(
    port: int, clients: int, wish: dict[str, Any] | None = None, pause: float = 0, timeout: float = 20
) -> AsyncIterator[list[Answer]]:
    """So many clients, each asking again as soon as it has its answer, until the block ends; then all are waited for."""
    answers: list[Answer] = []
    over = asyncio.Event()

    async def one() -> None:
        while not over.is_set():
            answers.append(await ask(port, wish or {}, timeout=timeout))
            await asyncio.sleep(pause)

    async with asyncio.TaskGroup() as group:
        for _client in range(clients):
            group.create_task(one())
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
