# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who walks past the proxy: sockets, log lines and files in tables."""

from __future__ import annotations

import ipaddress
import sys

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _bypass

ENGINES = [
    _bypass.Engine.make("spark1", ["192.0.2.11", "spark1.lan"], 8000),
    _bypass.Engine.make("spark2", ["192.0.2.12", "2001:db8::12"], 8001),
]
SOURCES = _bypass.Sources(
    [ipaddress.ip_network("192.0.2.21"), ipaddress.ip_network("2001:db8:1::/64")], {ipaddress.ip_address("192.0.2.11")}
)


def kernel(address: str, port: int) -> str:
    """An address as /proc/net/tcp has it on this machine."""
    data = ipaddress.ip_address(address).packed
    words = [int.from_bytes(data[start : start + 4], sys.byteorder) for start in range(0, len(data), 4)]
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def table(*sockets: tuple[str, int, str, int, str]) -> str:
    lines = ["  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"]
    for number, (local, local_port, remote, remote_port, state) in enumerate(sockets):
        ends = f"{kernel(local, local_port)} {kernel(remote, remote_port)}"
        lines.append(f" {number}: {ends} {state} 00000000:00000000 00:00000000 00000000 0 0 {4000 + number} 1 0")
    return "\n".join(lines) + "\n"


def test_sockets_are_read_as_the_kernel_prints_them() -> None:
    (four, six, mapped) = _bypass.read_sockets(
        table(
            ("192.0.2.11", 8000, "192.0.2.12", 40000, "01"),
            ("2001:db8::11", 8000, "2001:db8::12", 40001, "06"),
            ("::ffff:192.0.2.11", 8000, "::ffff:192.0.2.21", 40002, "01"),
        )
    )
    assert (str(four.local), four.local_port, str(four.remote), four.remote_port) == (
        "192.0.2.11",
        8000,
        "192.0.2.12",
        40000,
    )
    assert (str(six.remote), six.state, six.inode) == ("2001:db8::12", "06", 4001)
    assert (str(mapped.local), str(mapped.remote)) == ("192.0.2.11", "192.0.2.21")


def test_a_line_of_a_real_kernel() -> None:
    if sys.byteorder == "big":
        pytest.fail("the line below is from a little-endian machine, as a GB10 is")
    line = "   0: 0B5A12C6:1F40 155A12C6:D2F0 01 00000000:00000000 00:00000000 00000000     0        0 123456 1 0000 20 4 30 10 -1"
    (socket,) = _bypass.read_sockets(line)
    assert (str(socket.local), socket.local_port, str(socket.remote)) == ("198.18.90.11", 8000, "198.18.90.21")


@pytest.mark.parametrize(
    ("remote", "state", "port", "stranger"),
    [
        ("192.0.2.12", "01", 8000, True),
        ("192.0.2.12", "06", 8000, True),  # closed a moment ago
        ("192.0.2.12", "0A", 8000, False),
        ("192.0.2.12", "01", 9000, False),  # another port is nobody's business
        ("192.0.2.21", "01", 8000, False),  # the proxy
        ("192.0.2.11", "01", 8000, False),  # the host itself
        ("127.0.0.1", "01", 8000, False),
        ("2001:db8:1::9", "01", 8000, False),
        ("2001:db8:2::9", "01", 8000, True),
    ],
)
def test_strangers(remote: str, state: str, port: int, stranger: bool) -> None:
    local = "2001:db8::11" if ":" in remote else "192.0.2.11"
    found = _bypass.strangers(_bypass.read_sockets(table((local, port, remote, 40000, state))), 8000, SOURCES)
    assert found == ({(ipaddress.ip_address(remote), 40000)} if stranger else set())


@pytest.mark.parametrize(
    ("remote", "port", "state", "own", "engine"),
    [
        ("192.0.2.11", 8000, "01", "", "spark1"),
        ("192.0.2.11", 8001, "01", "", None),  # the other engine's port
        ("2001:db8::12", 8001, "02", "", "spark2"),  # tries, behind a firewall
        ("192.0.2.12", 8001, "06", "", None),
        ("127.0.0.1", 8000, "01", "spark1", "spark1"),
        ("127.0.0.1", 8000, "01", "spark2", None),
        ("127.0.0.1", 8000, "01", "", None),
    ],
)
def test_clients(remote: str, port: int, state: str, own: str, engine: str | None) -> None:
    local = "2001:db8::1" if ":" in remote else "192.0.2.1"
    sockets = _bypass.read_sockets(table((local, 40000, remote, port, state)))
    assert [found.name for _socket, found in _bypass.clients(sockets, ENGINES, own)] == ([engine] if engine else [])


def test_requests_are_summed_by_client_and_show_no_query() -> None:
    lines = [
        '1764460000.123456 spark1 docker[812]: (APIServer pid=1) INFO:     192.0.2.12:41234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        '1764460060.000001 spark1 docker[812]: INFO:     192.0.2.12:41236 - "GET /metrics?key=secret HTTP/1.1" 200 OK',
        '1764460001.0 spark1 docker[812]: INFO:     192.0.2.21:41234 - "POST /v1/completions HTTP/1.1" 200 OK',
        '1764460001.0 spark1 docker[812]: INFO:     127.0.0.1:41234 - "GET /health HTTP/1.1" 200 OK',
        '1764460001.0 spark1 docker[812]: INFO:     203.0.113.5:0 - "POST /v1/completions HTTP/1.1" 200 OK',
        '1764460001.0 spark1 docker[812]: INFO:     2001:db8:2::9:4123 - "POST /v1/completions HTTP/1.1" 400 Bad Request',
        "1764460001.0 spark1 docker[812]: INFO 11-30 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 tokens/s",
    ]
    found = {str(client): entry for client, entry in _bypass.requests(lines, SOURCES).items()}
    assert set(found) == {"192.0.2.12", "2001:db8:2::9"}
    assert found["192.0.2.12"] == _bypass.Requests(2, "GET /metrics", 1764460060)


@pytest.mark.parametrize(
    ("text", "own", "found"),
    [
        ("base_url: http://192.0.2.11:8000/v1", "", [(1, "spark1", "192.0.2.11:8000")]),
        ("base_url: http://spark1:8000/v1", "", [(1, "spark1", "spark1:8000")]),
        ("base_url: http://spark1.lan:8000/v1", "", [(1, "spark1", "spark1.lan:8000")]),
        ("x\nurl=http://[2001:db8::12]:8001", "", [(2, "spark2", "2001:db8::12:8001")]),
        ("HOST=spark2 PORT=8001", "", [(1, "spark2", "spark2:8001")]),
        ("host: spark1\nport: 8000\n", "", [(1, "spark1", "spark1:8000")]),
        ('"host": "192.0.2.11",\n"tls": false,\n"port": "8000"', "", [(1, "spark1", "192.0.2.11:8000")]),
        (
            "a http://192.0.2.11:8000\nb http://192.0.2.12:8001",
            "",
            [(1, "spark1", "192.0.2.11:8000"), (2, "spark2", "192.0.2.12:8001")],
        ),
        # Not an engine's address and port.
        ("base_url: http://192.0.2.21:8080/v1", "", []),
        ("base_url: http://192.0.2.11:8080/v1", "", []),
        ("base_url: http://192.0.2.110:8000/v1", "", []),
        ("base_url: http://192.0.2.11:80001/v1", "", []),
        ("base_url: http://myspark1:8000/v1", "", []),
        ("base_url: http://spark1-old:8000/v1", "", []),
        ("192.0.2.11 spark1", "", []),
        ("host: spark1\n\n\n\nport: 8000", "", []),
        # A comment configures nothing, and the collection's own inventory must name both.
        ("# http://192.0.2.11:8000", "", []),
        ("spark1: {ansible_host: 192.0.2.11, vllm_port: 8000}", "", []),
        # The loopback is an engine on an engine's own host only.
        ("url: http://localhost:8000/v1", "spark1", [(1, "spark1", "localhost:8000")]),
        ("url: http://127.0.0.1:8000/v1", "spark1", [(1, "spark1", "127.0.0.1:8000")]),
        ("url: http://localhost:8000/v1", "", []),
        ("url: http://localhost:8001/v1", "spark1", []),
    ],
)
def test_mentions(text: str, own: str, found: list[tuple[int, str, str]]) -> None:
    assert _bypass.mentions(ENGINES, own)(text) == found
