# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may come in, how often, by which paths, and that no key is seen anywhere."""

from __future__ import annotations

import asyncio
import ssl
import urllib.request
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_keys
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import KEYS
from ansible_collections.gb10.vllm.tests.proxy.client import Answer, ask, at_once, crowd, failures, shares
from ansible_collections.gb10.vllm.tests.proxy.copies import Copy
from ansible_collections.gb10.vllm.tests.proxy.hold_helper import Helper
from ansible_collections.gb10.vllm.tests.proxy.nginx_site import Site
from ansible_collections.gb10.vllm.tests.proxy.stories import story, until
from ansible_collections.gb10.vllm.tests.unit.certificates import make

OLD, NEW, ENGINE = "old-key-Of-The-Site.1", "new+key/of~the-site==", "the-engines-own-key"


class Keyed(Site):
    """A site with keys; the module writes their file from the role's variables."""

    def files(self, **variables: Any) -> dict[str, str | None]:
        keys = {**self.variables, **variables}.get("vllm_proxy_api_keys", [])
        return {**super().files(**variables), KEYS: _nginx_keys.render(keys, ENGINE)}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def with_key(site: Site, key: str, **more: Any) -> Answer:
    return await ask(site.port, {}, headers=bearer(key), **more)


@story
async def test_a_valid_key_opens_and_the_engine_gets_its_own() -> None:
    async with Copy("spark1") as copy:
        with Keyed([copy], vllm_proxy_api_keys=[OLD, NEW]) as site:
            await asyncio.to_thread(site.set_members, [copy])
            for authorization in (f"Bearer {OLD}", f"Bearer {NEW}", f"bearer {OLD}"):
                answer = await ask(site.port, {}, headers={"Authorization": authorization})
                assert answer.status == 200
                assert copy.headers["authorization"] == f"Bearer {ENGINE}"
            health = await ask(site.port, method="GET", path="/health")
            assert (health.status, copy.headers.get("authorization")) == (200, None)
            # A browser's question what it may send carries no key.
            preflight = await ask(site.port, method="OPTIONS")
            assert (preflight.status, copy.headers.get("authorization")) == (200, None)
            await until(lambda: len(site.requests()) == 5, "all are logged")
            seen = Counter(request["key"] for request in site.requests())
            everything = (site.folder / "access.log").read_text() + site.log()
    assert seen == {_nginx_keys.fingerprint(OLD): 2, _nginx_keys.fingerprint(NEW): 1, "": 2}
    for key in (OLD, NEW, ENGINE):
        assert key not in everything


@pytest.fixture(scope="module")
def closed_site() -> Any:
    copy = Copy("spark1")  # never started: whatever gets through is no 401
    with Keyed([copy], workers=1, vllm_proxy_api_keys=[OLD]) as site:
        site.set_members([copy])
        yield site


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        f"Bearer {OLD}x",
        f"Bearer x{OLD}",
        f"Bearer {OLD.lower()}",
        f"Bearer {OLD.replace('.', 'x')}",
        f"Basic {OLD}",
        OLD,
        f"Bearer {ENGINE}",
    ],
)
def test_anything_else_is_a_401_as_clients_know_it(authorization: str | None, closed_site: Site) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = asyncio.run(ask(closed_site.port, {"any": "thing"}, headers=headers))
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.headers["content-type"] == "application/json"
    error = answer.json["error"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "invalid_api_key", None)


@story
async def test_keys_change_under_load_and_nobody_is_turned_away() -> None:
    async with Copy("spark1") as copy:
        with Keyed([copy], vllm_proxy_api_keys=[OLD]) as site:
            await asyncio.to_thread(site.set_members, [copy])
            answers: list[Answer] = []
            keys, over = [OLD], asyncio.Event()

            async def client() -> None:
                while not over.is_set():
                    answers.append(await with_key(site, keys[0]))

            async with asyncio.TaskGroup() as group:
                for _client in range(3):
                    group.create_task(client())
                await asyncio.to_thread(site.apply, site.files(vllm_proxy_api_keys=[OLD, NEW]))
                keys[0], before = NEW, len(answers)
                await until(lambda: len(answers) > before + 50, "clients have gone over")
                await asyncio.to_thread(site.apply, site.files(vllm_proxy_api_keys=[NEW]))
                over.set()
            assert failures(answers) == {}
            assert (await with_key(site, OLD)).status == 401
            await asyncio.to_thread(site.apply, site.files(vllm_proxy_api_keys=[]))
            assert (await with_key(site, "the-client-s-own")).status == 200
            assert copy.headers["authorization"] == "Bearer the-client-s-own"


@story
async def test_the_inner_server_needs_no_key_and_passes_the_engines_on() -> None:
    async with Copy("spark1") as copy:
        with Keyed([copy], vllm_proxy_api_keys=[OLD]) as site:
            await asyncio.to_thread(site.set_members, [copy])
            inner = site.variables["vllm_proxy_inner_port"]
            answer = await ask(inner, {}, headers=bearer(ENGINE))
    assert (answer.status, copy.headers["authorization"]) == (200, f"Bearer {ENGINE}")
    assert answer.headers["x-gb10-vllm-copy"] == "spark1"


@story
async def test_too_many_in_a_second_is_a_429_that_clients_can_retry() -> None:
    async with Copy("spark1") as copy:
        limits: dict[str, Any] = {"vllm_proxy_rate_limit_per_second": 2, "vllm_proxy_rate_limit_burst": 4}
        with Keyed([copy], vllm_proxy_api_keys=[OLD, NEW], **limits) as site:
            await asyncio.to_thread(site.set_members, [copy])
            answers = await asyncio.gather(*(with_key(site, OLD) for _request in range(12)))
            # Another client is not the one that sent too many, and health is not counted.
            assert (await with_key(site, NEW)).status == 200
            assert (await ask(site.port, method="GET", path="/health")).status == 200
            # The limit changes from clients by key to clients by address while nginx runs.
            await asyncio.to_thread(site.apply, site.files(vllm_proxy_api_keys=[]))
            assert (await ask(site.port, {})).status == 200
    good = [answer for answer in answers if answer.status == 200]
    # The burst and one, and what the rate allows meanwhile.
    lasted = max(answer.begun + answer.seconds for answer in answers) - answers[0].begun
    assert 5 <= len(good) <= 6 + 2 * lasted
    assert len(good) < 12
    refused = [answer for answer in answers if answer.status != 200]
    assert {(answer.status, answer.headers["retry-after"]) for answer in refused} == {(429, "1")}
    error = refused[0].json["error"]
    assert (error["code"], "2 per second" in error["message"]) == ("rate_limit_exceeded", True)


@story
async def test_too_many_at_once_is_a_429_until_one_has_ended() -> None:
    async with Copy("spark1") as copy:
        with Site([copy], vllm_proxy_connections_per_client=2, vllm_proxy_retry_after_seconds=7) as site:
            await asyncio.to_thread(site.set_members, [copy])
            long = asyncio.create_task(at_once(site.port, 2, {"seconds": 0.5}))
            await until(lambda: copy.running == 2, "two run")
            third = await ask(site.port, {})
            assert failures(await long) == {}
            fourth = await ask(site.port, {})
    assert (third.status, third.headers["retry-after"], fourth.status) == (429, "7", 200)
    assert "2 at once" in third.json["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/load_lora_adapter",
        "/v1/unload_lora_adapter",
        "/v1/load_lora_adapter/",
        "/v1//load_lora_adapter",
        "/v1/x/../load_lora_adapter",
        "/v1/%6coad_lora_adapter",
        *("/metrics", "/pause", "/resume", "/sleep", "/wake_up", "/tokenize", "/detokenize", "/server_info"),
        *("/collective_rpc", "/scale_elastic_ep", "/reset_prefix_cache", "/abort_requests", "/update_weights"),
        *("/start_profile", "/fault_tolerance/apply", "/inference/v1/generate", "/v1/..%2fpause", "/version", "/load"),
    ],
)
def test_where_engines_take_orders_nothing_gets_through(path: str, open_site: tuple[Site, Copy]) -> None:
    site, copy = open_site
    for port in (site.port, site.variables["vllm_proxy_inner_port"]):
        answer = asyncio.run(ask(port, {}, path=path))
        assert (answer.status, answer.json["error"]["code"]) == (404, "not_found")
    assert not copy.received


@pytest.fixture(scope="module")
def open_site() -> Any:
    copy = Copy("spark1")  # never started: whatever gets through is no 404
    with Site([copy], workers=1) as site:
        site.set_members([copy])
        yield site, copy


@story
async def test_who_has_a_key_may_wait_and_the_engine_gets_its_own_key_then_too() -> None:
    async with Copy("spark1") as copy:
        with (
            Keyed([copy], vllm_proxy_api_keys=[OLD], vllm_proxy_connections_per_client=2) as site,
            Helper(site) as helper,
        ):
            helper.arm()
            assert (await ask(site.port, {})).status == 401
            waiting = [asyncio.create_task(with_key(site, OLD)) for _request in range(2)]
            await asyncio.to_thread(helper.wait_for_waiting, 2)
            # Who waits is counted.
            assert (await with_key(site, OLD)).status == 429
            await asyncio.to_thread(site.admit, copy)
            assert [(await answer).copy for answer in waiting] == ["spark1", "spark1"]
            assert copy.headers["authorization"] == f"Bearer {ENGINE}"


@story
async def test_a_copy_has_its_share_and_not_more_than_its_cap() -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], workers=4) as site:
            site.members = replace(site.members, shares={"spark1": {"weight": 3, "max_conns": 0}})
            await asyncio.to_thread(site.set_members, [first, second])
            assert shares(await at_once(site.port, 16, {"seconds": 0.7})) == {"spark1": 12, "spark2": 4}
            site.members = replace(site.members, shares={name: {"max_conns": 2} for name in ("spark1", "spark2")})
            await asyncio.to_thread(site.reload)
            capped = await at_once(site.port, 6, {"seconds": 0.5})
    assert (shares(capped), failures(capped)) == ({"spark1": 2, "spark2": 2}, {"503 no_copy_admitted": 2})


@story
async def test_https_with_the_given_certificate(tmp_path: Path) -> None:
    certificate, key = make(tmp_path, "127.0.0.1")
    paths = {"vllm_proxy_tls_certificate": str(certificate), "vllm_proxy_tls_certificate_key": str(key)}
    async with Copy("spark1") as copy:
        with Site([copy], **paths) as site:  # type: ignore[arg-type]
            await asyncio.to_thread(site.set_members, [copy])
            trusted = ssl.create_default_context(cafile=str(certificate))
            url = f"https://127.0.0.1:{site.port}/v1/models"
            with await asyncio.to_thread(urllib.request.urlopen, url, context=trusted) as response:
                assert (response.status, response.headers["X-Vllm-Copy"]) == (200, "spark1")
            assert copy.headers["x-forwarded-proto"] == "https"
            plain = await ask(site.port, {})
            assert (plain.status, plain.json["error"]["code"]) == (400, "https_required")


@story
async def test_a_session_stays_on_its_copy_and_moves_only_when_that_is_gone() -> None:
    async with Copy("spark1") as first, Copy("spark2") as second:
        with Site([first, second], vllm_proxy_affinity_header="X-Session-Id") as site:
            nobody = await ask(site.port, {})
            assert (nobody.status, nobody.json["error"]["code"]) == (503, "no_copy_admitted")
            await asyncio.to_thread(site.set_members, [first, second])

            async def homes() -> dict[int, str]:
                asked = {
                    session: [await ask(site.port, {}, headers={"X-Session-Id": f"s{session}"}) for _again in range(3)]
                    for session in range(24)
                }
                assert all(len({answer.copy for answer in answers}) == 1 for answers in asked.values())
                return {session: answers[0].copy for session, answers in asked.items()}

            home = await homes()
            assert set(home.values()) == {"spark1", "spark2"}
            async with crowd(site.port, 1, {}) as without:
                await until(lambda: {answer.copy for answer in without} == {"spark1", "spark2"}, "both are used")
            await asyncio.to_thread(site.withdraw, second)
            assert set((await homes()).values()) == {"spark1"}
            await asyncio.to_thread(site.admit, second)
            assert await homes() == home
            await second.stop()
            answer = await ask(
                site.port, {}, headers={"X-Session-Id": f"s{max(s for s in home if home[s] == 'spark2')}"}
            )
            assert answer.copy == "spark1"
