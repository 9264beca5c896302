# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams come as the copy sends them, and a reload leaves them alone."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable

import pytest
from ansible_collections.gb10.vllm.tests.proxy.client import ask, failures
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site, wait_for
from ansible_collections.gb10.vllm.tests.proxy.stories import story, until

HEADING = "streams"


@pytest.mark.parametrize("until_closed", [pytest.param(False, id="chunks"), pytest.param(True, id="until-closed")])
@story
async def test_pieces_come_as_they_are_sent(until_closed: bool, table: Callable[..., None]) -> None:
    async with Copy("spark1") as copy:
        with Site([copy]) as site:
            await asyncio.to_thread(site.set_members, [copy])
            wish = {"stream": True, "pieces": 10, "gap": 0.1, "until_closed": until_closed}
            answer = await ask(site.port, wish)
    # Each piece carries when it was sent, on the same clock.
    sent = [float(line.split()[2]) - answer.begun for line in answer.body.decode().splitlines() if line]
    late = [arrived - left for arrived, left in zip(answer.arrivals, sent, strict=True)]
    table(
        HEADING,
        f"10 pieces, one every 100 ms, {'until closed' if until_closed else 'in chunks'}: the latest came "
        f"{max(late) * 1000:.1f} ms after it was sent; not compressed",
    )
    assert not failures([answer])
    assert len(late) == 10
    assert statistics.median(late) < 0.09
    assert "content-encoding" not in answer.headers


@story
async def test_a_reload_cuts_no_stream_and_leaves_no_worker(table: Callable[..., None]) -> None:
    async with Copy("spark1") as copy:
        with Site([copy]) as site:
            await asyncio.to_thread(site.set_members, [copy])
            # A client that keeps its connection without using it must not keep an old worker.
            reader, idle = await asyncio.open_connection("127.0.0.1", site.port)
            idle.write(b"GET /v1/models HTTP/1.1\r\nHost: proxy\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            streams = []
            for _reload in range(3):
                streams.append(asyncio.create_task(ask(site.port, {"stream": True, "pieces": 15, "gap": 0.1})))
                await until(lambda: copy.running == len(streams), "the stream runs")
                await asyncio.to_thread(site.reload)
            finishing = len(site.workers().draining)
            answers = await asyncio.gather(*streams)
            ended = await asyncio.to_thread(wait_for, lambda: not site.workers().draining, "old workers end", 20)
            idle.close()
    table(
        HEADING,
        f"3 streams through 3 reloads: all whole; {finishing} old workers while they ran, none {ended:.2f} s after the last",
    )
    assert not failures(answers)
    assert {len(answer.arrivals) for answer in answers} == {15}
    assert finishing == 3
