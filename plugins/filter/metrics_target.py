# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a host is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

DOCUMENTATION = r"""
name: metrics_target
short_description: The address and port at which a host is measured
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Takes C(vllm_address), else C(ansible_host), else the inventory name of a host, and puts a port behind it. An IPv6 address gets brackets.
positional: variable, port
options:
  _input:
    description: The variables of the host.
    type: dict
    required: true
  variable:
    description: Which of them holds the port.
    type: str
    required: true
  port:
    description: The port of a host that does not set it.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Show where the first engine is measured
  ansible.builtin.debug:
    msg: "{{ hostvars[groups['engines'][0]] | gb10.vllm.metrics_target('vllm_port', 8000) }}"
"""

RETURN = r"""
_value:
  description: Address and port.
  type: str
  sample: 192.0.2.11:8000
"""


def metrics_target(values: Mapping[str, Any], variable: str, port: int) -> str:
    """``address:port`` of a host."""
    address = str(values.get("vllm_address") or values.get("ansible_host") or values.get("inventory_hostname") or "")
    wanted = values.get(variable) or port
    try:
        number = int(wanted)
    except (TypeError, ValueError):
        number = 0
    if not 1 <= number <= 65535:
        raise AnsibleFilterError(
            f"host {values.get('inventory_hostname')}, {variable} is '{wanted}': give a port, 1 to 65535"
        )
    return f"[{address}]:{number}" if ":" in address else f"{address}:{number}"


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """By name."""
        return {"metrics_target": metrics_target}
