#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_validate
short_description: Refuse variables of an engine host that cannot work
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Checks the variables of one engine host and reports everything that is wrong at once, each time with the variable, its value,
    the host and the way out.
  - Runs completely on the controller, needs C(pydantic) there, and touches no host.
requirements:
  - pydantic >= 2.7 (on the controller)
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  host:
    description: Name of the host in the inventory.
    type: str
    required: true
  engines:
    description: Names of all hosts of the group engines, in the order of the ranks.
    type: list
    elements: str
    required: true
  address:
    description: Address under which the proxies reach the engine.
    type: str
    required: true
  link_address:
    description: Address of the host on the direct link.
    type: str
    required: true
  release:
    description: The options for M(gb10.vllm.release).
    type: dict
    required: true
  secret_names:
    description: Names of the secret environment variables, not their values.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Refuse variables that cannot work
  gb10.vllm.engine_validate:
    host: "{{ inventory_hostname }}"
    engines: "{{ groups['engines'] }}"
    address: "{{ vllm_address }}"
    link_address: "{{ vllm_link_address }}"
    release: "{{ __vllm_release }}"
"""

RETURN = r"""
entry:
  description: What M(gb10.vllm.site_validate) needs to know of this host.
  type: dict
  returned: success
"""
