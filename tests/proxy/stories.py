# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stories have in common: running one, and the line it leaves behind."""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.gb10.vllm.tests.proxy.client import Answer, failures
from ansible_collections.gb10.vllm.tests.proxy.copies import Blackhole, Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site


def story(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """An async test: its copies, clients and waits share one event loop."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))  # type: ignore[arg-type]

    return run


async def until(condition: Callable[[], bool], what: str, seconds: float = 10) -> None:
    """Wait for a condition while copies and clients go on."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < end, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(0.01)


@dataclass
class Books:
    """What clients were told beside what the copies saw and were offered."""

    answers: Sequence[Answer]
    copies: Sequence[Copy | Blackhole]
    offers: Sequence[int]

    @classmethod
    async def of(cls, site: Site, answers: Sequence[Answer], *copies: Copy | Blackhole) -> Books:
        await until(lambda: len(site.offers()) >= len(answers), "nginx has logged every request")
        return cls(answers, copies, [sum(copy.address in seen for seen in site.offers()) for copy in copies])

    @property
    def failed(self) -> Counter[str]:
        return failures(self.answers)

    @property
    def lost(self) -> list[str]:
        """Requests that a copy answered in full, and whose client has no good answer."""
        good = {answer.request for answer in self.answers if answer.good}
        return [request for copy in self.copies for request in copy.finished if request not in good]

    @property
    def doubled(self) -> list[str]:
        """Requests that were worked on to the end more than once."""
        done = sum((copy.finished for copy in self.copies), Counter[str]())
        return [request for request, times in done.items() if times > 1]

    def share(self, number: int) -> float:
        """The part of the clients' requests that the copy with this number was offered."""
        return self.offers[number] / len(self.answers)

    def line(self, what: str) -> str:
        failed = ", ".join(f"{times} {why}" for why, times in self.failed.most_common()) or "-"
        offered = " ".join(f"{self.share(number):6.1%}" for number in range(len(self.copies)))
        slowest = max(answer.seconds for answer in self.answers)
        good = len(self.answers) - self.failed.total()
        return (
            f"{what:<52} {len(self.answers):6} {good:8} {self.failed.total():6} {len(self.lost):5} "
            f"{len(self.doubled):7}  {offered} {slowest:7.2f}  {failed}"
        )


COLUMNS = (
    f"{'':<52} {'sent':>6} {'answered':>8} {'failed':>6} {'lost':>5} {'doubled':>7}  {'offered to both':13} "
    f"{'slowest':>5}  why failed"
)
