# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that a person reads; through the playbook, with hosts that are off, it is in tests/unit/test_status.py."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.status_table import COLUMNS, status_table
from ansible_collections.gb10.vllm.plugins.plugin_utils import _traffic

GIB = 2**30


def engine(**changes: Any) -> dict[str, Any]:
    return {
        "unit": {"ActiveState": "active", "UnitFileState": "enabled", "NRestarts": "2"},
        "container": {"started": "2026-11-29T20:41:33.123456789Z"},
        "running": True,
        "healthy": True,
        "current": {"id": "replicated-1", "topology": "replicated", "rank": 0, "ranks": 1},
        "previous": {"id": "split-1"},
        "memory_available_bytes": 5 * GIB,
        "phase": "ready",
        "last_log_line": "GET /health",
        **changes,
    }


def proxy(*admitted: str, **changes: Any) -> dict[str, Any]:
    servers = [{"name": name, "server": f"192.0.2.{name[-1]}:8000"} for name in admitted]
    return {"configured": True, "running": True, "admitted": servers, "connections": {"192.0.2.1:8000": 3}, **changes}


def status(engines: dict[str, Any], proxies: dict[str, Any], journal: Any = None, *more: Any) -> str:
    return status_table(
        [{"name": name, "engine": found} for name, found in engines.items()],
        [{"name": name, "proxy": found} for name, found in proxies.items()],
        journal,
        *more,
    )


def table(engines: dict[str, Any], proxies: dict[str, Any], journal: Any = None) -> list[str]:
    """The lines about hosts, proxies and rollouts; those about traffic are left out."""
    lines = status(engines, proxies, journal).splitlines()
    begin = next((place for place, line in enumerate(lines) if line.startswith("COPY ")), None)
    return lines if begin is None else lines[:begin] + lines[lines.index("", begin) + 1 :]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


JOURNAL: dict[str, Any] = {
    "rollout": "1-cutover",
    "events": [{"step": "end", "host": "p", "result": "ok"}],
    "lock": None,
}


def test_all_is_well() -> None:
    lines = table({"spark1": engine()}, {"p": proxy("spark1")}, JOURNAL)
    assert cells(lines[0]) == list(COLUMNS)
    assert cells(lines[1]) == [
        "spark1",
        "replicated-1",
        "0/1",
        "active, enabled",
        "2026-11-29 20:41",
        "2",
        "ok",
        "-",
        "yes",
        "5.0",
        "split-1",
        "ready",
    ]
    assert lines[2:] == ["", "proxy p: nginx runs; admitted: spark1 (3 connections)", "rollout 1-cutover: ended well"]


@pytest.mark.parametrize(
    ("found", "row"),
    [
        ({"healthy": False, "phase": "loading", "last_log_line": "shard 1"},
         "0/1 | active, enabled | 2026-11-29 20:41 | 2 | no answer | - | no | 5.0 | split-1 | loading"),
        ({"running": False, "healthy": False, "unit": {"ActiveState": "failed", "UnitFileState": "disabled"}, "phase": ""},
         "0/1 | failed, disabled | - | ? | - | - | no | 5.0 | split-1"),
        ({"current": {"id": "split-1", "rank": 1, "ranks": 2}, "healthy": False},
         "1/2 | active, enabled | 2026-11-29 20:41 | 2 | - | - | no | 5.0 | split-1 | ready"),
        ({"current": None, "previous": None, "running": False, "container": None,
          "unit": {"ActiveState": "inactive", "UnitFileState": "", "NRestarts": "0"}, "phase": ""},
         "- | inactive, not installed | - | 0 | - | - | no | 5.0 | none"),
    ],
)  # fmt: skip
def test_engine(found: dict[str, Any], row: str) -> None:
    lines = table({"spark1": engine(**found)}, {"p": proxy()})
    assert " | ".join(cells(lines[1])[2:]) == row
    assert ("spark1 says: shard 1" in lines) == ("loading" in row)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "could not be reached"),
        ({"unreachable": True, "msg": "ssh"}, "could not be reached"),
        ({"failed": True, "msg": "docker is off"}, "could not be looked at: docker is off"),
    ],
)
def test_host_in_trouble_is_not_a_host_without_an_engine(found: dict[str, Any], why: str) -> None:
    lines = table({"spark1": found, "spark2": engine()}, {"p": proxy("spark1"), "q": found}, found)
    assert cells(lines[1]) == ["spark1", *"???????", "yes", "?", "?", why]
    assert lines[-2:] == [f"proxy q: {why}", f"journal and lock, on the first proxy: {why}"]


@pytest.mark.parametrize(
    ("found", "events", "gate"),
    [
        ({}, [], "-"),
        ({"stable": [{"release": "replicated-1", "rollout": "1"}]}, [], "stable"),
        ({"stable": [{"release": "split-1", "rollout": "1"}]}, [], "-"),
        ({}, [("passed", "spark1")], "passed"),
        ({}, [("passed", "spark1"), ("failed", "spark1"), ("passed", "spark2")], "failed"),
        ({}, [("started", "spark1")], "-"),
        # back on what had become stable before
        ({"stable": [{"release": "replicated-1", "rollout": "1"}]}, [("failed", "spark1")], "stable"),
        ({"current": None}, [("passed", "spark1")], "-"),
    ],
)
def test_gate(found: dict[str, Any], events: list[tuple[str, str]], gate: str) -> None:
    journal = {**JOURNAL, "events": [{"step": step, "host": host, "result": "ok"} for step, host in events]}
    assert cells(table({"spark1": engine(**found)}, {"p": proxy()}, journal)[1])[7] == gate


def test_membership_is_unknown_without_a_proxy() -> None:
    lines = table({"spark1": engine()}, {"p": {"unreachable": True}})
    assert cells(lines[1])[8] == "?"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (proxy(), "nginx runs; admitted: nothing, clients get 503"),
        (proxy("spark1", "spark2"), "admitted: spark1 (3 connections), spark2 (0 connections)"),
        (proxy("spark1", running=False), "nginx does not run; admitted: spark1"),
        (proxy(configured=False), "not set up yet (playbook site.yml)"),
    ],
)
def test_proxy(found: dict[str, Any], words: str) -> None:
    assert words in table({"spark1": engine()}, {"p": found})[-2]


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ({"events": [], "rollout": "", "lock": None}, []),
        (
            {**JOURNAL, "events": [{"step": "end", "host": "p", "result": "failed"}]},
            ["rollout 1-cutover: ended as failed; the playbook resume.yml goes on with it, rollback.yml goes back"],
        ),
        (
            {**JOURNAL, "events": [{"step": "started", "host": "spark1", "result": "ok"}]},
            [
                "rollout 1-cutover: has not ended; its last act was started of spark1 (ok); the playbook resume.yml goes on with it, "
                "rollback.yml goes back"
            ],
        ),
        (
            {"events": [], "rollout": "", "lock": {"who": "ann", "rollout": "1", "why": "switch"}},
            ["lock: held by ann for rollout 1 (switch)"],
        ),
    ],
)
def test_journal(journal: dict[str, Any], words: list[str]) -> None:
    assert table({"spark1": engine()}, {"p": proxy()}, journal)[4:] == words


def result(running: int, where: str) -> dict[str, Any]:
    names = ("ttft", "inter_token", "e2e", "queue")
    reading = {"at": 1.0, "version": "0.33.0", "engines": 1, "counters": {"generation_tokens": 40}, "requests": None}
    reading |= {"gauges": {"running": running, "waiting": 0}, "kv_use": [0.25], "histograms": dict.fromkeys(names)}
    return {"state": "read", "reason": "", "reading": {**reading, "problems": [], "instance": where}, "window": None}


SPLIT = {"id": "split-1", "topology": "split", "ranks": 2}
READ = {"spark1": result(3, "a"), "spark2": result(1, "b")}


@pytest.mark.parametrize(
    ("engines", "rows"),
    [
        ({"spark1": engine(), "spark2": engine()}, ["spark1 3", "spark2 1", "2 of 2 4"]),
        ({"spark1": engine(), "spark2": {}}, ["spark1 3", "spark2 ?", "1 of 2 3", "spark2: could not be reached"]),
        ({"spark1": engine(), "spark2": engine(running=False, healthy=False, unit={"ActiveState": "failed"})},
         ["spark1 3", "spark2 ?", "1 of 2 3", "spark2: the unit is failed"]),
        # a host without a release of its own serves no copy
        ({"spark1": engine(), "spark2": engine(current=None, running=False, healthy=False)}, ["spark1 3", "1 of 1 3"]),
        # of a split model there is one copy, also when the other host is off
        ({"spark1": engine(current={**SPLIT, "rank": 0}), "spark2": engine(current={**SPLIT, "rank": 1})}, ["spark1 3", "1 of 1 3"]),
        ({"spark1": engine(current={**SPLIT, "rank": 0}), "spark2": {"unreachable": True}}, ["spark1 3", "1 of 1 3"]),
        ({"spark3": engine()}, ["spark3 ?", "0 of 1 ?", "spark3: not read"]),
        ({"spark1": engine(current=None, running=False, healthy=False)}, []),
    ],
)  # fmt: skip
def test_traffic_is_of_the_hosts_that_serve_a_copy(engines: dict[str, Any], rows: list[str]) -> None:
    lines = status(engines, {"p": proxy()}, JOURNAL, READ).splitlines()
    begin = lines.index("", len(engines) + 1) + 1
    end = lines.index("", begin) if rows else begin
    table = [cells(line) for line in lines[begin + 1 : end]]
    place = _traffic.COLUMNS.index("RUNNING")
    found = [f"{row[0]} {row[place]}" if len(row) > place else row[0] for row in table]
    assert found[: len(rows)] == rows


def test_json_says_the_same() -> None:
    found = json.loads(status({"spark1": engine(), "spark2": {}}, {"p": proxy("spark1")}, JOURNAL, READ, "json"))
    assert found["engines"]["spark1"] == {
        "trouble": "",
        "admitted": True,
        "release": "replicated-1",
        "topology": "replicated",
        "rank": 0,
        "ranks": 1,
        "unit": "active",
        "enabled": "enabled",
        "restarts": 2,
        "since": "2026-11-29T20:41:33.123456789Z",
        "healthy": True,
        "gate": None,
        "memory_available_bytes": 5 * GIB,
        "previous": "split-1",
        "state": "ready",
        "last_log_line": "",
    }
    assert found["engines"]["spark2"] == {"trouble": "could not be reached", "admitted": False}
    assert found["proxies"]["p"]["admitted"] == [{"name": "spark1", "server": "192.0.2.1:8000", "connections": 3}]
    assert found["rollout"] == {
        "trouble": "",
        "id": "1-cutover",
        "last": JOURNAL["events"][0],
        "lock": None,
        "stale": "",
    }
    assert found["traffic"]["sum"]["running"] == 3
    assert found["traffic"]["sum"]["missing"] == {"spark2": "could not be reached"}


def test_unknown_form() -> None:
    with pytest.raises(AnsibleFilterError, match="vllm_status_format is 'xml', it must be table or json"):
        status({}, {}, JOURNAL, {}, "xml")


def test_readable_at_160_columns() -> None:
    host = engine(current={"id": "replicated-0123456789ab", "topology": "replicated", "rank": 0, "ranks": 1})
    host["previous"] = {"id": "split-0123456789ab"}
    busy = {name: result(100, name) for name in ("spark-one", "spark-two")}
    text = status(dict.fromkeys(busy, host), {"p": proxy("spark-one")}, JOURNAL, busy)
    assert max(map(len, text.splitlines())) <= 160
