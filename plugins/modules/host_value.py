#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_value
short_description: Write one number into a host's variables in the inventory
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Changes or adds one line in C(host_vars) beside the inventory, on the controller. Everything else in the file, comments included, stays as
    its owner wrote it. When the file would not mean the same otherwise, for example because it is encrypted, nothing is written and the
    message says what to write by hand.
  - Writes the file that Ansible reads for this host, or C(host_vars/HOST.yml) when there is none.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
  action:
    description: Runs completely on the controller.
    support: full
options:
  inventory:
    description: Folder of the inventory, Ansible's C(inventory_dir).
    type: str
    required: true
  host:
    description: Inventory name of the host.
    type: str
    required: true
  name:
    description: Name of the variable.
    type: str
    required: true
  value:
    description: Its value.
    type: int
    required: true
"""

EXAMPLES = r"""
- name: Keep what was measured
  gb10.vllm.host_value:
    inventory: "{{ inventory_dir }}"
    host: spark2
    name: vllm_replicated_max_num_seqs
    value: 12
"""

RETURN = r"""
path:
  description: The file.
  type: str
  returned: success
"""
