# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long requests are split evenly: over all workers, after a reload, and when a copy has come back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ansible_collections.gb10.vllm.tests.proxy.client import ask, at_once, failures, shares
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site
from ansible_collections.gb10.vllm.tests.proxy.stories import story, until

HEADING = "16 long requests, two copies, 8 workers"
COLUMNS = f"{'':<66} spark1 spark2"
LONG = {"stream": True, "pieces": 15, "gap": 0.1}


def line(what: str, counts: dict[str, int]) -> str:
    return f"{what:<66} {counts.get('spark1', 0):6} {counts.get('spark2', 0):6}"


@story
async def test_eight_and_eight(table: Callable[..., None]) -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=8) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            answers = await at_once(site.port, 16, LONG)
            pids = len(site.workers().live)
    table(HEADING, line("all at once", shares(answers)), COLUMNS)
    assert pids == 8
    assert shares(answers) == {"spark1": 8, "spark2": 8}


@story
async def test_long_and_short_in_turn(table: Callable[..., None]) -> None:
    """Whoever only takes turns gives all the long ones to one copy."""
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=8) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            long = []
            for _pair in range(16):
                long.append(asyncio.create_task(ask(site.port, {"seconds": 1.5})))
                await until(lambda: first.running + second.running == len(long), "the long one runs")
                assert (await ask(site.port, {})).good
            answers = await asyncio.gather(*long)
    table(HEADING, line("each followed by a short one", shares(answers)), COLUMNS)
    assert shares(answers) == {"spark1": 8, "spark2": 8}


@story
async def test_after_a_reload_with_streams_running(table: Callable[..., None]) -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=8) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            early = asyncio.create_task(at_once(site.port, 6, LONG))
            await until(lambda: first.running + second.running == 6, "six streams run")
            await asyncio.to_thread(site.reload)
            late = await at_once(site.port, 16, LONG)
            before = await early
    table(HEADING, line("after a reload, while 6 streams run on in the old workers", shares(late)), COLUMNS)
    assert not failures([*before, *late])
    assert shares(late) == {"spark1": 8, "spark2": 8}


@story
async def test_after_a_return(table: Callable[..., None]) -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=8) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            await asyncio.to_thread(site.withdraw, second)
            early = asyncio.create_task(at_once(site.port, 8, LONG))
            await until(lambda: first.running == 8, "eight streams on the copy that is left")
            await asyncio.to_thread(site.admit, second)
            late = await at_once(site.port, 16, LONG, every=0.05)
            before = await early
    table(HEADING, line("after the withdrawn copy was admitted again, 8 streams on the other", shares(late)), COLUMNS)
    assert not failures([*before, *late])
    assert shares(before) == {"spark1": 8}
    assert shares(late) == {"spark1": 8, "spark2": 8}


@story
async def test_after_a_return_that_nobody_announced(table: Callable[..., None]) -> None:
    """Its process ended and was started again by its unit, and only long requests come: nginx's marks decide.

    nginx tries a marked copy with one request per fail_timeout and trusts it when that one has ended, so it takes its share
    late. Whoever sees it come back can admit it again, as above.
    """
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=8) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            await second.stop()
            before = await at_once(site.port, 4, {"seconds": 0.1})
            await second.start()
            late = await at_once(site.port, 22, {"seconds": 1.5}, every=0.25)
    table(
        HEADING, line("a killed copy is back, nobody says so; 22, one every 0.25 s, each 1.5 s", shares(late)), COLUMNS
    )
    assert shares(before) == {"spark1": 4}
    assert not failures(late)
    assert shares(late)["spark2"] >= 1
