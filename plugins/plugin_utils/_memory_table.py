# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A memory plan as a table that a person reads.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import say_gib

COLUMNS = (
    "HOST",
    "AS",
    "SET",
    "PLAN",
    "USABLE",
    "CACHE GiB",
    "KV TOKENS",
    "FULL REQUESTS",
    "REST GiB",
    "SEQS",
    "HOLDS",
)
_GIB = 1 << 30


def row(name: str, proposed: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """One host in one arrangement: the share that is set, and what the proposed one gives."""
    band = (
        f"{proposed['lowest']:.2f}-{proposed['highest']:.2f}" if proposed["lowest"] <= proposed["highest"] else "none"
    )
    span = f"{proposed['requests']:.1f} ({proposed['requests_low']:.1f}-{proposed['requests_high']:.1f})"
    set_to = f"{asked['utilization']:.2f}" + ("" if asked["holds"] else " !")
    return [
        proposed["host"],
        name,
        set_to,
        f"{proposed['utilization']:.2f}",
        band,
        f"{proposed['kv_bytes'] / _GIB:.1f}",
        f"{proposed['tokens']:,}",
        span,
        f"{proposed['free'] / _GIB:.1f}",
        str(proposed["max_num_seqs"]),
        "yes" if proposed["holds"] else "no",
    ]


def host_lines(host: Mapping[str, Any], admission: Mapping[str, Any]) -> list[str]:
    """What one host's memory is and who holds it."""
    memory = host["memory"]
    engine = memory["engine"]
    held = (
        ", ".join(f"{entry['name']} {say_gib(entry['bytes'])}" for entry in memory["others"][:5]) or "nothing of size"
    )
    swap = f", swap {say_gib(memory['swap_total_bytes'])}" if memory["swap_total_bytes"] else ", no swap"
    return [
        f"{host['name']}: {say_gib(memory['total_bytes'], 2)} ({memory['total_source']}), {say_gib(memory['available_bytes'], 2)} available"
        f" ({say_gib(memory['free_bytes'], 2)} free{swap}), the running engine gives back {say_gib(engine['gives_back_bytes'], 2)}"
        f" ({engine['source']}); others hold: {held}",
        f"{'' if admission['ok'] else 'REFUSED '}{admission['text']}",
    ]


def table(hosts: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> str:
    """The whole plan."""
    rows = [list(COLUMNS)]
    for name, key in (("copy", "copies"), ("rank", "ranks")):
        rows += [row(name, *pair) for pair in zip(plan[key], plan["asked"][key], strict=True)]
    lines = [f"verdict: {plan['verdict']}", ""]
    if len(rows) > 1:
        widths = [max(len(cells[column]) for cells in rows) for column in range(len(COLUMNS))]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip() for cells in rows
        ]
        lines += [
            "SET is what the inventory says (! does not do what was asked for), PLAN the largest share; REST is free under load.",
            "",
        ]
    lines += [*plan["words"], ""]
    for host in hosts:
        lines += host_lines(host, plan["admissions"][host["name"]])
    if plan["problems"]:
        lines += ["", "a cutover would refuse:", *(f"  {problem['text']}" for problem in plan["problems"])]
    return "\n".join(lines)
