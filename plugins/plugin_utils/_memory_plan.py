# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's memory plan from what its hosts said and what their operator wishes.

Private to this collection: may change at any time. Controller only; no I/O. The arithmetic is in module_utils/_memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._memory import engine_arguments, wire
from ansible_collections.gb10.vllm.plugins.module_utils._memory.host import Claim, admit
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import LayoutUnknown, PlanError, from_gib, say_gib
from ansible_collections.gb10.vllm.plugins.plugin_utils._memory_inputs import (
    Facts,
    available_bytes,
    block,
    checkpoint,
    demand,
    host_block,
    version,
)
from ansible_collections.gb10.vllm.plugins.plugin_utils._memory_wishes import Wishes


def plan(hosts: Sequence[Facts], wishes: Mapping[str, Wishes], topology: str) -> dict[str, Any]:
    """The plan of a site.

    Args:
        hosts: per host ``name``, ``memory`` (result of memory_info), and for ``replicated`` and ``split`` a block with ``model``,
            ``revision``, ``digest``, ``arguments`` and ``weights`` (result of weights_info).
        wishes: by host name.
        topology: the one that is wanted: ``replicated`` or ``split``.

    Returns:
        ``verdict``, ``words``, ``copies`` and ``ranks`` as proposed; ``asked``, the same with the utilization that the arguments
        set; ``arguments``, what to set, by topology and host; ``admissions`` by host; ``problems`` with ``host`` and ``text``;
        ``unknown``, why there is no plan, empty if there is one.

    Raises:
        PlanError: something is missing, contradicts itself or is out of range.
    """
    admissions = {host["name"]: admission(host, wishes[host["name"]], topology) for host in hosts}
    try:
        proposed = _both(hosts, wishes, proposal=True)
        asked = _both(hosts, wishes, proposal=False)
    except LayoutUnknown as error:
        empty: dict[str, Any] = {
            "verdict": "unknown",
            "words": [str(error)],
            "copies": [],
            "ranks": [],
            "other_types": [],
        }
        return {**empty, "asked": {"copies": [], "ranks": []}, "arguments": {}, "admissions": admissions,
                "problems": _refused(admissions, {}), "unknown": str(error)}  # fmt: skip
    rows = asked["copies"] if topology == "replicated" else asked["ranks"]
    problems = _refused(admissions, {row["host"]: row for row in rows})
    refused = {problem["host"] for problem in problems}
    for row in rows:
        if row["host"] not in refused:
            problems += _judge(row, wishes[row["host"]], _facts(hosts, row["host"]))
    return {
        **proposed,
        "asked": {key: asked[key] for key in ("copies", "ranks")},
        "arguments": {
            name: {
                row["host"]: to_set(row, wishes[row["host"]].byte_mode) for row in proposed[key] if row["kv_bytes"] > 0
            }
            for name, key in (("replicated", "copies"), ("split", "ranks"))
        },
        "admissions": admissions,
        "problems": problems,
        "unknown": "",
    }


def _facts(hosts: Sequence[Facts], name: str) -> Facts:
    return next(host for host in hosts if host["name"] == name)


def _refused(admissions: Mapping[str, Facts], rows: Mapping[str, Facts]) -> list[dict[str, str]]:
    """Hosts on which the engine itself would refuse to start; the rest of the box may want a smaller share still."""
    found = []
    for name, entry in admissions.items():
        highest = rows.get(name, {}).get("highest", 1)
        less = (
            f"; the rest of the box leaves {highest:.2f} ({rows[name]['limit']})" if highest < entry["largest"] else ""
        )
        if not entry["ok"]:
            found.append({"host": name, "text": entry["text"] + less})
    return found


def _holders(memory: Facts) -> list[Claim]:
    return [
        Claim(f"{entry['name']}: {entry['process']}, pid {entry['pid']}", entry["bytes"]) for entry in memory["others"]
    ]


def admission(host: Facts, wishes: Wishes, topology: str) -> dict[str, Any]:
    """Whether the engine's own check at its start will pass, with the sum behind it."""
    memory, name = host["memory"], host["name"]
    share = round(_utilization(host, topology) * 100)
    back, have = memory["engine"]["gives_back_bytes"], available_bytes(memory)
    found = vars(admit(name, memory["total_bytes"], have, share, _holders(memory)))
    text = found["text"]
    if back:
        text += f" (available are {say_gib(memory['available_bytes'], 2)} now and {say_gib(back, 2)} that the running engine gives back)"
    return {**found, "largest": found["largest"] / 100, "utilization": share / 100, "text": text}


def _utilization(host: Facts, topology: str) -> float:
    try:
        return engine_arguments.utilization(host[topology]["arguments"])
    except PlanError as error:
        raise PlanError(f"{host['name']}, vllm_{topology}_arguments: {error}", error.key) from error


def _judge(row: Facts, wishes: Wishes, host: Facts) -> list[dict[str, str]]:
    """Why a host's wanted share does not do what is asked for."""
    name, used, highest = row["host"], row["utilization"], row["highest"]
    held = ", ".join(f"{claim.name} ({say_gib(claim.size)})" for claim in _holders(host["memory"])[:5])
    if used < row["lowest"]:
        way = f"set {row['lowest']:.2f} or more"
        if row["lowest"] > highest:
            way = f"it would take {row['lowest']:.2f}, and {highest:.2f} is the most that this host can give ({row['limit']})"
        text = (
            f"{name}: utilization {used:.2f} gives {row['requests']:.1f} full requests of {row['max_model_len']:,} tokens, "
            f"{row['tokens']:,} tokens in all; that is less than you asked for: {way}{'; other work holds ' if held else ''}{held}"
        )
    elif used > highest and wishes.strict:
        short = from_gib(wishes.keep_free_gib) - row["free"]
        lost = f"{say_gib(short, 2)} are missing; " if short > 0 else ""
        text = (
            f"{name}: utilization {used:.2f} needs {say_gib(row['requested'], 2)} and leaves {say_gib(row['free'], 2)} under load "
            f"after all other work, {wishes.keep_free_gib:g} GiB are to stay free: {lost}the largest utilization that fits is "
            f"{highest:.2f}, limited by {row['limit']}{'; the rest is held by ' if held else ''}{held}"
        )
    else:
        return []
    return [{"host": name, "text": text}]


def to_set(row: Facts, byte_mode: bool) -> dict[str, Any]:
    """The engine's arguments that carry a host's plan out."""
    found: dict[str, Any] = {
        "gpu-memory-utilization": row["utilization"],
        "max-num-seqs": row["max_num_seqs"],
        "max-num-batched-tokens": row["max_num_batched_tokens"],
    }
    if byte_mode and row["byte_mode"] > 0:
        found.update(
            {"gpu-memory-utilization": row["byte_mode_utilization"], "kv-cache-memory-bytes": row["byte_mode"]}
        )
    return found


def _both(hosts: Sequence[Facts], wishes: Mapping[str, Wishes], proposal: bool) -> dict[str, Any]:
    """Copies and ranks; each arrangement has a bound of sequences of its own, which the demand is made of."""
    copy_block, split_block = block(hosts, wishes, "replicated", proposal), None
    config, quant = checkpoint(hosts)
    if len(hosts) > 1:
        split_block = block(hosts, wishes, "split", proposal)
    inputs: dict[str, Any] = {
        "model": config,
        "hf_quant_config": quant,
        "version": version(hosts, wishes),
        "hosts": [host_block(host, wishes[host["name"]]) for host in hosts],
        "replicated": copy_block,
        "split": split_block,
    }
    asked = demand(hosts, wishes, "replicated", copy_block)
    try:
        found = wire.make_plan({**inputs, "demand": asked})
        if split_block is not None:
            found["ranks"] = wire.make_plan({**inputs, "demand": demand(hosts, wishes, "split", split_block)})["ranks"]
    except LayoutUnknown as error:
        if split_block is None:
            raise
        # the copies may be known all the same
        found = wire.make_plan({**inputs, "split": None, "demand": asked})
        found["words"].append(f"a split was not planned: {error}")
    return found
