# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a site's variables must look like, and what is said when they do not.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from ansible_collections.gb10.vllm.plugins.module_utils import _arguments, _budgets, _release
from ansible_collections.gb10.vllm.plugins.plugin_utils._pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)

# By field the variable that a person sets; {topology} is the wanted one.
VARIABLES: dict[str, str] = {
    "topology": "vllm_topology",
    "image": "vllm_image",
    "model": "vllm_{topology}_model",
    "arguments": "vllm_{topology}_arguments or vllm_{topology}_overrides",
    "environment": "vllm_environment_overrides or vllm_{topology}_environment",
    "mods": "vllm_{topology}_mods",
    "container_options": "vllm_container_options or vllm_split_container_options",
    "volumes": "vllm_volumes",
    "port": "vllm_port",
    "master_port": "vllm_master_port",
    "listen_address": "vllm_listen_address",
    "expected_load_seconds": "vllm_{topology}_expected_load_seconds",
    "shutdown_seconds": "vllm_shutdown_seconds",
    "address": "vllm_address",
    "link_address": "vllm_link_address",
    "ranks": "vllm_topology",
}
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9-]*(=|\Z)")
_RESTART_OPTIONS = ("--restart", "--rm", "--name", "--entrypoint", "--env-file", "--detach", "-d")


class Engine(BaseModel):
    """The variables of one engine host, as the role resolved them."""

    model_config = ConfigDict(extra="ignore")

    topology: Literal["replicated", "split"]
    image: str
    model: str = Field(min_length=1)
    arguments: dict[str, Any]
    environment: dict[str, Any]
    mods: list[str]
    container_options: list[str]
    volumes: list[str]
    port: int = Field(ge=1, le=65535)
    master_port: int = Field(ge=1, le=65535)
    listen_address: str
    expected_load_seconds: int = Field(ge=1, le=86400)
    shutdown_seconds: int = Field(ge=0, le=3600)
    address: str
    link_address: str
    ranks: int

    @field_validator("image")
    @classmethod
    def image_has_a_digest(cls, value: str) -> str:
        _release.parse_image(value)
        return value

    @field_validator("arguments")
    @classmethod
    def arguments_are_ours_to_pass(cls, value: dict[str, Any]) -> dict[str, Any]:
        _arguments.check(value)
        return value

    @field_validator("environment")
    @classmethod
    def environment_arrives_as_written(cls, value: dict[str, Any]) -> dict[str, Any]:
        _release.check_environment(value)
        return value

    @field_validator("address", "link_address", "listen_address")
    @classmethod
    def address_is_a_number(cls, value: str) -> str:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise ValueError(
                "is not an IP address; a name can move to another machine or fail to resolve, so write the address itself"
            ) from None
        return value

    @field_validator("container_options")
    @classmethod
    def options_leave_the_unit_in_charge(cls, value: list[str]) -> list[str]:
        for option in value:
            if not _OPTION.match(option):
                raise ValueError(f"{option!r} is not an option of docker run: write --name=value in one piece")
            if option.split("=", 1)[0] in _RESTART_OPTIONS:
                raise ValueError(
                    f"{option!r} is the unit's business: systemd alone starts, names and removes the container"
                )
        return value

    @field_validator("volumes")
    @classmethod
    def volumes_are_absolute(cls, value: list[str]) -> list[str]:
        for volume in value:
            parts = volume.split(":")
            if len(parts) not in (2, 3) or not parts[1].startswith("/"):
                raise ValueError(f"{volume!r} is not source:target or source:target:ro with an absolute target")
        return value


def problems(host: str, engines: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Every reason why this host's variables cannot work, each naming variable, value, host and the way out."""
    found = []
    topology = values.get("topology")
    try:
        Engine(**values)
    except ValidationError as error:
        found = [_words(host, topology, entry) for entry in error.errors(include_url=False)]
    if host not in engines:
        found.append(f"host {host} is not in the group engines: put it there, or take the role engine off it")
    if topology == "split" and len(engines) < 2:
        found.append(
            f"vllm_topology is 'split' on {host}, but the group engines has only {len(engines)} host: "
            f"a split needs two or more hosts; use 'replicated' for one"
        )
    if topology in ("replicated", "split"):
        gpus = len(engines) if topology == "split" else 1
        sizes = [values["arguments"].get(f"{kind}-parallel-size", 1) for kind in ("tensor", "pipeline")]
        if str(sizes[0]).isdecimal() and str(sizes[1]).isdecimal() and int(sizes[0]) * int(sizes[1]) != gpus:
            found.append(
                f"vllm_{topology}_arguments on {host}: tensor-parallel-size {sizes[0]} x pipeline-parallel-size {sizes[1]} must be "
                f"{gpus}, the number of hosts that one engine runs on, each with one GPU"
            )
    if not found:
        try:
            _budgets.derive(values["expected_load_seconds"], values["shutdown_seconds"])
        except ValueError as error:
            found.append(f"the time budgets of {host} cannot be derived: {error}")
    return found


def site_problems(hosts: Sequence[Mapping[str, Any]], all_groups: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong between hosts. `hosts` has name, address, link_address, port and topology of every engine host."""
    found = []
    engines, proxies = list(all_groups.get("engines", [])), list(all_groups.get("proxies", []))
    if not engines:
        found.append(
            "the group engines of the inventory is empty or missing: it must name the hosts that run the model"
        )
    if not proxies:
        found.append(
            "the group proxies of the inventory is empty or missing: it must name the hosts that run nginx (an engine host may be one)"
        )
    for name in all_groups.get("ungrouped", []):
        found.append(
            f"host {name} is in no group: put it into engines, proxies or both, or take it out of the inventory"
        )
    topologies = {host["name"]: host["topology"] for host in hosts}
    if len(set(topologies.values())) > 1:
        seen = ", ".join(f"{name}: {value}" for name, value in sorted(topologies.items()))
        found.append(f"vllm_topology differs between the hosts ({seen}): it must be one value for the whole site")
    found += [
        f"vllm_address and vllm_port {address} are the same on {names}: each copy needs its own address"
        for address, names in _shared((f"{host['address']}:{host['port']}", host["name"]) for host in hosts)
    ]
    found += [
        f"vllm_link_address {address} is the same on {names}: each host of a pair needs its own on the direct link"
        for address, names in _shared((h["link_address"], h["name"]) for h in hosts if "split" in topologies.values())
    ]
    return found


def _shared(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Keys that more than one host has, with the names of those hosts in words."""
    by_key: dict[str, list[str]] = {}
    for key, name in pairs:
        by_key.setdefault(key, []).append(name)
    return [(key, " and ".join(sorted(names))) for key, names in by_key.items() if len(names) > 1]


def _words(host: str, topology: Any, entry: Mapping[str, Any]) -> str:
    """One of pydantic's errors in our words."""
    field = str(entry["loc"][0])
    variable = VARIABLES.get(field, field).format(
        topology=topology if topology in ("replicated", "split") else "replicated"
    )
    inside = "".join(f"[{part!r}]" for part in entry["loc"][1:] if part not in ("str", "int", "float", "bool"))
    kind, context = entry["type"], entry.get("ctx", {})
    if kind == "value_error":
        reason = str(context["error"])
    elif kind == "literal_error":
        reason = f"must be one of {context['expected']}"
    elif kind in ("greater_than_equal", "less_than_equal"):
        bound = context.get("ge", context.get("le"))
        reason = f"must be {'at least' if 'ge' in context else 'at most'} {bound}"
    elif kind == "string_too_short":
        reason = "must not be empty"
    else:
        reason = entry["msg"][0].lower() + entry["msg"][1:]
    return f"{variable}{inside} is {entry['input']!r} on {host}: {reason}"
