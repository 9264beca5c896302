# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy is taken out when its own host asks, or when it cuts its streams, and comes back through the gate, under load."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import re
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _members, _nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS
from ansible_collections.gb10.vllm.tests.proxy.client import Answer, ask, at_once, crowd, failures, shares
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.members_service import STRANGER, Service
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site
from ansible_collections.gb10.vllm.tests.proxy.stories import story, until

ONE, TWO = "127.0.0.11", "127.0.0.12"
HEADING = "a copy that resets in the middle of a stream, with the members service beside nginx"
COLUMNS = f"{'':<62} answers whole   cut  its share"


@asynccontextmanager
async def world(cuts: dict[str, float] | None = None, **more: float) -> AsyncIterator[tuple[Copy, Copy, Site, Service]]:
    """Two copies, both admitted."""
    async with Copy("spark1", host=ONE) as first, Copy("spark2", host=TWO) as second:
        with Site([first, second]) as site:
            await asyncio.to_thread(site.set_members, [first, second])
            with Service(site, cuts, **more) as service:
                await asyncio.to_thread(service.wait_for_look)
                yield first, second, site, service


@story
async def test_withdrawn_and_back_under_load(table: Callable[..., None]) -> None:
    async with world() as (first, second, site, service):
        entry = _nginx.Server("spark2", second.address, max_fails=7, weight=2)
        site.members = _nginx.admit(site.members, entry)
        await asyncio.to_thread(site.reload)
        before = service.membership()
        async with crowd(site.port, 8, {"seconds": 0.05}) as answers:
            begun = time.monotonic()
            status, told = await asyncio.to_thread(service.ask, TWO, "withdrawn", "its tokens do not move")
            took = time.monotonic() - begun
            assert (status, told["admitted"]) == (200, False)
            assert (await asyncio.to_thread(service.ask, TWO))[1]["reason"] == "its tokens do not move"
            assert service.admitted() == ["spark1"]
            await until(lambda: second.running == 0, "what it had is answered")
            await second.stop()
            assert (await asyncio.to_thread(service.ask, TWO, "withdrawn"))[0] == 202
            status, told = await asyncio.to_thread(service.ask, TWO, "ready")
            assert (status, told["admitted"]) == (422, False)
            await second.start()
            second.says = "Berlin"
            status, told = await asyncio.to_thread(service.ask, TWO, "ready")
            assert status == 422
            assert "did not pass the gate: the answer" in told["reason"]
            second.says = "Paris"
            begun = time.monotonic()
            # Asked twice at once, answered twice alike.
            both = await asyncio.gather(*(asyncio.to_thread(service.ask, TWO, "ready") for _time in range(2)))
            back = time.monotonic() - begun
            assert [(status, told["admitted"]) for status, told in both] == [(200, True)] * 2
            assert (await asyncio.to_thread(service.ask, TWO, "ready"))[0] == 202
        assert not failures(answers)
        assert service.membership() == before
        late = await at_once(site.port, 18, {"seconds": 1})
        assert shares(late) == {"spark1": 6, "spark2": 12}  # a weight of 2
        table(HEADING, f"asked by its host: out after {took:.3f} s, back through the gate after {back:.3f} s", COLUMNS)


@story
async def test_who_may_ask_and_when() -> None:
    async with world() as (first, second, site, service):
        looked = await asyncio.to_thread(service.ask, ONE)
        assert looked == (
            200,
            {"name": "spark1", "admitted": True, "withdrawn_since": None, "reason": "", "by": ""},
        )
        status, told = await asyncio.to_thread(service.ask, STRANGER, "withdrawn")
        assert (status, told["reason"]) == (403, f"{STRANGER} is not the address of an engine host of this site")
        # A pause: nothing is changed, whoever asks.
        (service.pause_dir / "rollout.json").write_text(
            json.dumps({"until": None, "who": "somebody", "why": "cutover"})
        )
        status, told = await asyncio.to_thread(service.ask, ONE, "withdrawn")
        assert (status, told["reason"]) == (409, "paused: rollout.json (somebody, cutover)")
        (service.pause_dir / "rollout.json").unlink()
        assert service.admitted() == ["spark1", "spark2"]
        # What somebody else withdrew stays out; what this service withdrew is somebody else's when he decides anew.
        await asyncio.to_thread(site.withdraw, first)
        status, told = await asyncio.to_thread(service.ask, ONE, "ready")
        assert (status, told["admitted"]) == (202, False)
        await asyncio.to_thread(site.admit, first)
        assert (await asyncio.to_thread(service.ask, ONE, "withdrawn"))[0] == 200
        record = (await asyncio.to_thread(service.wait_for_look), json.loads((service.run_dir / "record").read_text()))[
            1
        ]
        assert list(record) == ["spark1"]
        await asyncio.to_thread(site.reload)  # as a rollout's own list would
        site.members = _nginx.withdraw(service.membership(), "spark1")
        await asyncio.to_thread(site.reload)
        assert (await asyncio.to_thread(service.ask, ONE, "ready"))[0] == 202
        assert service.admitted() == ["spark2"]
        # The last copy: honest, and the way back is open.
        assert (await asyncio.to_thread(service.ask, TWO, "withdrawn"))[0] == 200
        answer = await ask(site.port, {})
        assert (answer.status, answer.headers["retry-after"], answer.json["error"]["code"]) == (
            503,
            "5",
            "no_copy_admitted",
        )
        assert (await asyncio.to_thread(service.ask, TWO, "ready"))[0] == 200
        assert (await ask(site.port, {})).good
        metrics = (service.run_dir / "metrics").read_text()
        assert 'gb10_vllm_members_withdrawn{copy="spark1"} ' in metrics


@story
async def test_strangers_cannot_stop_it() -> None:
    """Connections that say nothing, too much, or nonsense."""
    async with world() as (_first, _second, _site, service):
        idle = [
            socket.create_connection(("127.0.0.1", service.port), source_address=(STRANGER, 0)) for _each in range(100)
        ]
        try:
            for words, answer in (
                (b"POST /copy HTTP/1.1\r\nContent-Length: 5000\r\n\r\n", b"HTTP/1.1 413 "),
                (b"POST /copy HTTP/1.1\r\nContent-Length: 1\r\n\r\n{", b"HTTP/1.1 400 "),
                (b"POST /copy HTTP/1.1\r\nContent-Length: x\r\n\r\n", b""),
                (b"x" * 20000 + b"\r\n\r\n", b""),
            ):
                with socket.create_connection(("127.0.0.1", service.port), source_address=(ONE, 0)) as one:
                    one.sendall(words)
                    told = b""
                    with contextlib.suppress(ConnectionResetError):
                        told = one.recv(100)
                    assert told[:13] == answer
            assert (await asyncio.to_thread(service.ask, ONE))[0] == 200
        finally:
            for each in idle:
                each.close()


@story
async def test_killed_in_between(table: Callable[..., None]) -> None:
    """Whenever the service is killed, the copy is admitted, or withdrawn with the record that brings it back."""
    async with world() as (first, second, site, service):
        async with crowd(site.port, 4, {"seconds": 0.02}) as answers:
            found = []
            for written in (False, True):
                asked = asyncio.create_task(asyncio.to_thread(_ask_quietly, service))
                if written:
                    # Its list is written; whether nginx knows of it is chance.
                    await until(lambda: "spark1" not in service.admitted(), "the list has changed")
                else:
                    await asyncio.sleep(0.02)
                await asyncio.to_thread(service.kill)
                service.start()
                await asked
                found.append("spark1" in service.admitted())
                status, told = await asyncio.to_thread(service.ask, ONE, "ready")
                assert status == (202 if found[-1] else 200), (told, service.log.read_text())
                assert service.admitted() == ["spark1", "spark2"]
            # Exactly between the file and nginx's reload: the service's next start makes nginx follow its list.
            await asyncio.to_thread(service.kill)
            await asyncio.sleep(0.1)  # as long after the last reload as its start could be told from this
            taken = _members.taken_out(service.membership(), "spark1", _members.HOST, "it is stalled", time.time())
            (site.folder / SERVERS).write_text(_nginx.render(taken))
            service.start()
            status, told = await asyncio.to_thread(service.ask, ONE)
            assert (status, told["admitted"]) == (200, False)
            await until(lambda: first.running == 0, "nginx has followed")
            received = first.received.total()
            for _request in range(20):
                assert (await ask(site.port, {})).copy == "spark2"
            assert first.received.total() == received
            assert (await asyncio.to_thread(service.ask, ONE, "ready"))[0] == 200
        assert not failures(answers)
    table(
        HEADING,
        f"killed before and after a withdrawal was written ({found.count(False)} of 2): both came back, no request failed",
        COLUMNS,
    )


def _ask_quietly(service: Service) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        service.ask(ONE, "withdrawn")


def line(what: str, answers: list[Answer]) -> tuple[str, float]:
    named = [answer for answer in answers if answer.copy]
    share = sum(answer.copy == "spark2" for answer in named) / len(named)
    whole = sum(answer.good for answer in answers)
    return f"{what:<62} {len(answers):7} {whole:5} {failures(answers)['cut']:5} {share:9.1%}", share


@pytest.mark.parametrize("most", [pytest.param(0, id="nginx-alone"), pytest.param(3, id="with-the-service")])
@story
async def test_a_copy_that_cuts_streams(most: int, table: Callable[..., None]) -> None:
    rules = {"most": most, "first_pause_seconds": 0.4, "longest_pause_seconds": 3}
    stream = {"stream": True, "pieces": 5, "gap": 0.02}
    async with world(rules) as (_first, second, site, service):
        second.fault = "cut"
        async with crowd(site.port, 8, stream) as bad:
            if most:
                # Its gate finds the same, so its pauses grow.
                failed = "did not pass the gate: a stream was answered"
                await until(lambda: service.log.read_text().count(failed) >= 2, "its gate has failed twice", seconds=20)
            else:
                await asyncio.sleep(1.5)
        text, share = line("the service looks after it" if most else "nginx alone", bad)
        table(HEADING, text, COLUMNS)
        if not most:
            assert share > 0.5
            assert service.admitted() == ["spark1", "spark2"]
            return
        assert share < 0.3
        assert service.admitted() == ["spark1"]
        assert re.search(
            r"^spark2 withdrawn: withdrawn, .*; asked by streams: it cut \d+ of its last", service.log.read_text(), re.M
        )
        # Well again it comes back by itself.
        second.fault = ""
        async with crowd(site.port, 8, stream) as good:
            await until(lambda: service.admitted() == ["spark1", "spark2"], "it is back", seconds=20)
        assert not failures(good)
        table(HEADING, line("the same, while it is well again and comes back", good)[0], COLUMNS)
        assert service.admitted() == ["spark1", "spark2"]


@story
async def test_a_host_that_falls_silent_does_not_keep_its_copy_out() -> None:
    async with world(host_silent_seconds=1.5) as (_first, second, _site, service):
        second.says = "Berlin"
        assert (await asyncio.to_thread(service.ask, TWO, "withdrawn", "it is restarted"))[0] == 200
        failed = "asked by proxy: its host has said nothing more for long"
        await until(lambda: failed in service.log.read_text(), "its gate has failed", seconds=20)
        assert service.admitted() == ["spark1"]
        second.says = "Paris"
        await until(lambda: service.admitted() == ["spark1", "spark2"], "it is back", seconds=20)


@story
async def test_clients_that_hang_up_blame_no_copy() -> None:
    async with world({"most": 1}) as (_first, _second, site, service):
        for _request in range(12):
            answer = await ask(site.port, {"stream": True, "pieces": 50, "gap": 0.02}, enough=1)
            assert (answer.status, len(answer.arrivals)) == (200, 1)
        await until(lambda: len(site.offers()) == 12, "all are logged")
        seen = (await asyncio.to_thread(service.wait_for_look))["copies"]
        assert {name: (copy["cut"], copy["answered"] > 0) for name, copy in seen.items()} == {
            "spark1": (0, True), "spark2": (0, True),
        }  # fmt: skip
        assert service.admitted() == ["spark1", "spark2"]
