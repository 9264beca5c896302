# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that a person reads; through the playbook, with hosts that are off, it is in tests/unit/test_status.py."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.status_table import status_table
from ansible_collections.gb10.vllm.plugins.plugin_utils._status_lines import COLUMNS

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


def status(
    engines: dict[str, Any], proxies: dict[str, Any], journal: Any = None, *form: str, **more: dict[str, Any]
) -> str:
    """What hosts say by their name; `more` are the other questions to them, as metrics={"spark1": ...}."""
    found: dict[str, Any] = {}
    for kind, results in {"engine": engines, "proxy": proxies, **more}.items():
        for name, result in results.items():
            found.setdefault(name, {})[kind] = result
    found[next(iter(proxies), "p")]["journal"] = journal or {}
    lost = {name: host for name, host in {**engines, **proxies}.items() if not host or host.get("unreachable")}
    return status_table({**found, **lost}, list(engines), list(proxies), *form)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def row(text: str, name: str) -> dict[str, str]:
    """A host's cells by their column."""
    lines = text.splitlines()
    (head,) = [line for line in lines if line.startswith("COPY ")]
    (found,) = [
        line for line in lines[lines.index(head) + 1 :] if line.startswith(f"{name} ") and " says: " not in line
    ]
    begins = [re.search(rf"\b{re.escape(column)}(  |$)", head).start() for column in COLUMNS]  # type: ignore[union-attr]
    return {
        column: found[begin:end].strip()
        for column, begin, end in zip(COLUMNS, begins, [*begins[1:], None], strict=True)
    }


def after(text: str) -> list[str]:
    """The lines about proxies, rollouts and what watches."""
    return text.splitlines()[text.splitlines().index("proxy p: " + text.split("proxy p: ", 1)[1].split("\n")[0]) :]


JOURNAL: dict[str, Any] = {
    "rollout": "1-cutover",
    "events": [{"step": "end", "host": "p", "result": "ok"}],
    "lock": None,
}


def test_all_is_well() -> None:
    lines = status({"spark1": engine()}, {"p": proxy("spark1")}, JOURNAL, metrics=READ).splitlines()
    assert lines[:3] == [
        "replicated-1 (replicated, not stable, vLLM 0.33.0) since 2026-11-29 20:41Z on spark1",
        "before it: split-1",
        "",
    ]
    assert cells(lines[3]) == list(COLUMNS)
    assert cells(lines[4]) == ["spark1", "active", "-", "yes", "3", "0", "25 %", *"??---", "-", "5.0", "2", "ready"]
    assert cells(lines[5]) == ["1 of 1", "3", "0", "25 %, mean 25 %", *"??----"]
    assert lines[6:] == [
        "",
        "proxy p: nginx runs; admitted: spark1 (3 connections); requests do not wait",
        "rollout 1-cutover: ended well",
    ]


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"healthy": False, "phase": "loading", "last_log_line": "shard 1"},
         {"UNIT": "active", "STATE": "loading, no answer", "RUN": "?", "RESTARTS": "2", "FREE GiB": "5.0"}),
        ({"running": False, "healthy": False, "unit": {"ActiveState": "failed", "UnitFileState": "disabled"}, "phase": ""},
         {"UNIT": "failed, disabled", "STATE": "-", "RESTARTS": "?", "RUN": "?", "ADMITTED": "no"}),
        ({"current": {"id": "split-1", "topology": "split", "rank": 1, "ranks": 2}, "healthy": False},
         {"COPY": "spark1 (rank 1)", "STATE": "ready", "RUN": "-", "TTFT p50": "-"}),
        ({"current": None, "previous": None, "running": False, "container": None,
          "unit": {"ActiveState": "inactive", "UnitFileState": "", "NRestarts": "0"}, "phase": ""},
         {"UNIT": "inactive, not installed", "STATE": "-", "RUN": "-", "GATE": "-"}),
    ],
)  # fmt: skip
def test_engine(found: dict[str, Any], told: dict[str, str]) -> None:
    text = status({"spark1": engine(**found)}, {"p": proxy()})
    assert {column: row(text, "spark1")[column] for column in told} == told
    assert ("spark1 says: shard 1" in text) == ("loading" in told["STATE"])


def test_two_releases_are_two_lines() -> None:
    other = engine(current={"id": "replicated-2", "topology": "replicated", "rank": 0, "ranks": 1}, previous=None)
    off = engine(running=False, unit={"ActiveState": "inactive", "UnitFileState": "enabled"}, previous=None)
    lines = status({"spark1": off, "spark2": other}, {"p": proxy()}).splitlines()
    assert lines[:3] == [
        "replicated-1 (replicated, not stable) off on spark1",
        "replicated-2 (replicated, not stable) since 2026-11-29 20:41Z on spark2",
        "",
    ]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "could not be reached"),
        ({"unreachable": True, "msg": "ssh"}, "could not be reached"),
        ({"failed": True, "msg": "docker is off"}, "could not be looked at: docker is off"),
    ],
)
def test_host_in_trouble_is_not_a_host_without_an_engine(found: dict[str, Any], why: str) -> None:
    text = status({"spark1": found, "spark2": engine()}, {"q": found, "p": proxy("spark1")}, found)
    assert row(text, "spark1") == {**dict.fromkeys(COLUMNS, "?"), "COPY": "spark1", "ADMITTED": "yes", "STATE": why}
    assert f"proxy q: {why}\n" in text
    assert text.endswith(f"journal and lock, on the first proxy: {why}")


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
    text = status({"spark1": engine(**found)}, {"p": proxy()}, journal)
    assert row(text, "spark1")["GATE"] == gate
    assert ("(replicated, stable)" in text) == (gate == "stable")


def test_membership_is_unknown_without_a_proxy() -> None:
    assert row(status({"spark1": engine()}, {"p": {"unreachable": True}}), "spark1")["ADMITTED"] == "?"


ARMED = {"armed": True, "until": 1_800_000_000.0, "why": "1-cutover"}


@pytest.mark.parametrize(
    ("found", "hold", "counts", "words"),
    [
        (proxy(), None, {"waiting": 0}, ["nginx runs; admitted: nothing, clients get 503; requests do not wait"]),
        (proxy("spark1", "spark2"), None, None, ["admitted: spark1 (3 connections), spark2 (0 connections); requests"]),
        (proxy("spark1", running=False), None, None, ["nginx does not run; admitted: spark1"]),
        (proxy(configured=False), None, None, ["not set up yet (playbook site.yml)"]),
        (proxy(), ARMED, {"waiting": 3}, ["requests may wait until 2027-01-15 08:00Z for 1-cutover, 3 wait now"]),
        (proxy(), ARMED, None, ["for 1-cutover, its helper does not answer, nobody knows who waits"]),
        # who waited when the hold ended is let go at once, or hangs
        (proxy(), {**ARMED, "armed": False}, {"waiting": 2}, ["requests do not wait, 2 wait now"]),
    ],
)
def test_proxy(found: dict[str, Any], hold: Any, counts: Any, words: list[str]) -> None:
    watch, held = {"p": seen(hold=hold)}, {"p": {"helper": counts is not None, "counts": counts or {}}}
    line = after(status({"spark1": engine()}, {"p": found}, watch=watch, hold=held))[0]
    assert all(word in line for word in words), line


def seen(**changes: Any) -> dict[str, Any]:
    """What the module watch_info found on a host on which nothing watches."""
    nothing: dict[str, Any] = {
        "programs": {},
        "paused": "",
        "silenced": [],
        "withdrawn": {},
        "hold": None,
        "trouble": [],
    }
    return {**nothing, **changes}


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (seen(), []),
        (seen(withdrawn={"spark2": {"since": 1_800_000_000, "reason": "stalled"}, "spark3": {}}),
         ["proxy p: spark2 is withdrawn since 2027-01-15 08:00Z: stalled", "proxy p: spark3 is withdrawn: no reason said"]),
        (seen(programs={"watchdog": {"verdict": "serving", "time": 1, "age_seconds": 3.0}, "pair": {"time": 1}}),
         ["p watchdog: serving", "p pair: runs"]),
        (seen(programs={"watchdog": {"verdict": "stalled", "reason": "no step for 60 s", "gave_up": "3 restarts in an hour",
                                     "age_seconds": 300.0}}),
         ["p watchdog: stalled, no step for 60 s, gave up, a person has to look: 3 restarts in an hour, silent for 300 s"]),
        (seen(programs={"pair": {"phase": "formed", "reason": ""}, "memory_guard": {"level": "hold the engine", "hold": {"gave_up": True}}}),
         ["p pair: formed", "p memory_guard: hold the engine, gave up, a person has to look"]),
        (seen(programs={"watchdog": {"trouble": "x cannot be read"}}, trouble=["x is not JSON"]),
         ["p watchdog: x cannot be read", "p: x is not JSON"]),
        (seen(paused="rollout for another 30 s (ann, 1-cutover)"),
         ["p: nothing is done automatically: rollout for another 30 s (ann, 1-cutover)"]),
        (seen(silenced=["old.service", "watch.timer"]), ["p: silenced: old.service, watch.timer"]),
        ({"failed": True, "msg": "no Python"}, ["p: could not be looked at: no Python"]),
    ],
)  # fmt: skip
def test_what_watches(found: dict[str, Any], lines: list[str]) -> None:
    told = after(status({"spark1": engine()}, {"p": proxy()}, JOURNAL, watch={"p": found}))
    assert [line for line in told[1:] if not line.startswith("rollout ")] == lines


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
        (
            {
                "events": [],
                "rollout": "",
                "lock": {"who": "ann", "rollout": "1", "why": "switch"},
                "stale": "it is gone",
            },
            [
                "lock: held by ann for rollout 1 (switch)",
                "the lock is stale: it is gone. The playbook resume.yml goes on with the rollout, rollback.yml goes back, unlock.yml only "
                "releases the lock",
            ],
        ),
    ],
)
def test_journal(journal: dict[str, Any], words: list[str]) -> None:
    assert after(status({"spark1": engine()}, {"p": proxy()}, journal))[1:] == words


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
        ({"spark1": engine(), "spark2": engine(current=None, running=False, healthy=False)},
         ["spark1 3", "spark2 -", "1 of 1 3"]),
        # of a split model there is one copy, also when the other host is off
        ({"spark1": engine(current={**SPLIT, "rank": 0}), "spark2": engine(current={**SPLIT, "rank": 1})},
         ["spark1 3", "spark2 -", "1 of 1 3"]),
        ({"spark1": engine(current={**SPLIT, "rank": 0}), "spark2": {"unreachable": True}}, ["spark1 3", "spark2 ?", "1 of 1 3"]),
        ({"spark3": engine()}, ["spark3 ?", "0 of 1 ?", "spark3: not read"]),
        ({"spark1": engine(current=None, running=False, healthy=False)}, ["spark1 -"]),
    ],
)  # fmt: skip
def test_traffic_is_of_the_hosts_that_serve_a_copy(engines: dict[str, Any], rows: list[str]) -> None:
    text = status(engines, {"p": proxy()}, JOURNAL, metrics={name: READ.get(name, {}) for name in engines})
    found = [f"{name} {row(text, name)['RUN']}" for name in engines]
    if "\n0 of " in text or "\n1 of " in text or "\n2 of " in text:
        name = next(f"{n} of {m}" for n in range(3) for m in range(3) if f"\n{n} of {m} " in text)
        found.append(f"{name} {row(text, name)['RUN']}")
    assert found == [line for line in rows if ":" not in line]
    assert all(line in text for line in rows if ":" in line)


def test_json_says_the_same() -> None:
    found = json.loads(
        status({"spark1": engine(), "spark2": {}}, {"p": proxy("spark1")}, JOURNAL, "json", metrics=READ)
    )
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
        status({}, {"p": {}}, JOURNAL, "xml")


def test_readable_at_160_columns() -> None:
    host = engine(current={"id": "replicated-0123456789ab", "topology": "replicated", "rank": 0, "ranks": 1})
    host["previous"] = {"id": "split-0123456789ab"}
    busy = {name: result(100, name) for name in ("spark-one", "spark-two")}
    text = status(dict.fromkeys(busy, host), {"p": proxy("spark-one")}, JOURNAL, metrics=busy)
    assert max(map(len, text.splitlines())) <= 160
