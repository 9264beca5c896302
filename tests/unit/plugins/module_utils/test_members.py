# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who asks, what may be done with his copy, and what the list of servers remembers of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _gate_memory, _gate_probe, _members, _nginx
from ansible_collections.gb10.vllm.plugins.module_utils._members import HOST, STREAMS
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import Membership, Server

ENTRIES: list[dict[str, Any]] = [
    {"name": "spark1", "server": "192.0.2.11:8000", "addresses": ["192.0.2.11", "spark1.lan"], "gate": {"model": "m"}},
    {"name": "spark2", "server": "192.0.2.12:8000", "addresses": ["192.0.2.12", "2001:db8::12"]},
    {"name": "twin1", "server": "192.0.2.20:8000", "addresses": ["192.0.2.20"]},
    {"name": "twin2", "server": "192.0.2.20:8001", "addresses": ["192.0.2.20"]},
]
COPIES = _members.copies(ENTRIES)
ONE = Server("spark1", "192.0.2.11:8000", max_fails=5, weight=3)
TWO = Server("spark2", "192.0.2.12:8000")
BOTH = Membership(
    max_fails=2, fail_timeout_seconds=1, servers=(ONE, TWO), shares={"spark1": {"weight": 2, "max_conns": 7}}
)
NOW = 1000.0


@pytest.mark.parametrize(
    ("peer", "local", "expected"),
    [
        ("192.0.2.11", (), "spark1"),
        ("::ffff:192.0.2.12", (), "spark2"),
        ("2001:db8:0::12", (), "spark2"),
        ("127.0.0.1", ("spark2",), "spark2"),
        ("::1", ("spark2",), "spark2"),
        ("127.0.0.1", (), "127.0.0.1 is not the address of an engine host of this site"),
        ("192.0.2.99", ("spark2",), "192.0.2.99 is not the address of an engine host of this site"),
        ("", (), " is not the address of an engine host of this site"),
        ("192.0.2.20", (), "192.0.2.20 is the address of twin1 and twin2, so it is not clear for which it asks"),
    ],
)
def test_who_asks(peer: str, local: tuple[str, ...], expected: str) -> None:
    found = _members.caller(COPIES, peer, local)
    if isinstance(found, _members.Copy):
        assert found.name == expected
    else:
        assert (found.status, found.words) == (403, expected)


def out(
    membership: Membership, name: str = "spark1", by: str = HOST, reason: str = "it is stalled", **more: Any
) -> Membership:
    return _members.taken_out(membership, name, by, reason, NOW, **more)


@pytest.mark.parametrize(
    ("membership", "paused", "proving", "expected"),
    [
        pytest.param(BOTH, "", False, (200, True), id="admitted"),
        pytest.param(Membership(servers=(ONE,)), "", False, (200, True), id="the last copy"),
        pytest.param(BOTH, "a rollout", False, (409, False), id="paused"),
        pytest.param(out(BOTH), "", False, (202, False), id="withdrawn already"),
        pytest.param(out(BOTH), "a rollout", False, (202, False), id="withdrawn already, and paused"),
        pytest.param(out(BOTH), "", True, (200, True), id="withdrawn, but its gate runs"),
        pytest.param(out(BOTH, by=STREAMS), "", False, (200, True), id="withdrawn because it cuts streams"),
        pytest.param(_nginx.withdraw(BOTH, "spark1"), "", False, (202, False), id="withdrawn by somebody else"),
    ],
)
def test_may_it_be_withdrawn(membership: Membership, paused: str, proving: bool, expected: tuple[int, bool]) -> None:
    decision = _members.on_withdrawn(membership, "spark1", paused, proving)
    assert (decision.status, decision.act) == expected


@pytest.mark.parametrize(
    ("membership", "paused", "expected"),
    [
        pytest.param(BOTH, "", (200, True), id="admitted beside another"),
        pytest.param(BOTH, "a rollout", (409, False), id="paused"),
        pytest.param(Membership(servers=(ONE,)), "", (202, False), id="the last copy"),
        pytest.param(out(BOTH), "", (202, False), id="not admitted"),
    ],
)
def test_may_it_be_expelled(membership: Membership, paused: str, expected: tuple[int, bool]) -> None:
    decision = _members.on_cuts(membership, "spark1", paused)
    assert (decision.status, decision.act) == expected


@pytest.mark.parametrize(
    ("membership", "paused", "expected"),
    [
        pytest.param(out(BOTH), "", (200, True), id="withdrawn by this service"),
        pytest.param(out(BOTH), "a rollout", (409, False), id="paused"),
        pytest.param(BOTH, "", (202, False), id="admitted"),
        pytest.param(BOTH, "a rollout", (202, False), id="admitted, and paused"),
        pytest.param(_nginx.withdraw(BOTH, "spark1"), "", (202, False), id="withdrawn by somebody else"),
        pytest.param(_nginx.withdraw(out(BOTH), "spark1"), "", (202, False), id="withdrawn by somebody else too"),
        pytest.param(out(BOTH, by=STREAMS, not_before=NOW + 5), "", (422, False), id="its pause is not over"),
        pytest.param(out(BOTH, by=STREAMS, not_before=NOW), "", (200, True), id="its pause is over"),
    ],
)
def test_may_it_come_back(membership: Membership, paused: str, expected: tuple[int, bool]) -> None:
    decision = _members.on_ready(membership, "spark1", paused, NOW)
    assert (decision.status, decision.act) == expected


def test_a_silent_host_does_not_keep_it_out() -> None:
    def due(**how: Any) -> float:
        return _members.due(out(BOTH, **how).withdrawn["spark1"], 60)

    since = out(BOTH).withdrawn["spark1"]["since"]
    assert due() == since + 60
    assert due(by=STREAMS, not_before=since + 5) == since + 5


def test_it_comes_back_exactly_as_it_was() -> None:
    text = _nginx.render(out(BOTH))
    without = _nginx.parse(text, "servers.conf")
    assert [entry.name for entry in without.servers] == ["spark2"]
    assert _members.put_back(without, "spark1", without.withdrawn["spark1"]) == BOTH
    assert "max_fails=5 fail_timeout=1s weight=3 max_conns=7;  # spark1" in _nginx.render(BOTH)


@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(lambda now: out(now, reason="and again"), id="its host withdrew it again"),
        pytest.param(out, id="its host withdrew it again for the same reason"),
        pytest.param(lambda now: _nginx.admit(now, ONE), id="a rollout admitted it"),
        pytest.param(lambda now: _nginx.withdraw(now, "spark1"), id="a rollout withdrew it"),
    ],
)
def test_a_decision_made_while_the_gate_ran_counts(meanwhile: Any) -> None:
    before = out(BOTH)
    with pytest.raises(_members.Refused) as refused:
        _members.put_back(meanwhile(before), "spark1", before.withdrawn["spark1"])
    assert refused.value.decision.status == 409


def test_a_second_withdrawal_keeps_the_first_moment_the_entry_and_the_pause() -> None:
    first = out(BOTH, by=STREAMS, not_before=NOW + 60)
    second = _members.taken_out(first, "spark1", HOST, "two\nlines " + 400 * "x", NOW + 5)
    record = second.withdrawn["spark1"]
    assert (record["since"], record["by"], record["not_before"], record["number"]) == (NOW, HOST, NOW + 60, 2)
    assert record["entry"] == {"name": "spark1", "server": "192.0.2.11:8000", "max_fails": 5, "weight": 3}
    assert record["reason"].startswith("two lines x")
    assert len(record["reason"]) == _members.LONGEST_REASON


def test_what_a_host_is_told() -> None:
    assert _members.status(BOTH, "spark1") == {
        "name": "spark1", "admitted": True, "withdrawn_since": None, "reason": "", "by": "",
    }  # fmt: skip
    assert _members.status(out(BOTH), "spark1") == {
        "name": "spark1", "admitted": False, "withdrawn_since": NOW, "reason": "it is stalled", "by": HOST,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/copy", b"", ("", "")),
        ("POST", "/copy", b'{"state": "ready"}', ("ready", "")),
        ("POST", "/copy", b'{"state": "withdrawn", "reason": "r"}', ("withdrawn", "r")),
        ("POST", "/copy", b'{"state": "gone"}', 400),
        ("POST", "/copy", b'{"state": "ready", "reason": 1}', 400),
        ("POST", "/copy", b'["ready"]', 400),
        ("POST", "/copy", b"{", 400),
        ("POST", "/", b"{}", 404),
        ("PUT", "/copy", b"{}", 405),
    ],
)
def test_what_is_asked(method: str, path: str, body: bytes, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert _members.request(method, path, body) == expected
        return
    with pytest.raises(_members.Unfit) as unfit:
        _members.request(method, path, body)
    assert unfit.value.status == expected


def test_how_it_was_proven_is_kept_for_the_next_time(tmp_path: Path) -> None:
    asked = {name: option.get("default") for name, option in _gate_probe.OPTIONS.items()}
    asked |= {"model": "new", "max_model_len": 4096, "expect": "yes", "api_key": "secret"}
    _gate_memory.remember(str(tmp_path), "spark1", asked)
    assert list(tmp_path.iterdir()) == []  # no proxy here
    assert _gate_memory.recall(str(tmp_path), "spark1", {"model": "m"})["model"] == "m"
    assert _gate_memory.recall(str(tmp_path), "spark1", {})["model"] is None
    (tmp_path / "gb10-vllm").mkdir()
    _gate_memory.remember(str(tmp_path), "spark1", asked)
    told = _gate_memory.recall(str(tmp_path), "spark1", {"model": "m", "prompt": "other"})
    assert told == {name: value for name, value in asked.items() if name != "api_key"}
    assert "secret" not in (tmp_path / "gb10-vllm" / "gates" / "spark1.json").read_text()


@pytest.mark.parametrize(
    "record", [{}, {"entry": {"name": "spark1"}}, {"entry": {"name": "spark1", "server": "spark1:80"}}, 1]
)
def test_a_damaged_record_is_refused(record: Any) -> None:
    text = _nginx.render(replace(BOTH, withdrawn={"spark1": record}))
    with pytest.raises(_nginx.NginxError, match=r"servers\.conf was not written by this collection or is damaged"):
        _nginx.parse(text, "servers.conf")
