# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the engines of a site are reached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

DOCUMENTATION = r"""
name: site_engines
short_description: Where the engines of a site are reached
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Collects under which addresses and names a client could reach each engine, from C(vllm_address), C(ansible_host),
    C(vllm_link_address) and the inventory name, with its C(vllm_port).
positional: hostvars
options:
  _input:
    description: Inventory names.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variables of all hosts.
    type: dict
    required: true
  port:
    description: The port of an engine whose host does not set C(vllm_port).
    type: int
    default: 8000
"""

EXAMPLES = r"""
- name: Show where the engines are
  ansible.builtin.debug:
    msg: "{{ groups['engines'] | gb10.vllm.site_engines(hostvars) }}"
"""

RETURN = r"""
_value:
  description: One entry per host, with C(name), C(places) and C(port).
  type: list
  elements: dict
"""

PLACES = ("vllm_address", "ansible_host", "vllm_link_address")


def site_engines(names: list[str], hostvars: Mapping[str, Any], port: int = 8000) -> list[dict[str, Any]]:
    """One entry per host, in the order of the inventory."""
    engines = []
    for name in names:
        places = [str(hostvars[name][key]) for key in PLACES if hostvars[name].get(key)]
        engines.append(
            {
                "name": name,
                "places": list(dict.fromkeys([*places, name])),
                "port": int(hostvars[name].get("vllm_port") or port),
            }
        )
    return engines


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"site_engines": site_engines}
