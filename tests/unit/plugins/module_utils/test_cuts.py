# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copy cuts its answers: what the log says, when it is too much, and for how long the copy stays out."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._cuts import Cuts, Rules, answered_by, cut_by
from ansible_collections.gb10.vllm.plugins.module_utils._tail import Tail

ONE, TWO, THREE = "192.0.2.11:8000", "192.0.2.12:8000", "192.0.2.13:8000"
NAMES = {ONE: "spark1", TWO: "spark2", THREE: "spark3"}
TAIL = 'client: 192.0.2.50, server: _, request: "POST /v1/completions HTTP/1.1", upstream: "http://{}/v1/completions", host: "proxy"'


def error(what: str, server: str = ONE, level: str = "error", tail: str = TAIL) -> str:
    return f"2026/11/30 04:00:00 [{level}] 12#12: *34 {what}, {tail.format(server)}"


RESET = "recv() failed (104: Connection reset by peer) while reading upstream"


@pytest.mark.parametrize(
    ("line", "server"),
    [
        (error(RESET), ONE),
        (error("upstream prematurely closed connection while reading upstream"), ONE),
        (error("upstream timed out (110: Connection timed out) while reading upstream"), ONE),
        (error(RESET, tail=TAIL + ', referrer: "http://192.0.2.12:8000/"'), ONE),
        (error(RESET, tail=TAIL.replace("proxy", "a, upstream: b")), ONE),
        # Before the answer began: nginx counts that by itself.
        (error("recv() failed (104: Connection reset by peer) while reading response header from upstream"), ""),
        (error("connect() failed (111: Connection refused) while connecting to upstream"), ""),
        # The client hung up.
        (
            error(
                "client prematurely closed connection, so upstream connection is closed too while reading upstream",
                level="info",
            ),
            "",
        ),
        # A client's words are no evidence.
        (error("client sent invalid header", tail=TAIL.replace("POST", f"x {RESET}, client: ")), ""),
        (error(RESET, tail=TAIL.replace("POST /v1", f'x", upstream: "http://{TWO}/v1", host: "y')), ONE),
        (error(RESET, server="unix:/run/hold.sock:"), "unix:"),
        ("", ""),
    ],
)
def test_a_line_of_the_error_log(line: str, server: str) -> None:
    assert cut_by(line) == server


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ({"copy": "spark1", "upstream_status": "200"}, "spark1"),
        ({"copy": "spark1", "upstream_status": "502, 200"}, "spark1"),
        ({"copy": "spark1", "upstream_status": "503"}, ""),
        ({"copy": "", "upstream_status": "200"}, ""),
        ({"copy": "spark1", "upstream_status": "200", "method": "GET"}, ""),
        ({"upstream_status": "200"}, ""),
    ],
)
def test_a_line_of_the_access_log(line: dict[str, str], name: str) -> None:
    assert answered_by(json.dumps({"method": "POST", **line})) == name
    assert answered_by("no JSON") == answered_by("[]") == answered_by("{}") == ""


def seen(cut: dict[str, int], answered: dict[str, int], at: float = 0, rules: Rules | None = None) -> Cuts:
    cuts = Cuts(rules or Rules(), NAMES)
    servers = {name: server for server, name in NAMES.items()}
    for name, times in cut.items():
        for _time in range(times):
            cuts.error_line(error(RESET, servers[name]), at)
    for name, times in answered.items():
        for _time in range(times):
            cuts.access_line(json.dumps({"method": "POST", "copy": name, "upstream_status": "200"}), at)
    return cuts


@pytest.mark.parametrize(
    ("cut", "answered", "admitted", "expected"),
    [
        pytest.param({"spark1": 3}, {"spark1": 3, "spark2": 9}, ("spark1", "spark2"), ["spark1"], id="all of three"),
        pytest.param({"spark1": 2}, {"spark1": 2, "spark2": 9}, ("spark1", "spark2"), [], id="two may be chance"),
        pytest.param({"spark1": 3}, {"spark1": 16, "spark2": 9}, ("spark1", "spark2"), [], id="a small part"),
        pytest.param({"spark1": 3}, {"spark1": 15, "spark2": 9}, ("spark1", "spark2"), ["spark1"], id="a fifth"),
        pytest.param({"spark1": 3}, {"spark1": 3}, ("spark1",), [], id="the only copy"),
        pytest.param({"spark1": 3}, {"spark1": 3}, ("spark1", "spark2"), [], id="the other one has answered nobody"),
        pytest.param({"spark1": 5, "spark2": 3}, {"spark1": 9, "spark2": 9}, ("spark1", "spark2"), [], id="both, so the network"),
        pytest.param({"spark1": 3}, {"spark1": 3, "spark2": 9}, ("spark2", "spark3"), [], id="not admitted"),
        pytest.param(
            {"spark1": 4, "spark2": 9}, {"spark1": 9, "spark2": 9, "spark3": 9}, tuple(NAMES.values()), ["spark2", "spark1"], id="the worst first",
        ),
        pytest.param({"spark1": 3}, {"spark2": 9}, ("spark1", "spark2"), ["spark1"], id="the access log is late"),
    ],
)  # fmt: skip
def test_who_cuts_too_much(
    cut: dict[str, int], answered: dict[str, int], admitted: tuple[str, ...], expected: list[str]
) -> None:
    assert seen(cut, answered).suspects(admitted, 1) == expected


def test_what_is_long_ago_or_not_wanted_does_not_count() -> None:
    admitted = ("spark1", "spark2")
    cuts = seen({"spark1": 3}, {"spark2": 9})
    assert cuts.suspects(admitted, 59) == ["spark1"]
    assert cuts.suspects(admitted, 60) == []
    assert seen({"spark1": 9}, {"spark2": 9}, rules=Rules(most=0)).suspects(admitted, 1) == []
    cuts = seen({"spark1": 3}, {"spark2": 9})
    cuts.forget(["spark2"])
    assert cuts.suspects(admitted, 1) == []
    assert cuts.counts("spark2", 1) == (0, 9)


def test_the_pause_doubles_and_is_forgotten() -> None:
    cuts = Cuts(Rules(first_pause_seconds=10, longest_pause_seconds=60, forget_seconds=1000), NAMES)
    assert [cuts.withdrawn("spark1", at) - at for at in (0, 1, 2, 3, 4)] == [10, 20, 40, 60, 60]
    assert cuts.withdrawn("spark2", 5) - 5 == 10
    assert cuts.withdrawn("spark1", 2000) - 2000 == 10


def test_the_log_is_followed_across_its_rotation(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("old\n")
    tail = Tail(str(path))
    assert list(tail.lines()) == []
    with path.open("a") as stream:
        stream.write("one\nhal")
        stream.flush()
        assert list(tail.lines()) == ["one"]
        stream.write("f\n")
        stream.flush()
        path.rename(tmp_path / "log.1")
        path.write_text("three\n")
        assert list(tail.lines()) == ["half", "three"]
    os.truncate(path, 0)
    with path.open("a") as stream:
        stream.write("4\n")
    assert list(tail.lines()) == ["4"]
    path.unlink()
    assert list(tail.lines()) == []


def test_a_log_that_is_not_there_yet(tmp_path: Path) -> None:
    tail = Tail(str(tmp_path / "log"))
    assert list(tail.lines()) == []
    (tmp_path / "log").write_text("first\n")
    assert list(tail.lines()) == ["first"]
