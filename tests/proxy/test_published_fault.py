# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault of the published configuration, and the same minute with ours, in one run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from ansible_collections.gb10.vllm.tests.proxy.client import Answer, crowd
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site
from ansible_collections.gb10.vllm.tests.proxy.stories import story, until

PUBLISHED_SECONDS = 30
SECONDS = 5
PUBLISHED = """
upstream vllm {
    server %s max_fails=3 fail_timeout=%ds;
    server %s max_fails=3 fail_timeout=%ds;
}
server {
    listen 127.0.0.1:{port};
    location / {
        proxy_pass http://vllm;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffering off;
        proxy_read_timeout 3600s;
    }
}
"""


def after(answers: list[Answer], moment: float) -> tuple[int, float]:
    """Of the requests begun after a moment: how many failed, and when the first good answer was there."""
    late = [answer for answer in answers if answer.begun >= moment]
    good = [answer.begun + answer.seconds - moment for answer in late if answer.good]
    return sum(not answer.good for answer in late), min(good, default=float("inf"))


async def last(count: int, answers: list[Answer], good: bool) -> None:
    """Wait until the newest answers are all good, or all bad."""
    await until(
        lambda: len(answers) >= count and all(answer.good == good for answer in answers[-count:]),
        f"{count} {'good' if good else 'bad'} answers in a row",
        SECONDS + 5,
    )


@story
async def test_a_copy_that_is_up_again_gets_requests(table: Callable[[str, str], None]) -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        published = PUBLISHED % (first.address, SECONDS, second.address, SECONDS)
        with (
            Site([first, second], text=published) as theirs,
            Site([first, second]) as ours,
            Site([first, second]) as alone,
        ):
            await asyncio.to_thread(ours.set_members, [first, second])
            await asyncio.to_thread(alone.set_members, [first, second])
            async with (
                crowd(theirs.port, 2, pause=0.02) as to_theirs,
                crowd(ours.port, 2, pause=0.02) as to_ours,
                crowd(alone.port, 2, pause=0.02) as to_alone,
            ):
                # Both copies go, as in a change of what they serve. Ours is told of it, the others find out.
                await asyncio.to_thread(ours.set_members, [])
                await first.stop()
                await second.stop()
                for answers in (to_theirs, to_ours, to_alone):
                    await last(20, answers, good=False)
                await first.start()
                up = time.monotonic()
                await asyncio.to_thread(ours.admit, first)
                admitted = time.monotonic()
                for answers in (to_theirs, to_ours, to_alone):
                    await last(5, answers, good=True)
    their_errors, their_seconds = after(to_theirs, up)
    our_errors, our_seconds = after(to_ours, up)
    errors_admitted, seconds_admitted = after(to_ours, admitted)
    alone_errors, alone_seconds = after(to_alone, up)
    heading = "a copy is up again: how long do clients still get errors?"
    table(
        heading,
        f"published (max_fails=3 fail_timeout={PUBLISHED_SECONDS}s, here {SECONDS}s = 1:{PUBLISHED_SECONDS // SECONDS}): "
        f"{their_errors} errors for {their_seconds:.2f} s, so about {their_seconds * PUBLISHED_SECONDS / SECONDS:.0f} s as published",
    )
    table(
        heading, f"ours, nobody admits it (fail_timeout of the role): {alone_errors} errors for {alone_seconds:.2f} s"
    )
    table(
        heading,
        f"ours, admitted by a rollout: {our_errors} errors until the admission was proven, {errors_admitted} after it; "
        f"first answer {our_seconds:.2f} s after the copy was up",
    )
    assert their_seconds > 0.8 * SECONDS
    assert their_errors > 20
    assert errors_admitted == 0
    assert our_seconds < their_seconds / 4
    assert seconds_admitted < their_seconds / 4
    assert alone_seconds < their_seconds
