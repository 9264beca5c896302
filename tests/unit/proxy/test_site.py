# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What clients of the role's site see, with a real nginx and real connections."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.standin.server import wait_until


def admit(proxy: Any, *copies: Any) -> None:
    for copy in copies:
        proxy.server(copy.name, copy.address)


def test_nobody_admitted_is_a_503_that_clients_can_retry(proxy: Any) -> None:
    status, body, headers = proxy.request("POST", "/v1/chat/completions", b"{}")
    assert status == 503
    assert headers["retry-after"] == "5"
    assert headers["content-type"] == "application/json"
    assert body["error"] | {"message": ""} == {
        "message": "", "type": "service_unavailable", "param": None, "code": "no_copy_admitted"
    }  # fmt: skip
    assert "x-vllm-copy" not in headers


def test_an_admitted_copy_that_refuses_is_a_503_too(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, *copies)
    for copy in copies:
        copy.stop()
    answers = [proxy.request("POST", "/v1/x", b"{}") for _ in range(6)]
    assert {answer[0] for answer in answers} == {503}
    assert {answer[2]["retry-after"] for answer in answers} == {"5"}


def test_the_answer_names_its_copy_and_request(proxy: Any, copies: list[Any], tmp_path: Path) -> None:
    admit(proxy, copies[0])
    status, body, headers = proxy.request("GET", "/v1/models", **{"X-Request-Id": "mine-1"})
    assert (status, headers["x-vllm-copy"], body) == (200, "spark1", {"copy": "spark1", "request_id": "mine-1"})
    assert len(proxy.request("GET", "/health", **{"X-Request-Id": 'no"good'})[1]["request_id"]) == 32
    proxy.request("GET", "/v1/models?api_key=secret")
    # nginx writes a line after its client has the answer, and its workers write in any order.
    log = tmp_path / "access.log"
    wait_until(lambda: log.read_text().count("\n") == 3, 10, log.read_text)
    lines = {line["request_id"]: line for line in map(json.loads, log.read_text().splitlines())}
    assert (lines["mine-1"]["copy"], lines["mine-1"]["status"]) == ("spark1", 200)
    assert "secret" not in log.read_text()


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/v1", "/tokenize", "/v1/../metrics", "/v1/..%2fmetrics", "/health/x", "/pause"]
)
def test_other_paths_are_not_served(proxy: Any, copies: list[Any], path: str) -> None:
    admit(proxy, copies[0])
    status, body, headers = proxy.request("GET", path)
    assert (status, headers["content-type"], body["error"]["code"]) == (404, "application/json", "not_found")
    assert ("each copy has its own /metrics" in body["error"]["message"]) == path.endswith("metrics")


def test_a_post_that_one_copy_refuses_is_answered_by_the_other(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, *copies)
    copies[0].stop()
    answers = [proxy.request("POST", "/v1/x", b"{}") for _ in range(20)]
    assert {(status, body["copy"], headers["x-vllm-copy"]) for status, body, headers in answers} == {
        (200, "spark2", "spark2")
    }


def test_a_post_that_is_dropped_at_once_is_offered_to_each_copy_once(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, *copies)
    assert proxy.request("POST", "/v1/drop", b"{}")[0] == 503
    assert [copy.posts for copy in copies] == [1, 1]


def test_an_engines_own_error_passes_unchanged(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, *copies)
    status, body, headers = proxy.request("POST", "/v1/error", b"{}")
    assert (status, body) == (500, {"error": {"message": "the engine's own words"}})
    assert "retry-after" not in headers


def test_a_copy_that_goes_silent_is_a_504_without_an_invitation_to_repeat(proxy: Any, copies: list[Any]) -> None:
    proxy.configure(proxy.site(copies, vllm_proxy_read_timeout_seconds=2, vllm_proxy_next_upstream_timeout_seconds=1))
    admit(proxy, *copies)
    status, body, headers = proxy.request("POST", "/v1/silent", b"{}")
    assert (status, body["error"]["code"]) == (504, "copy_timeout")
    assert "retry-after" not in headers
    assert headers["x-vllm-copy"] in ("spark1", "spark2")
    assert sum(copy.posts for copy in copies) == 1


def test_a_connection_that_never_stands_is_a_503(proxy: Any, copies: list[Any]) -> None:
    proxy.server("away", "192.0.2.1:8000")  # an address kept for documentation: nobody answers
    status, _body, headers = proxy.request("POST", "/v1/x", b"{}")
    assert (status, headers["retry-after"]) == (503, "5")


def test_a_body_over_the_limit_is_refused_in_the_clients_language(proxy: Any, copies: list[Any]) -> None:
    proxy.configure(proxy.site(copies, vllm_proxy_client_max_body_size="1k"))
    status, body, _headers = proxy.request("POST", "/v1/x", b"x" * 2000)
    assert (status, body["error"]["code"]) == (413, "request_too_large")


def test_a_stream_arrives_piece_by_piece_and_survives_reload_and_withdrawal(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, copies[0])
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    connection.request("POST", "/v1/stream", b"{}")
    response = connection.getresponse()
    # The copy has not been allowed to send its second piece: whoever buffers would deliver nothing yet.
    assert response.read(8) == b"data: 1\n"
    assert proxy.info()["connections"] == {copies[0].address: 1}

    undrained = proxy.server(copies[0].name, None, "withdrawn", drain_seconds=1)
    assert (undrained["drained"], undrained["connections"]) == (False, 1)
    assert undrained["waited_seconds"] > 0.9
    assert proxy.request("POST", "/v1/x", b"{}")[0] == 503
    assert len(proxy.info()["draining_worker_pids"]) == 1

    copies[0].gate.set()
    assert response.read() == b"data: 2\n"
    drained = proxy.server(copies[0].name, copies[0].address, "withdrawn", drain_seconds=10)
    assert (drained["changed"], drained["drained"], drained["connections"]) == (False, True, 0)


def test_without_the_header_and_with_ipv6(proxy: Any, copies: list[Any]) -> None:
    proxy.configure(proxy.site(copies, vllm_proxy_copy_header=""))
    admit(proxy, copies[0])
    assert "x-vllm-copy" not in proxy.request("GET", "/v1/models")[2]
    everywhere = proxy.site(copies, vllm_proxy_listen_address="", vllm_proxy_ipv6=True)
    assert f"listen [::]:{proxy.port} default_server ipv6only=on;" in everywhere


def test_load_is_spread_over_both(proxy: Any, copies: list[Any]) -> None:
    admit(proxy, *copies)
    for _ in range(40):
        assert proxy.request("POST", "/v1/x", b"{}")[0] == 200
    assert min(copy.posts for copy in copies) >= 10
