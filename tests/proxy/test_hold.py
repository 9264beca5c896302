# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests wait while a rollout has no copy for them: real nginx, the real helper."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ansible_collections.gb10.vllm.tests.proxy.client import Answer, ask, at_once, failures, shares
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.hold_helper import Helper
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site, wait_for
from ansible_collections.gb10.vllm.tests.proxy.stories import until

HEADING = "Requests that come while no copy is there"


@asynccontextmanager
async def window(armed: bool = True, **bounds: Any) -> AsyncIterator[tuple[Copy, Site, Helper]]:
    """A site without an admitted copy."""
    async with Copy("spark1") as copy:
        with Site([copy]) as site, Helper(site, **bounds) as helper:
            if armed:
                helper.arm()
            yield copy, site, helper


def asking(site: Site, count: int, wish: dict[str, Any] | None = None, **more: Any) -> list[asyncio.Task[Answer]]:
    return [asyncio.create_task(ask(site.port, wish or {}, **more)) for _number in range(count)]


def of_clients(copy: Copy) -> dict[str, int]:
    """What reached it, without the helper's own looks."""
    return {name: number for name, number in copy.received.items() if name.startswith("request-")}


async def until_waiting(helper: Helper, number: int) -> None:
    await asyncio.to_thread(helper.wait_for_waiting, number)


def test_all_wait_and_are_answered_with_their_bodies_plain_and_streamed(table: Callable[[str, str], None]) -> None:
    async def story() -> None:
        async with window() as (copy, site, helper):
            plain = asking(site, 10, {"pad": "x" * 300_000})
            streams = asking(site, 10, {"stream": True, "pieces": 4, "gap": 0.05})
            await until_waiting(helper, 20)
            for _time in range(3):
                await asyncio.to_thread(site.reload)
            assert helper.counts()["waiting"] == 20
            await asyncio.to_thread(site.admit, copy)
            admitted = time.monotonic()
            answers = await asyncio.gather(*plain, *streams)
            assert failures(answers) == {}
            assert shares(answers) == {"spark1": 20}
            assert of_clients(copy) == {answer.request: 1 for answer in answers}
            # As the copy sends them, also by way of two servers.
            assert all(len(answer.arrivals) == 4 and min(answer.gaps) > 0.02 for answer in answers[10:])
            first = min(answer.begun + answer.first_byte for answer in answers) - admitted
            counts = helper.counts()
            assert (counts["held"], counts["released"], counts["waiting"]) == (20, 20, 0)
            table(
                HEADING,
                f"held for {counts['longest_seconds']:.1f} s through 4 reloads: 20 of 20 answered, the first {first:.2f} s after the admission",
            )

    asyncio.run(story())


def test_exactly_the_excess_is_sent_away(table: Callable[[str, str], None]) -> None:
    async def story() -> None:
        async with window(requests=5) as (copy, site, helper):
            tasks = asking(site, 8)
            await until_waiting(helper, 5)
            await until(lambda: sum(task.done() for task in tasks) == 3, "three are sent away")
            sent_away = [task.result() for task in tasks if task.done()]
            assert failures(sent_away) == {"503 no_copy_admitted": 3}
            assert all(answer.headers["retry-after"] == "5" for answer in sent_away)
            await asyncio.to_thread(site.admit, copy)
            assert failures(await asyncio.gather(*tasks)) == {"503 no_copy_admitted": 3}
            assert (helper.counts()["full"], helper.counts()["turned_away"]) == (3, 3)
            helper.module("armed", seconds=60, why="the next rollout")
            assert helper.counts()["held"] == helper.counts()["full"] == 0
            table(HEADING, "room for 5, 8 asked: 5 answered, 3 got 503 with Retry-After")

    asyncio.run(story())


def test_without_a_declaration_nobody_waits_and_health_never_does() -> None:
    async def story() -> None:
        async with window(armed=False) as (_copy, site, helper):
            answer = await ask(site.port, {})
            assert (answer.status, answer.json["error"]["code"]) == (503, "no_copy_admitted")
            helper.arm()
            assert (await ask(site.port, method="GET", path="/health")).status == 503
            assert helper.counts()["held"] == 0
            waiting = asking(site, 1)
            await until_waiting(helper, 1)
            # The rollout ended and nothing serves: the truth at once.
            assert helper.module("disarmed") | {"counts": {}} == {
                "changed": True,
                "armed": False,
                "helper": True,
                "counts": {},
            }
            assert failures(await asyncio.gather(*waiting)) == {"503 no_copy_admitted": 1}
            assert not helper.module("disarmed")["changed"]

    asyncio.run(story())


def test_the_bounds_of_time_and_size() -> None:
    async def story() -> None:
        async with window(seconds=1, body_bytes=100_000) as (_copy, site, helper):
            large = await ask(site.port, {"pad": "x" * 120_000})
            assert (large.status, helper.counts()["held"]) == (503, 0)
            late = await ask(site.port, {"pad": "x" * 50_000})
            assert late.status == 503
            assert late.seconds > 0.9
            assert late.headers["retry-after"] == "5"
            assert {name: helper.counts()[name] for name in ("too_large", "too_long", "waiting")} == {
                "too_large": 1,
                "too_long": 1,
                "waiting": 0,
            }
        # The declaration ends by itself, long before a request has waited as long as one may.
        async with window(armed=False) as (_copy, site, helper):
            helper.arm(1)
            assert (await ask(site.port, {})).status == 503
            assert (helper.counts()["held"], helper.counts()["ended"]) == (1, 1)

    asyncio.run(story())


def test_the_helper_may_die_and_nobody_who_waits_notices(table: Callable[[str, str], None]) -> None:
    async def story() -> None:
        async with window() as (copy, site, helper):
            # As many as may wait unless the site says otherwise: while no helper is there they all queue at its socket.
            tasks = asking(site, 256)
            await until_waiting(helper, 256)
            for _time in range(2):
                helper.kill()
                # nginx has noticed, and asked again.
                await asyncio.to_thread(wait_for, lambda: helper.queued() == 256, "all queue at the socket")
                helper.start()
                await until_waiting(helper, 256)
            await asyncio.to_thread(site.admit, copy)
            assert failures(await asyncio.gather(*tasks)) == {}
            # Dead for good: a healthy site does not care, and without a copy clients get the truth at once.
            helper.end()
            assert failures(await at_once(site.port, 20, {})) == {}
            await asyncio.to_thread(site.withdraw, copy)
            answer = await ask(site.port, {})
            assert (answer.status, answer.json["error"]["code"]) == (503, "no_copy_admitted")
            table(
                HEADING,
                "the helper killed twice while 256 waited: 256 answered; killed for good: 20 of 20 answered by the copy",
            )

    asyncio.run(story())


def test_who_hangs_up_is_forgotten() -> None:
    async def story() -> None:
        async with window() as (copy, site, helper):
            tasks = asking(site, 4)
            await until_waiting(helper, 4)
            for task in tasks[:3]:
                task.cancel()
            await until_waiting(helper, 1)
            for task in tasks[:3]:
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.to_thread(site.admit, copy)
            answer = await tasks[3]
            assert answer.good
            assert of_clients(copy) == {answer.request: 1}
            assert helper.counts()["gone"] == 3

    asyncio.run(story())


def test_they_are_let_go_gently(table: Callable[[str, str], None]) -> None:
    async def story() -> None:
        async with window(first_releases=8) as (copy, site, helper):
            tasks = asking(site, 60, {"seconds": 0.2})
            await until_waiting(helper, 60)
            await asyncio.to_thread(site.admit, copy)
            answers = await asyncio.gather(*tasks)
            assert failures(answers) == {}
            begun = sorted(answer.begun + answer.seconds for answer in answers)
            after = [moment - begun[0] for moment in begun]
            # 1 + 8 * (2^t - 1): nine in the first second, 25 in two, all sixty within three and a bit.
            assert sum(seconds < 0.95 for seconds in after) < 25
            assert after[-1] > 2
            table(
                HEADING,
                f"60 let go at 8 in the first second, then twice as many: {sum(s < 1 for s in after)}, {sum(1 <= s < 2 for s in after)}, "
                f"{sum(2 <= s < 3 for s in after)}, {sum(s >= 3 for s in after)}",
            )

    asyncio.run(story())


def test_a_request_that_a_copy_has_seen_does_not_wait() -> None:
    async def story() -> None:
        async with window() as (copy, site, helper):
            copy.fault = "reset"
            await asyncio.to_thread(site.admit, copy)
            answer = await ask(site.port, {})
            assert (answer.status, helper.counts()["held"]) == (503, 0)
            # One that refuses connections has seen nothing: there it waits, until the copy is back.
            await copy.stop()
            copy.fault = ""
            task = asyncio.create_task(ask(site.port, {}))
            await until_waiting(helper, 1)
            await copy.start()
            assert (await task).good

    asyncio.run(story())
