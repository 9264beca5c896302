# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tools of this folder do what the stories rely on."""

from __future__ import annotations

import asyncio
import time

import pytest
from ansible_collections.gb10.vllm.tests.proxy.client import ask, at_once, crowd, failures, shares
from ansible_collections.gb10.vllm.tests.proxy.copies import FAULTS, Blackhole, Copy
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("", {}),
        ("503", {"503 503": 1}),
        ("silent", {"nothing within 0.3 s": 1}),
        ("reset", {"closed without an answer": 1}),
        ("cut", {"cut": 1}),
    ],
)
def test_a_copy_behaves_as_told(fault: str, why: dict[str, int]) -> None:
    async def story() -> None:
        async with Copy("spark1", fault) as copy:
            answer = await ask(
                copy.port, {"stream": True, "pieces": 4, "gap": 0.01}, timeout=0.3 if fault == "silent" else 20
            )
            assert failures([answer]) == why
            assert copy.received == {answer.request: 1}
            assert copy.finished == ({} if fault else {answer.request: 1})
            assert len(answer.arrivals) == {"": 4, "cut": 2, "503": 1}.get(fault, 0)
            await copy.stop()
            assert (await ask(copy.port, {})).error == "refused"

    assert fault in FAULTS
    asyncio.run(story())


def test_packets_to_a_blackhole_are_dropped() -> None:
    async def story() -> None:
        async with Blackhole("spark2") as hole:
            assert (await ask(hole.port, {}, timeout=0.5)).error == "nothing within 0.5 s"

    asyncio.run(story())


def test_the_site_is_the_roles_own_and_reloads_are_proven() -> None:
    async def story() -> None:
        async with Copy("spark1") as first, Copy("spark2") as second:
            with Site([first, second]) as site:
                nobody = await ask(site.port, {})
                assert (nobody.status, nobody.json["error"]["code"]) == (503, "no_copy_admitted")
                assert await asyncio.to_thread(site.set_members, [first, second]) < 5
                answers = await at_once(site.port, 8, {"seconds": 0.2})
                assert shares(answers) == {"spark1": 4, "spark2": 4}
                assert await asyncio.to_thread(site.withdraw, first) < 5
                async with crowd(site.port, 2) as later:
                    end = time.monotonic() + 0.2
                    while time.monotonic() < end:
                        await asyncio.sleep(0.01)
                assert set(shares(later)) == {"spark2"}
                assert not failures(later)
                assert set(first.received.values()) | set(second.received.values()) == {1}

    asyncio.run(story())
