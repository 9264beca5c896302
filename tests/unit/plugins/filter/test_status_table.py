# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The table that a person reads; through the playbook, with hosts that are off, it is in tests/unit/test_status.py."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.filter.status_table import COLUMNS, status_table

GIB = 2**30


def engine(**changes: Any) -> dict[str, Any]:
    return {
        "unit": {"ActiveState": "active", "UnitFileState": "enabled"},
        "running": True,
        "healthy": True,
        "current": {"id": "replicated-1", "rank": 0, "ranks": 1},
        "previous": {"id": "split-1"},
        "memory_available_bytes": 5 * GIB,
        "phase": "ready",
        "last_log_line": "GET /health",
        **changes,
    }


def proxy(*admitted: str, **changes: Any) -> dict[str, Any]:
    servers = [{"name": name, "server": f"192.0.2.{name[-1]}:8000"} for name in admitted]
    return {"configured": True, "running": True, "admitted": servers, "connections": {"192.0.2.1:8000": 3}, **changes}


def table(engines: dict[str, Any], proxies: dict[str, Any], journal: Any = None) -> list[str]:
    text = status_table(
        [{"name": name, "engine": found} for name, found in engines.items()],
        [{"name": name, "proxy": found} for name, found in proxies.items()],
        journal,
    )
    return text.splitlines()


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
        "ok",
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
         "0/1 | active, enabled | no answer | no | 5.0 | split-1 | loading: shard 1"),
        ({"running": False, "healthy": False, "unit": {"ActiveState": "failed", "UnitFileState": "disabled"}, "phase": ""},
         "0/1 | failed, disabled | - | no | 5.0 | split-1"),
        ({"current": {"id": "split-1", "rank": 1, "ranks": 2}, "healthy": False}, "1/2 | active, enabled | - | no | 5.0 | split-1 | ready"),
        ({"current": None, "previous": None, "running": False, "unit": {"ActiveState": "inactive", "UnitFileState": ""}, "phase": ""},
         "- | inactive, not installed | - | no | 5.0 | none"),
    ],
)  # fmt: skip
def test_engine(found: dict[str, Any], row: str) -> None:
    lines = table({"spark1": engine(**found)}, {"p": proxy()})
    assert " | ".join(cells(lines[1])[2:]) == row


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
    assert cells(lines[1]) == ["spark1", "?", "?", "?", "?", "yes", "?", "?", why]
    assert lines[5] == f"proxy q: {why}"
    assert lines[6] == f"journal and lock, on the first proxy: {why}"


def test_membership_is_unknown_without_a_proxy() -> None:
    lines = table({"spark1": engine()}, {"p": {"unreachable": True}})
    assert cells(lines[1])[5] == "?"


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
    assert words in table({"spark1": engine()}, {"p": found})[3]


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ({"events": [], "rollout": "", "lock": None}, []),
        (
            {**JOURNAL, "events": [{"step": "end", "host": "p", "result": "failed"}]},
            ["rollout 1-cutover: ended as failed"],
        ),
        (
            {**JOURNAL, "events": [{"step": "started", "host": "spark1", "result": "ok"}]},
            ["rollout 1-cutover: has not ended; its last act was started of spark1 (ok)"],
        ),
        (
            {"events": [], "rollout": "", "lock": {"who": "ann", "rollout": "1", "why": "switch"}},
            ["lock: held by ann for rollout 1 (switch)"],
        ),
    ],
)
def test_journal(journal: dict[str, Any], words: list[str]) -> None:
    assert table({"spark1": engine()}, {"p": proxy()}, journal)[4:] == words
