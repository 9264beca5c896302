# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's state as a table that a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.plugin_utils._site_status import site_status, trouble
from ansible_collections.gb10.vllm.plugins.plugin_utils._traffic import traffic_lines

DOCUMENTATION = r"""
name: status_table
short_description: Show a site's state as a table
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Turns what M(gb10.vllm.engine_info), M(gb10.vllm.proxy_info), M(gb10.vllm.rollout_journal) and M(gb10.vllm.copy_metrics) found
    into tables for people, or into JSON with the same content.
  - A host that could not be reached or looked at is shown as such, and never as a host on which nothing runs.
positional: _input, proxies, journal, metrics, form
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
  metrics:
    description:
      - The registered results of M(gb10.vllm.copy_metrics) by engine host.
      - Hosts that serve no copy of their own are left out; a copy without a result is missing, and not one that does nothing.
    type: dict
    default: {}
  form:
    description: Tables for people, or one JSON object for programs.
    type: str
    choices: [table, json]
    default: table
"""

EXAMPLES = r"""
- name: Show the site
  ansible.builtin.debug:
    msg: "{{ engines | gb10.vllm.status_table(proxies, journal, metrics) }}"
"""

RETURN = r"""
_value:
  description: The tables or the JSON, lines joined by newlines.
  type: str
"""

COLUMNS = (
    "HOST",
    "RELEASE",
    "RANK",
    "UNIT",
    "SINCE (UTC)",
    "RESTARTS",
    "HEALTH",
    "GATE",
    "ADMITTED",
    "FREE GiB",
    "PREVIOUS",
    "STATE",
)


def engine_row(name: str, engine: Mapping[str, Any]) -> list[str]:
    """One engine host's row."""
    in_front = {None: "?", True: "yes", False: "no"}[engine["admitted"]]
    if engine["trouble"]:
        return [name, *["?"] * 7, in_front, "?", "?", engine["trouble"]]
    return [
        name,
        engine["release"] or "none",
        "-" if engine["rank"] is None else f"{engine['rank']}/{engine['ranks']}",
        f"{engine['unit']}, {engine['enabled']}",
        engine["since"][:16].replace("T", " ") if engine["since"] else "-",
        "?" if engine["restarts"] is None else str(engine["restarts"]),
        {None: "-", True: "ok", False: "no answer"}[engine["healthy"]],
        engine["gate"] or "-",
        in_front,
        f"{engine['memory_available_bytes'] / 2**30:.1f}",
        engine["previous"] or "none",
        engine["state"],
    ]


def proxy_line(name: str, proxy: Mapping[str, Any]) -> str:
    """One proxy's line."""
    if proxy["trouble"]:
        return f"proxy {name}: {proxy['trouble']}"
    if not proxy["configured"]:
        return f"proxy {name}: not set up yet (playbook site.yml)"
    servers = ", ".join(f"{server['name']} ({server['connections']} connections)" for server in proxy["admitted"])
    return f"proxy {name}: nginx {'runs' if proxy['running'] else 'does not run'}; admitted: {servers or 'nothing, clients get 503'}"


def journal_lines(journal: Mapping[str, Any]) -> list[str]:
    """What the newest rollout is at, who holds the lock, and what can be done."""
    if why := trouble(journal):
        return [f"journal and lock, on the first proxy: {why}"]
    events = journal.get("events") or []
    lock = journal.get("lock")
    lines = []
    if events:
        last = events[-1]
        how = {"ok": "ended well", "failed": "ended as failed"}.get(last["result"], last["result"])
        if last["step"] != "end":
            how = f"has not ended; its last act was {last['step']} of {last['host']} ({last['result']})"
        if not lock and (last["step"] != "end" or last["result"] != "ok"):
            how += "; the playbook resume.yml goes on with it, rollback.yml goes back"
        lines.append(f"rollout {journal['rollout']}: {how}")
    if lock:
        lines.append(f"lock: held by {lock['who']} for rollout {lock['rollout']} ({lock['why']})")
    if lock and journal.get("stale"):
        lines.append(
            f"the lock is stale: {journal['stale']}. The playbook resume.yml goes on with the rollout, rollback.yml goes back, unlock.yml "
            "only releases the lock"
        )
    return lines


def status_table(
    engines: Sequence[Mapping[str, Any]],
    proxies: Sequence[Mapping[str, Any]],
    journal: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
    form: str = "table",
) -> str:
    """The whole state, in one of its forms."""
    status = site_status(engines, proxies, journal or {}, metrics or {})
    if form == "json":
        return json.dumps(status, indent=2)
    if form != "table":
        raise AnsibleFilterError(f"vllm_status_format is {form!r}, it must be table or json")
    rows = [list(COLUMNS), *(engine_row(name, engine) for name, engine in status["engines"].items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    said = [(name, engine.get("last_log_line")) for name, engine in status["engines"].items()]
    lines += [f"{name} says: {line}" for name, line in said if line]
    lines += ["", *traffic] if (traffic := traffic_lines(status["traffic"])) else []
    lines += ["", *(proxy_line(name, proxy) for name, proxy in status["proxies"].items())]
    return "\n".join([*lines, *journal_lines(journal or {})])


class FilterModule:
    """What Ansible asks this file for."""

    def filters(self) -> dict[str, Any]:
        return {"status_table": status_table}
