# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a mapping of engine options to a command line, and the options that belong to the collection.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

# Options the collection sets itself, because something else depends on them; and where a person sets them instead.
RESERVED: dict[str, str] = {
    "host": "vllm_listen_address",
    "port": "vllm_port",
    "api-key": "vllm_api_key (a secret never stands on a command line)",
    "hf-token": "vllm_secret_environment (a secret never stands on a command line)",
    "shutdown-timeout": "vllm_shutdown_seconds",
    "served-model-name": "vllm_served_model_name",
    "revision": "vllm_replicated_revision or vllm_split_revision",
    "nnodes": "the group engines",
    "node-rank": "the order of the group engines",
    "master-addr": "vllm_link_address",
    "master-port": "vllm_master_port",
    "headless": "the order of the group engines",
}


class ArgumentError(ValueError):
    """An engine option that cannot be used; the message names the option and the way out."""


def check(arguments: Mapping[str, Any]) -> None:
    """Refuse option names that are not options, and those the collection owns."""
    for name, value in arguments.items():
        if not _NAME.fullmatch(name):
            raise ArgumentError(
                f"engine option {name!r} is not written like an option: use the long name in lower case "
                f"with dashes and without the leading dashes, for example max-model-len"
            )
        positive = name.removeprefix("no-")
        if positive in RESERVED:
            raise ArgumentError(f"engine option {name!r} is set by the collection: use {RESERVED[positive]} instead")
        if isinstance(value, list) and not all(isinstance(item, str | int | float) for item in value):
            raise ArgumentError(f"engine option {name!r} has a list with something else than texts and numbers in it")


def merge(*layers: Mapping[str, Any] | None) -> dict[str, Any]:
    """Later layers win; a value of None removes the option."""
    merged: dict[str, Any] = {}
    for layer in layers:
        merged.update(layer or {})
    return {name: value for name, value in merged.items() if value is not None}


def groups(arguments: Mapping[str, Any]) -> list[list[str]]:
    """One list per option: `true` gives `--x`, `false` gives `--no-x`, mappings become JSON, lists several values."""
    result: list[list[str]] = []
    for name, value in arguments.items():
        if value is True:
            result.append([f"--{name}"])
        elif value is False:
            result.append([f"--no-{name}"])
        elif isinstance(value, Mapping):
            result.append([f"--{name}", json.dumps(value, separators=(",", ":"), sort_keys=True)])
        elif isinstance(value, list):
            result.append([f"--{name}", *(str(item) for item in value)])
        else:
            result.append([f"--{name}", str(value)])
    return result
