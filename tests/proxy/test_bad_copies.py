# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One copy is well, the other one is not: who gets which requests, and what clients are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.proxy.client import Kept, crowd
from ansible_collections.gb10.vllm.tests.proxy.copies import FAULTS, PIECES_BEFORE_CUT, Blackhole, Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site
from ansible_collections.gb10.vllm.tests.proxy.stories import COLUMNS, Books, story

HEADING = "spark1 is well, spark2 is not; 8 clients, each one request after the other"
SECONDS = 1.5
STREAM = {"stream": True, "pieces": 5, "gap": 0.02}
# A silent copy is given up after two seconds instead of an hour, and nothing is offered to another copy so late.
SHORT = {"vllm_proxy_read_timeout_seconds": 2, "vllm_proxy_next_upstream_timeout_seconds": 1}
SMALL = 0.1


class Absent(Copy):
    """A copy whose port is closed."""

    async def start(self) -> None:
        """Not at all."""


@pytest.mark.parametrize(
    ("what", "bad", "variables", "told", "most"),
    [
        pytest.param("is well too", lambda: Copy("spark2"), {}, set(), 0.6, id="well"),
        pytest.param("refuses connections", lambda: Absent("spark2"), {}, set(), SMALL, id="refuses"),
        pytest.param("drops packets", lambda: Blackhole("spark2"), {}, set(), SMALL, id="drops"),
        pytest.param(FAULTS["503"], lambda: Copy("spark2", "503"), {}, set(), SMALL, id="503"),
        pytest.param(FAULTS["reset"], lambda: Copy("spark2", "reset"), {}, set(), SMALL, id="reset"),
        pytest.param(
            FAULTS["silent"], lambda: Copy("spark2", "silent"), SHORT, {"504 copy_timeout"}, SMALL, id="silent"
        ),
        # nginx counts a failure only before an answer has begun: this copy is never marked, whoever sees it must withdraw it.
        pytest.param(FAULTS["cut"], lambda: Copy("spark2", "cut"), {}, {"cut"}, 0.7, id="cut"),
    ],
)
@story
async def test_one_bad_copy(
    what: str,
    bad: Callable[[], Any],
    variables: dict[str, Any],
    told: set[str],
    most: float,
    table: Callable[..., None],
) -> None:
    async with Copy("spark1") as good, bad() as other:
        with Site([good, other], **variables) as site:
            await asyncio.to_thread(site.set_members, [good, other])
            async with crowd(site.port, 4, {"seconds": 0.05}) as plain, crowd(site.port, 4, STREAM) as streams:
                await asyncio.sleep(SECONDS)
            books = await Books.of(site, [*plain, *streams], good, other)
    table(HEADING, books.line(what), COLUMNS)
    assert set(books.failed) == told
    assert not books.lost
    assert not books.doubled
    assert books.share(1) < most
    # A stream is whole, or its client knows that it is not.
    assert {len(answer.arrivals) for answer in streams if answer.good} == {5}
    assert {len(answer.arrivals) for answer in streams if answer.why == "cut"} <= {PIECES_BEFORE_CUT}


@pytest.mark.parametrize(
    ("keep", "seconds"),
    [
        pytest.param(False, 0, id="anew"),
        pytest.param(True, 0, id="kept-where-possible"),
        pytest.param(True, 75, id="kept"),
    ],
)
@story
async def test_twenty_reloads(keep: bool, seconds: int, table: Callable[..., None]) -> None:
    # Where connections stay open only clients that send a request anew lose none.
    kept = [Kept(patient=seconds > 0) for _client in range(8 if keep else 0)]
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], vllm_proxy_keepalive_seconds=seconds) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            async with (
                crowd(site.port, 4, {"seconds": 0.05}, kept=kept[:4]) as plain,
                crowd(site.port, 4, STREAM, kept=kept[4:]) as streams,
            ):
                for _reload in range(20):
                    await asyncio.to_thread(site.reload)
            books = await Books.of(site, [*plain, *streams], first, second)
    renewed = sum(own.renewed for own in kept)
    what = f", {seconds} s kept open ({renewed} sent anew)" if keep else ""
    table(HEADING, books.line(f"is well, 20 reloads{what}"), COLUMNS)
    assert not books.failed
    assert not books.lost
    assert not books.doubled
    assert set((first.received + second.received).values()) == {1}
    assert {len(answer.arrivals) for answer in streams} == {5}
