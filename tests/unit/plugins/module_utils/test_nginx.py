# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Membership, worker titles, socket tables and paths, as tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx as nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import Membership, NginxError, Server, Workers


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        ("198.51.100.1:8000", "198.51.100.1:8000"),
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[2001:DB8:0::1]:65535", "[2001:db8::1]:65535"),
    ],
)
def test_servers_have_one_spelling(given: str, canonical: str) -> None:
    assert nginx.canonical(given) == canonical


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("spark1:8000", "'spark1' is not an IP address"),
        ("198.51.100.1", "not of the form"),
        ("198.51.100.1:", "not of the form"),
        ("198.51.100.1:8000;", "not of the form"),
        ("198.51.100.1:8000\n", "not of the form"),
        ("http://198.51.100.1:8000", "not of the form"),
        ("2001:db8::1:8000", "not of the form"),
        ("[198.51.100.1]:8000", "only an IPv6 address"),
        ("198.51.100.01:8000", "not an IP address"),
        ("198.51.100.256:8000", "not an IP address"),
        ("198.51.100.1:0", "0 is not a port"),
        ("198.51.100.1:65536", "65536 is not a port"),
        ("0.0.0.0:8000", "not the address of one machine"),
        ("[::]:8000", "not the address of one machine"),
        ("224.0.0.1:8000", "not the address of one machine"),
        ("[fe80::1%eth0]:8000", "not the address of one machine"),
    ],
)
def test_what_is_not_a_server_is_refused(given: str, reason: str) -> None:
    with pytest.raises(NginxError, match=reason):
        nginx.canonical(given)


def test_the_list_reads_back_what_it_says() -> None:
    membership = nginx.admit(Membership(max_fails=1, fail_timeout_seconds=5), Server("spark2", "198.51.100.2:8000"))
    membership = nginx.admit(membership, Server("spark1", "198.51.100.1:8000", 0, 7))
    text = nginx.render(membership)
    assert nginx.parse(text, "x") == membership
    assert [line for line in text.splitlines() if line.startswith("server")] == [
        "server 198.51.100.1:8000 max_fails=0 fail_timeout=7s;  # spark1",
        "server 198.51.100.2:8000 max_fails=1 fail_timeout=5s;  # spark2",
    ]
    assert json.loads(text.splitlines()[0].removeprefix(nginx.MARK))["servers"][1] == {
        "name": "spark2",
        "server": "198.51.100.2:8000",
    }


def test_a_copy_keeps_its_share_while_it_is_away_and_may_get_another_one() -> None:
    shares = nginx.shares([{"name": "a", "weight": 2, "max_conns": 16}, {"name": "b", "weight": 1, "max_conns": 0}])
    assert shares == {"a": {"weight": 2, "max_conns": 16}}
    membership = nginx.admit(Membership(shares=shares), Server("a", "198.51.100.1:8000"))
    membership = nginx.admit(membership, Server("b", "198.51.100.2:8000", weight=5))
    text = nginx.render(membership)
    assert [line for line in text.splitlines() if line.startswith("server")] == [
        "server 198.51.100.1:8000 max_fails=2 fail_timeout=3s weight=2 max_conns=16;  # a",
        "server 198.51.100.2:8000 max_fails=2 fail_timeout=3s weight=5;  # b",
    ]
    assert nginx.parse(text, "x") == membership
    away = nginx.parse(nginx.render(nginx.withdraw(membership, "a")), "x")
    assert nginx.admit(away, Server("a", "198.51.100.1:8000")) == membership


def test_without_a_share_nothing_is_said_of_it() -> None:
    text = nginx.render(nginx.admit(Membership(), Server("a", "198.51.100.1:8000")))
    assert "weight" not in text
    assert "shares" not in text


@pytest.mark.parametrize(
    ("copy", "reason"),
    [({"weight": 101}, "weight is 101, must be 1 to 100"), ({"max_conns": -1}, "max_conns is -1, must be 0 to 65535")],
)
def test_a_share_that_is_none_is_refused(copy: dict[str, int], reason: str) -> None:
    with pytest.raises(NginxError, match=reason):
        nginx.shares([{"name": "a", **copy}])
    with pytest.raises(NginxError, match=reason):
        nginx.admit(Membership(), Server("a", "198.51.100.1:8000", **copy))


def test_an_empty_list_has_one_server_that_is_never_contacted() -> None:
    text = nginx.render(Membership())
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["server 127.0.0.1:1 down;"]
    assert nginx.parse(text, "x") == Membership()


def test_admitting_and_withdrawing() -> None:
    one = nginx.admit(Membership(), Server("b", "198.51.100.2:8000"))
    two = nginx.admit(one, Server("a", "198.51.100.1:8000"))
    assert [entry.name for entry in two.servers] == ["a", "b"]
    assert nginx.admit(two, Server("a", "198.51.100.1:8000")) == two
    assert nginx.withdraw(two, "a") == one
    assert nginx.withdraw(one, "a") == one
    assert nginx.admit(one, Server("b", "198.51.100.9:8000")).servers == (Server("b", "198.51.100.9:8000"),)
    with pytest.raises(NginxError, match="already admitted as 'b'.*withdraw 'b' first"):
        nginx.admit(one, Server("c", "198.51.100.2:8000"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "server 198.51.100.1:8000;\n",
        nginx.MARK + "{}",
        nginx.MARK + "[1]",
        nginx.MARK + '{"servers": [{"name": "a"}]}',
        nginx.MARK + '{"servers": [{"name": "a", "server": "elsewhere:1"}]}',
        nginx.MARK + '{"servers": [], "color": "red"}',
        nginx.MARK + '{"servers": [',
    ],
)
def test_a_damaged_list_is_named_with_the_way_out(text: str) -> None:
    with pytest.raises(NginxError, match=r"^/x/servers\.conf was not written.*run the role"):
        nginx.parse(text, "/x/servers.conf")


def test_the_socket_is_recognised_as_the_proxys_own() -> None:
    site = "listen 8080 default_server;\n listen [::]:8080;\nlisten 198.51.100.5:81;\n#listen 9;\nlisten unix:/x;\n"
    own = nginx.listens(site)
    assert own == [("", 8080), ("", 8080), ("198.51.100.5", 81)]
    table: list[tuple[str, bool, bool]] = [
        ("198.51.100.5:8080", True, True),
        ("198.51.100.6:8080", False, False),
        ("198.51.100.5:81", True, True),
        ("198.51.100.6:81", True, False),
        ("198.51.100.5:8000", True, False),
        ("[::1]:8080", True, True),
    ]
    for server, local, expected in table:
        assert nginx.is_own_listener(server, own, local) is expected, server


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"include /etc/nginx/conf.d/*.conf;", b"include /tmp/s/conf.d/*.conf;"),
        (b"include\t'/etc/nginx/a b';", b"include\t'/tmp/s/a b';"),
        (b"http { include /etc/nginx/mime.types; }", b"http { include /tmp/s/mime.types; }"),
        (b"include conf.d/*.conf;", b"include conf.d/*.conf;"),
        (b"include /etc/nginx2/x;", b"include /etc/nginx2/x;"),
        (b"ssl_certificate_key /etc/nginx/key.pem;", b"ssl_certificate_key /etc/nginx/key.pem;"),
        (b"\xff include /etc/nginx/x;", b"\xff include /tmp/s/x;"),
    ],
)
def test_only_absolute_includes_are_rewritten(before: bytes, after: bytes) -> None:
    assert nginx.rewrite_includes(before, "/etc/nginx", "/tmp/s") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"access_log /var/log/nginx/a.log main;", b"access_log /tmp/s/a.log main;"),
        (b"error_log /e.log;", b"error_log /tmp/s/e.log;"),
        (b"pid\t/run/nginx.pid;", b"pid\t/tmp/s/nginx.pid;"),
        (b"access_log off;", b"access_log off;"),
        (b"error_log stderr;", b"error_log stderr;"),
        (b"root /var/log/nginx/a.log;", b"root /var/log/nginx/a.log;"),
    ],
)
def test_only_logs_and_the_pid_file_are_redirected(before: bytes, after: bytes) -> None:
    assert nginx.redirect_logs(before, "/tmp/s") == after


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            'nginx: [warn] w\nnginx: [emerg] unknown directive "x" in /tmp/s/conf.d/a.conf:3\nnginx: test failed\n',
            'nginx: [emerg] unknown directive "x" in /etc/nginx/conf.d/a.conf:3',
        ),
        ("nginx: [alert] could not open\n", "nginx: [alert] could not open"),
        ("something else\n", "something else"),
        ("", "no error line"),
    ],
)
def test_the_line_that_matters(output: str, line: str) -> None:
    assert nginx.error_line(output, "/tmp/s", "/etc/nginx") == line


def test_files_in_a_dump() -> None:
    dump = "# configuration file /a/nginx.conf:\nx\n# configuration file /a/b c.conf:\n  # configuration file no:\n"
    assert nginx.included_files(dump) == {"/a/nginx.conf", "/a/b c.conf"}


def test_workers_by_title() -> None:
    children = {
        1: "nginx: worker process",
        2: "nginx: worker process is shutting down",
        3: "nginx: cache manager process",
        4: "nginx: master process /usr/sbin/nginx -g daemon on;",
        5: "",
    }
    assert nginx.classify(children) == Workers(frozenset({1}), frozenset({2}), frozenset({4}))


@pytest.mark.parametrize(
    ("live", "draining", "starting", "proven"),
    [
        ({3, 4}, {1, 2}, set(), True),
        ({3, 4}, set(), set(), True),
        ({1, 2, 3, 4}, set(), set(), False),
        ({2, 3, 4}, {1}, set(), False),
        ({3}, {1, 2}, {4}, False),
        (set(), {1, 2}, set(), False),
        ({1, 2}, set(), set(), False),
    ],
)
def test_a_reload_is_proven_by_new_workers_only(live: Any, draining: Any, starting: Any, proven: bool) -> None:
    before = Workers(live=frozenset({1, 2}))
    assert nginx.reload_is_proven(before, Workers(frozenset(live), frozenset(draining), frozenset(starting))) is proven


def test_a_worker_that_was_still_starting_before_the_reload_is_no_new_one() -> None:
    before = Workers(live=frozenset({1}), starting=frozenset({2}))
    assert nginx.reload_is_proven(before, Workers(frozenset({2, 3, 4}), frozenset({1}))) is False
    assert nginx.reload_is_proven(before, Workers(frozenset({3, 4}), frozenset({1, 2}))) is True


TCP = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 100 1 0 100 0 0 10 0
   1: 010011AC:C000 0B5A12C6:1F40 01 00000000:00000000 00:00000000 00000000    33        0 101 1 0 20 4 30 10 -1
   2: 010011AC:C002 0B5A12C6:1F40 02 00000000:00000000 00:00000000 00000000    33        0 102 1 0 20 4 30 10 -1
   3: 010011AC:C004 0B5A12C6:1F40 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   4: 010011AC:C006 0C5A12C6:1F40 01 00000000:00000000 00:00000000 00000000    33        0 103 1 0 20 4 30 10 -1
   5: 010011AC:C008 0B5A12C6:1F41 01 00000000:00000000 00:00000000 00000000    33        0 104 1 0 20 4 30 10 -1
   6: 010011AC:C00A 0B5A12C6:1F40 01 00000000:00000000 00:00000000 00000000     0        0 999 1 0 20 4 30 10 -1
"""
_HEAD = TCP.splitlines()[0]
TCP6 = f"""{_HEAD}
   0: 0000000000000000FFFF00000100007F:C00C 0000000000000000FFFF00000B5A12C6:1F40 01 0:0 0:0 0 33 0 105 1 0
   1: 00000000000000000000000001000000:C00E B80D0120000000000000000001000000:1F40 01 0:0 0:0 0 33 0 106 1 0
   2: short line
"""


def test_connections_of_nginx_are_counted_per_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nginx.sys, "byteorder", "little")  # the tables above were written by such a machine
    servers = ["198.18.90.11:8000", "198.18.90.12:8000", "[2001:db8::1]:8000", "198.18.90.13:8000"]
    assert nginx.count_connections([TCP, TCP6], servers, range(100, 107)) == {
        "198.18.90.11:8000": 3,
        "198.18.90.12:8000": 1,
        "[2001:db8::1]:8000": 1,
        "198.18.90.13:8000": 0,
    }
    assert sum(nginx.count_connections([TCP], servers, [999]).values()) == 1
    assert sum(nginx.count_connections([], servers, []).values()) == 0
