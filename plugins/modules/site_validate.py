#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: site_validate
short_description: Refuse a site whose hosts do not fit together
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Checks what no host can check alone, such as empty groups, hosts in no group, different topologies and shared addresses.
  - Runs completely on the controller and touches no host.
requirements:
  - pydantic >= 2.7 (on the controller)
extends_documentation_fragment:
  - gb10.vllm._attributes.controller
options:
  hosts:
    description: The C(entry) of each host from M(gb10.vllm.engine_validate).
    type: list
    elements: dict
    required: true
  groups:
    description: The groups of the inventory.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Refuse a site whose hosts do not fit together
  gb10.vllm.site_validate:
    hosts: "{{ __vllm_entries }}"
    groups: "{{ groups }}"
"""

RETURN = r"""
problems:
  description: What does not fit.
  type: list
  elements: str
  returned: failure
"""
