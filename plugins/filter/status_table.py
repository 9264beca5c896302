# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's state as a table that a person reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DOCUMENTATION = r"""
name: status_table
short_description: Show a site's state as a table
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Turns what M(gb10.vllm.engine_info), M(gb10.vllm.proxy_info) and M(gb10.vllm.rollout_journal) found into a table for people.
  - A host that could not be reached or looked at is shown as such, and never as a host on which nothing runs.
positional: _input, proxies, journal
options:
  _input:
    description:
      - One entry per engine host with C(name) and C(engine), the registered result.
      - It is empty, or has C(unreachable) or C(failed), for a host that could not be reached or looked at.
    type: list
    elements: dict
    required: true
  proxies:
    description: One entry per proxy with C(name) and C(proxy), in the same way.
    type: list
    elements: dict
    required: true
  journal:
    description: Result of M(gb10.vllm.rollout_journal) of the first proxy, empty when it could not be read.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the site
  ansible.builtin.debug:
    msg: "{{ engines | gb10.vllm.status_table(proxies, journal) }}"
"""

RETURN = r"""
_value:
  description: The table, lines joined by newlines.
  type: str
"""

COLUMNS = ("HOST", "RELEASE", "RANK", "UNIT", "HEALTH", "ADMITTED", "FREE GiB", "PREVIOUS", "STATE")


def trouble(result: Mapping[str, Any]) -> str:
    """Why a registered result says nothing about its host; empty when it does."""
    if not result or result.get("unreachable"):
        return "could not be reached"
    return f"could not be looked at: {result.get('msg', '?')}" if result.get("failed") else ""


def engine_row(name: str, engine: Mapping[str, Any], admitted: Sequence[str] | None) -> list[str]:
    """One engine host's row; `admitted` is None when no proxy could be asked."""
    in_front = "?" if admitted is None else "yes" if name in admitted else "no"
    if why := trouble(engine):
        return [name, "?", "?", "?", "?", in_front, "?", "?", why]
    current = engine.get("current") or {}
    rank = f"{current['rank']}/{current['ranks']}" if current else "-"
    served = not current or current["rank"] == 0
    state = engine.get("phase", "")
    if state and state != "ready":
        state = f"{state}: {engine.get('last_log_line', '')}"
    return [
        name,
        current.get("id", "none"),
        rank,
        f"{engine['unit']['ActiveState']}, {engine['unit'].get('UnitFileState') or 'not installed'}",
        ("ok" if engine["healthy"] else "no answer") if served and engine["running"] else "-",
        in_front,
        f"{engine['memory_available_bytes'] / 2**30:.1f}",
        (engine.get("previous") or {}).get("id", "none"),
        state,
    ]


def proxy_line(name: str, proxy: Mapping[str, Any]) -> str:
    """One proxy's line."""
    if why := trouble(proxy):
        return f"proxy {name}: {why}"
    if not proxy["configured"]:
        return f"proxy {name}: not set up yet (playbook site.yml)"
    servers = ", ".join(
        f"{server['name']} ({proxy['connections'].get(server['server'], 0)} connections)"
        for server in proxy["admitted"]
    )
    return f"proxy {name}: nginx {'runs' if proxy['running'] else 'does not run'}; admitted: {servers or 'nothing, clients get 503'}"


def journal_lines(journal: Mapping[str, Any]) -> list[str]:
    """What the newest rollout is at, and who holds the lock."""
    if why := trouble(journal):
        return [f"journal and lock, on the first proxy: {why}"]
    events = journal.get("events") or []
    lines = []
    if events:
        last = events[-1]
        how = {"ok": "ended well", "failed": "ended as failed"}.get(last["result"], last["result"])
        if last["step"] != "end":
            how = f"has not ended; its last act was {last['step']} of {last['host']} ({last['result']})"
        lines.append(f"rollout {journal['rollout']}: {how}")
    if journal.get("lock"):
        lock = journal["lock"]
        lines.append(f"lock: held by {lock['who']} for rollout {lock['rollout']} ({lock['why']})")
    return lines


def status_table(
    engines: Sequence[Mapping[str, Any]],
    proxies: Sequence[Mapping[str, Any]],
    journal: Mapping[str, Any] | None = None,
) -> str:
    """The whole table."""
    asked = [entry["proxy"] for entry in proxies if not trouble(entry["proxy"])]
    admitted = [server["name"] for proxy in asked for server in proxy["admitted"]] if asked else None
    rows = [list(COLUMNS), *(engine_row(entry["name"], entry["engine"], admitted) for entry in engines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines += ["", *(proxy_line(entry["name"], entry["proxy"]) for entry in proxies)]
    return "\n".join([*lines, *journal_lines(journal or {})])


class FilterModule:
    """What Ansible asks this file for."""

    def filters(self) -> dict[str, Any]:
        return {"status_table": status_table}
