# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's own arguments as inputs of a plan. Private to this collection: may change at any time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .units import PlanError

DEFAULT_UTILIZATION = 0.92
"""What an engine takes that was not told (0.90 before 0.21)."""

_COPIED = {
    "kv-cache-dtype": "kv_cache_dtype",
    "block-size": "block_size",
    "max-num-batched-tokens": "max_num_batched_tokens",
    "mamba-cache-mode": "mamba_cache_mode",
    "tensor-parallel-size": "tensor_parallel_size",
    "decode-context-parallel-size": "decode_context_parallel_size",
}
_NUMBERS = {*_COPIED} - {"kv-cache-dtype", "mamba-cache-mode"}
_SHORT = {"tp": "tensor-parallel-size", "dcp": "decode-context-parallel-size", "pp": "pipeline-parallel-size",
          "kv-cache-memory": "kv-cache-memory-bytes"}  # fmt: skip


def from_command(groups: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Arguments by name from a release's command: one list per option, a switch without a value is a boolean."""
    found: dict[str, Any] = {}
    for name, *values in (group for group in groups if group and group[0].startswith("--")):
        bare = name.removeprefix("--")
        if values:
            found[bare] = values[0] if len(values) == 1 else list(values)
        else:
            found[bare.removeprefix("no-")] = not bare.startswith("no-")
    return found


def long_names(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The same arguments under their long names with dashes."""
    dashed = {name.replace("_", "-"): value for name, value in arguments.items()}
    return {_SHORT.get(name, name): value for name, value in dashed.items() if value is not None}


def engine_block(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """How an engine is started, as ``replicated`` or ``split`` in ``wire.make_plan``, without its weights.

    Args:
        arguments: the engine's options by long name, with values as in an inventory or as on a command line.

    Raises:
        PlanError: an option has a value that is no plan's; ``key`` names it. What is only not modelled is told under
            ``unmodelled``, since a measured start can stand in for it.
    """
    given = long_names(arguments)
    block = {target: given[name] for name, target in _COPIED.items() if name in given}
    for name in _NUMBERS & {*given}:
        block[_COPIED[name]] = count(name, given[name])
    block["max_model_len"] = count("max-model-len", given.get("max-model-len"))
    if "enable-prefix-caching" in given:
        block["prefix_caching"] = _switch(given["enable-prefix-caching"])
    if "async-scheduling" in given and not _switch(given["async-scheduling"]):
        block["batches_in_flight"] = 1
    if given.get("dtype") in ("float32", "float"):
        block["model_bytes"] = 4
        if block.get("kv_cache_dtype", "auto") == "auto":
            block["kv_cache_dtype"] = "fp32"
    method, drafted = _drafting(given.get("speculative-config"))
    if method.endswith("mtp"):
        block["num_speculative_tokens"] = drafted
    elif method:
        block["unmodelled"] = f"the cache of speculative method {method!r} with {drafted} tokens is not modelled"
    stages = count("pipeline-parallel-size", given.get("pipeline-parallel-size", 1))
    if stages != 1:
        block["unmodelled"] = f"{stages} pipeline stages are not modelled"
    block["utilization"] = utilization(given)
    return block


def utilization(arguments: Mapping[str, Any]) -> float:
    """The share that the engine takes; its own default if it is not told.

    Raises:
        PlanError: the value is no share with two decimals.
    """
    value = long_names(arguments).get("gpu-memory-utilization", DEFAULT_UTILIZATION)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if isinstance(value, bool) or not 0.01 <= number <= 0.99 or abs(number * 100 - round(number * 100)) > 1e-6:
        raise PlanError(
            f"gpu-memory-utilization is {value!r}, expected 0.01 to 0.99 with two decimals", "gpu-memory-utilization"
        )
    return number


def count(name: str, value: Any) -> int:
    """A whole number in any form that the engine takes: 4096, "4096", "4k" (4,000) or "4K" (4,096).

    Raises:
        PlanError: it is none; an engine that chooses its own length keeps no promise of a full context.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmM]?)", str(value).strip())
    if match is None or isinstance(value, bool):
        way_out = "write the number that clients are promised" if name == "max-model-len" else "write a whole number"
        raise PlanError(f"{name} is {'not set' if value is None else repr(value)}: {way_out}", name)
    unit = {"": 1, "k": 1000, "K": 1 << 10, "m": 10**6, "M": 1 << 20}[match[2]]
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def _switch(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).lower() in ("true", "1", "yes")


def _drafting(value: Any) -> tuple[str, int]:
    """Method and number of drafted tokens; no method without drafting."""
    if not value:
        return "", 0
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            raise PlanError(f"speculative-config is not JSON: {error}", "speculative-config") from error
    if not isinstance(value, Mapping):
        raise PlanError(f"speculative-config is {value!r}, expected a mapping", "speculative-config")
    tokens = count("num_speculative_tokens", value.get("num_speculative_tokens"))
    return str(value.get("method") or "draft_model"), tokens
