# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the hosts said and their operator wishes to the inputs of a memory plan.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._memory import engine_arguments, records
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import LayoutUnknown, PlanError, from_gib
from ansible_collections.gb10.vllm.plugins.module_utils._memory.weights import Weights, per_rank
from ansible_collections.gb10.vllm.plugins.plugin_utils._memory_wishes import Wishes

Facts = Mapping[str, Any]


def available_bytes(memory: Facts) -> int:
    """What is available once our own engine has stopped."""
    return memory["available_bytes"] + memory["engine"]["gives_back_bytes"]


def checkpoint(hosts: Sequence[Facts]) -> tuple[Facts, Facts | None]:
    for topology in ("replicated", "split"):
        for host in hosts:
            weights = host[topology]["weights"]
            if weights.get("config"):
                return weights["config"], weights.get("hf_quant_config")
    names = sorted({host[topology]["model"] for host in hosts for topology in ("replicated", "split")})
    raise PlanError(
        f"no host has the config.json of {' or '.join(names)}: download the model on one of them first", "model"
    )


def version(hosts: Sequence[Facts], wishes: Mapping[str, Wishes]) -> str:
    asked = next(iter(wishes.values())).version
    return (
        asked
        or records.last_value([content for host in hosts for content in _stored(host, "replicated")], "version")
        or ""
    )


def host_block(host: Facts, wishes: Wishes) -> dict[str, Any]:
    memory = host["memory"]
    others = other_work(memory, wishes)
    return {
        "name": host["name"],
        "total_bytes": memory["total_bytes"],
        "available_bytes": available_bytes(memory),
        "others": others,
        "system_gib": wishes.system_gib,
        "engine_outside_gib": wishes.engine_outside_gib,
        "keep_free_gib": wishes.keep_free_gib,
        "start_margin_gib": wishes.start_margin_gib,
        # where nothing else runs, nothing can move while the engine measures
        "start_drift_gib": wishes.start_drift_gib if others else 0,
        "ceiling": wishes.ceiling,
        "engines": wishes.other_engines,
    }


def other_work(memory: Facts, wishes: Wishes) -> list[dict[str, Any]]:
    """What other work needs: the larger of what is declared and what was measured. Engines that are planned by share are neither."""
    planned = {name for engine in wishes.other_engines for name in (engine, f"container {engine}")}
    measured = [
        {"name": entry["name"], "size_bytes": entry["bytes"]}
        for entry in memory["others"]
        if entry["name"] not in planned
    ]
    declared = [{"name": work.name, "size_bytes": from_gib(work.size_gib)} for work in wishes.other_work]
    if wishes.other_work_gib:
        declared.append({"name": "declared other work", "size_bytes": from_gib(wishes.other_work_gib)})
    return max(declared, measured, key=lambda claims: sum(claim["size_bytes"] for claim in claims))


def demand(hosts: Sequence[Facts], wishes: Mapping[str, Wishes], topology: str, block: Facts) -> dict[str, Any]:
    wish, length = next(iter(wishes.values())), block["max_model_len"]
    if wish.context_tokens > length:
        raise PlanError(
            f"vllm_plan_context_tokens is {wish.context_tokens}, but max-model-len in vllm_{topology}_arguments is {length}: raise the one "
            f"or lower the other",
            "vllm_plan_context_tokens",
        )
    sequences = engine_arguments.long_names(hosts[0][topology]["arguments"]).get("max-num-seqs")
    demand: dict[str, Any] = {
        "full_requests": wish.full_requests,
        "tokens": max(wish.tokens, wish.concurrency * (wish.context_tokens or length)),
    }
    if sequences is not None:
        demand["max_num_seqs"] = engine_arguments.count("max-num-seqs", sequences)
    return demand


def block(hosts: Sequence[Facts], wishes: Mapping[str, Wishes], topology: str, proposal: bool) -> dict[str, Any]:
    """How an engine is started in one arrangement. All hosts have to agree, save for the share."""
    blocks: dict[str, dict[str, Any]] = {}
    for host in hosts:
        try:
            blocks[host["name"]] = engine_arguments.engine_block(host[topology]["arguments"])
        except PlanError as error:
            raise type(error)(f"{host['name']}, vllm_{topology}_arguments: {error}", error.key) from error
    shares = {name: block.pop("utilization") for name, block in blocks.items()}
    first = next(iter(blocks))
    for name, block in blocks.items():
        differing = sorted(key for key in {*block, *blocks[first]} if block.get(key) != blocks[first].get(key))
        if differing:
            raise PlanError(
                f"{differing[0]} differs between {first} and {name}: clients cannot know which copy answers them, so set it once for all "
                f"engines in vllm_{topology}_arguments",
                differing[0],
            )
    # what the arguments do not say comes last: earlier starts are known by their arguments alone
    chosen = {**blocks[first], **wishes[first].engine, "starts": _starts(hosts, topology, blocks[first])}
    chosen.update(_weights(hosts, wishes, topology, chosen))
    return chosen if proposal else {**chosen, "utilization": shares}


def _starts(hosts: Sequence[Facts], topology: str, engine: Facts) -> list[dict[str, Any]]:
    """Earlier starts to plan from: those of the host on which the least was left for the cache, which speaks for all."""
    contents = [content for host in hosts for content in _stored(host, topology)]
    told = [found for found in (records.usable_starts(content, engine) for content in contents) if found]
    starts = max(told, key=lambda found: found[-1].get("requested_bytes", 0) - found[-1]["kv_bytes"], default=[])
    if topology == "split" and starts:
        # only the head says how much fits, and the rank with the least memory decides it
        last = [content["starts"][-1].get("kv_bytes") or 0 for content in contents]
        starts[-1]["kv_bytes"] = min(size for size in [*last, starts[-1]["kv_bytes"]] if size > 0)
    return starts


def _stored(host: Facts, topology: str) -> list[Facts]:
    """Figures of earlier starts of this image, checkpoint and topology on a host."""
    part = host[topology]
    wanted = (part["digest"], part["model"], part["revision"] or "", topology)
    return [
        content
        for content in host["memory"]["measured"]
        if tuple(content.get(key) for key in ("digest", "model", "revision", "topology")) == wanted
    ]


def _weights(hosts: Sequence[Facts], wishes: Mapping[str, Wishes], topology: str, block: Facts) -> dict[str, Any]:
    """Bytes of the weights of one rank: measured, else declared, else from the files' headers."""
    drafting = "num_speculative_tokens" in block
    ranks = block.get("tensor_parallel_size") or (len(hosts) if topology == "split" else 1)
    measured = [
        start["weights_bytes"]
        for host in hosts
        for content in _stored(host, topology)
        for start in content["starts"]
        if start.get("weights_bytes") and ("num_speculative_tokens" in start["settings"]) == drafting
    ]
    common = {"overhead_gib": max(wish.overhead_gib for wish in wishes.values())}
    if measured:
        return {**common, "weights_bytes": measured[-1], "weights_source": "measured"}
    declared = max(wish.weights_gib for wish in wishes.values())
    other = "split" if topology == "replicated" else "replicated"
    # a site that runs one arrangement may not have the other one's files yet; they are the same model in another form
    known = [[host[name]["weights"].get("weights") for host in hosts] for name in (topology, other)]
    sizes = next(
        (sizes for sizes in ([_size(entry, drafting) for entry in found if entry] for found in known) if sizes), []
    )
    if declared:
        whole = Weights(from_gib(declared), "declared")
    elif sizes:
        whole = Weights(max(sizes), "headers")
    else:
        raise LayoutUnknown(
            f"the weights of {hosts[0][topology]['model']} are on no host and were never measured: download them, or set vllm_plan_weights_gib",
            "vllm_plan_weights_gib",
        )
    part = per_rank(whole, ranks)
    return {**common, "weights_bytes": part.size, "weights_source": part.source}


def _size(entry: Facts, drafting: bool) -> int:
    size: int = entry["bytes_drafting" if drafting else "bytes"]
    return size
