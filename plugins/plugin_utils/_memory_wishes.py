# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an operator may wish of a memory plan, and what is said when a wish makes no sense.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils._pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

# The demand is asked of the site, so it has to be the same on every host.
OF_THE_SITE = ("context_tokens", "full_requests", "concurrency", "tokens", "version", "byte_mode")


class WishError(ValueError):
    """Wishes that make no sense; the message names every one of them."""


class Work(BaseModel):
    """Other work on a host, by the name of its unit or container."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    size_gib: float = Field(ge=0, le=1024)


class Wishes(BaseModel):
    """The variables ``vllm_plan_*`` of one host. Sizes in GiB, utilizations 0.01 to 0.99."""

    model_config = ConfigDict(extra="forbid")

    context_tokens: int = Field(default=0, ge=0)
    full_requests: float = Field(default=1, gt=0)
    concurrency: int = Field(default=0, ge=0)
    tokens: int = Field(default=0, ge=0)
    version: str = ""
    byte_mode: bool = False
    other_work_gib: float = Field(default=0, ge=0, le=1024)
    other_work: list[Work] = []
    other_engines: dict[str, float] = {}
    keep_free_gib: float = Field(default=5, ge=0, le=1024)
    system_gib: float = Field(default=6, ge=0, le=1024)
    engine_outside_gib: float = Field(default=15.6, ge=0, le=1024)
    start_margin_gib: float = Field(default=3, ge=0, le=1024)
    start_drift_gib: float = Field(default=0.7, ge=0, le=1024)
    overhead_gib: float = Field(default=5.3, ge=0, le=1024)
    weights_gib: float = Field(default=0, ge=0, le=1024)
    ceiling: float = Field(default=0.8, ge=0.01, le=0.99)
    shortfall: float = Field(default=0.15, ge=0, lt=1)
    strict: bool = True
    engine: dict[str, Any] = {}

    @field_validator("other_engines")
    @classmethod
    def engines_take_shares(cls, value: dict[str, float]) -> dict[str, float]:
        for name, share in value.items():
            if not 0.01 <= share <= 0.99:
                raise ValueError(f"the share of {name} is {share}: must be 0.01 to 0.99")
        return value

    @field_validator("engine")
    @classmethod
    def engine_has_known_keys(cls, value: dict[str, Any]) -> dict[str, Any]:
        strange = sorted(
            {*value} - {"block_size", "batches_in_flight", "kv_cache_dtype", "prefix_caching", "model_bytes"}
        )
        if strange:
            raise ValueError(
                f"{strange[0]} is not among block_size, batches_in_flight, kv_cache_dtype, prefix_caching and model_bytes; "
                f"everything else is read from the engine's own arguments"
            )
        return value


def read(wishes: Mapping[str, Mapping[str, Any]]) -> dict[str, Wishes]:
    """The wishes of every host.

    Args:
        wishes: by host name; keys without the prefix ``vllm_plan_``.

    Raises:
        WishError: names variable, value, host and the way out for everything that is wrong.
    """
    found, problems = {}, []
    for host, values in wishes.items():
        try:
            found[host] = Wishes(**values)
        except ValidationError as error:
            problems += [_words(host, entry) for entry in error.errors(include_url=False)]
    for name in OF_THE_SITE:
        asked = {host: getattr(wish, name) for host, wish in found.items()}
        if len(set(asked.values())) > 1:
            told = ", ".join(f"{host}: {value}" for host, value in asked.items())
            problems.append(
                f"vllm_plan_{name} differs between the hosts ({told}): it is asked of the site, so set it once for all"
            )
    if problems:
        raise WishError("; ".join(problems))
    return found


def _words(host: str, entry: Mapping[str, Any]) -> str:
    """One of pydantic's errors in our words."""
    name, *inside = entry["loc"]
    place = f"vllm_plan_{name}" + "".join(f"[{part!r}]" for part in inside)
    kind, context = entry["type"], entry.get("ctx", {})
    bounds = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    if kind == "value_error":
        reason = str(context["error"])
    elif kind == "extra_forbidden":
        reason = "is not known: remove it, or correct its name"
    elif kind == "missing":
        return f"{place} is missing on {host}: an entry needs a name and size_gib"
    elif kind == "string_too_short":
        reason = "must not be empty"
    elif any(bound in context for bound in bounds):
        bound = next(bound for bound in bounds if bound in context)
        reason = f"must be {bounds[bound]} {context[bound]:g}"
    elif re.match(r"(int|float|bool|string|list|dict)_", kind):
        reason = "must be " + {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "a text",
                               "list": "a list", "dict": "a mapping"}[kind.split("_")[0]]  # fmt: skip
    else:
        reason = entry["msg"][0].lower() + entry["msg"][1:]
    return f"{place} is {entry['input']!r} on {host}: {reason}"
