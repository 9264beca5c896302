#!/usr/bin/env python3
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends chat completions at a steady rate with the OpenAI SDK, as a site's own clients would, and notes what came back.

One JSON object per request and line, written when the request is over (all times in seconds since the epoch):

start, end    when it was sent and when it was over
answered      when the headers of its answer came; null if the last attempt got none
status        HTTP status of that answer; else the kind of failure: timeout, connection, broken (the answer ended
              early), error-event (the stream carried an error), cancelled (this client was stopped)
copy          header X-Vllm-Copy of that answer, or null
streamed      every second request is, or all with --streamed all
text          how the answer begins
complete      a usable answer: status 200, finish_reason stop or length, some text, and for a stream the [DONE] event
retries       how often the SDK tried again; what it hides from its caller is in
attempts      [time, status] for each HTTP request sent; status null where no answer came

The rate is kept whatever the answers are, but never more than --concurrency requests are open. The client ends after
--seconds, on SIGTERM or SIGINT, or when --stop-file appears; requests still open then have --grace seconds to finish.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai


@dataclass
class Attempts:
    """What the HTTP layer saw of one request, below the SDK's retries."""

    seen: list[list[Any]] = field(default_factory=list)
    copy: str | None = None
    answered: float | None = None
    done: bool = False


# Each request is a task of its own, so the hooks below find the request they belong to here.
current: ContextVar[Attempts] = ContextVar("current")


async def on_request(_request: Any) -> None:
    attempts = current.get()
    attempts.seen.append([time.time(), None])
    attempts.copy = attempts.answered = None


async def on_response(response: Any) -> None:
    attempts = current.get()
    attempts.seen[-1][1] = response.status_code
    attempts.copy = response.headers.get("X-Vllm-Copy")
    attempts.answered = time.time()
    whole = response.aiter_bytes

    async def watched(*args: Any, **kwargs: Any) -> AsyncIterator[bytes]:
        """The SDK consumes the [DONE] event silently; a stream without it was cut."""
        tail = b""
        async for piece in whole(*args, **kwargs):
            tail = (tail + piece)[-64 - len(piece) :]
            attempts.done = attempts.done or b"data: [DONE]" in tail
            yield piece

    response.aiter_bytes = watched


def failure(error: BaseException, answered: bool) -> int | str:
    if isinstance(error, openai.APIStatusError):
        return error.status_code
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    # While a body is read, some versions of the SDK let the HTTP library's own errors through.
    if isinstance(error, openai.APITimeoutError) or "Timeout" in type(error).__name__:
        return "timeout"
    if isinstance(error, openai.APIConnectionError):
        return "broken" if answered else "connection"
    return "error-event" if isinstance(error, openai.APIError) else "broken"


async def ask(client: openai.AsyncOpenAI, options: argparse.Namespace, streamed: bool) -> dict[str, Any]:
    """Send one request and describe it; never raises."""
    attempts = Attempts()
    current.set(attempts)
    start = time.time()
    status: int | str = 200
    text, reason = "", ""
    messages: Any = [{"role": "user", "content": options.prompt}]
    common: dict[str, Any] = {"model": options.model, "max_tokens": options.max_tokens, "temperature": 0}
    try:
        if streamed:
            async with await client.chat.completions.create(messages=messages, stream=True, **common) as events:
                async for event in events:
                    for choice in event.choices:
                        text += choice.delta.content or ""
                        reason = choice.finish_reason or reason
        else:
            answer = await client.chat.completions.create(messages=messages, **common)
            text, reason = answer.choices[0].message.content or "", answer.choices[0].finish_reason
            attempts.done = True
    except (Exception, asyncio.CancelledError) as error:
        status = failure(error, answered=attempts.answered is not None)
    return {
        "start": start,
        "end": time.time(),
        "answered": attempts.answered,
        "status": status,
        "copy": attempts.copy,
        "streamed": streamed,
        "text": text[:80],
        "complete": status == 200 and reason in ("stop", "length") and bool(text) and attempts.done,
        "retries": max(0, len(attempts.seen) - 1),
        "attempts": attempts.seen,
    }


async def send(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for end in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(end, stop.set)
    hooks: dict[str, list[Callable[..., Any]]] = {"request": [on_request], "response": [on_response]}
    client = openai.AsyncOpenAI(
        base_url=options.base_url,
        api_key=options.api_key,
        max_retries=options.retries,
        timeout=options.timeout,
        http_client=openai.DefaultAsyncHttpxClient(event_hooks=hooks),
    )
    open_requests: set[asyncio.Task[None]] = set()
    ends = time.monotonic() + options.seconds

    with options.out.open("a") as out:

        async def one(streamed: bool) -> None:
            out.write(json.dumps(await ask(client, options, streamed)) + "\n")
            out.flush()

        sent = 0
        due = time.monotonic()
        while not (stop.is_set() or time.monotonic() >= ends or (options.stop_file and options.stop_file.exists())):
            if time.monotonic() >= due and len(open_requests) < options.concurrency:
                task = asyncio.create_task(one(streamed=options.streamed == "all" or sent % 2 == 1))
                open_requests.add(task)
                task.add_done_callback(open_requests.discard)
                sent += 1
                # what could not be sent in time is left out: a burst afterwards would not be a steady stream
                due = max(due + 1 / options.rate, time.monotonic())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(0.05, max(0.001, due - time.monotonic())))
        if open_requests:
            _, late = await asyncio.wait(open_requests, timeout=options.grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late)


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add = parser.add_argument
    add("--base-url", required=True, help="with the /v1 at its end")
    add("--model", required=True)
    add("--out", required=True, type=Path, help="file of records, appended to")
    add("--api-key", default="none")
    add("--rate", type=float, default=5.0, help="requests per second")
    add("--concurrency", type=int, default=32, help="most requests open at once")
    add("--seconds", type=float, default=600.0, help="end after this time")
    add("--stop-file", type=Path, help="end when this file exists")
    add("--grace", type=float, default=30.0, help="seconds for open requests at the end")
    add("--retries", type=int, default=openai.DEFAULT_MAX_RETRIES, help="of the SDK")
    add("--timeout", type=float, default=600.0, help="of one HTTP request, in seconds; the SDK's own")
    add("--max-tokens", type=int, default=16)
    add("--streamed", choices=("half", "all"), default="half")
    add("--prompt", default="What is the capital of France? Answer with one word.")
    return parser.parse_args(words)


if __name__ == "__main__":
    asyncio.run(send(arguments(sys.argv[1:])))
