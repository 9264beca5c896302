#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_status
short_description: Ask a host all that a status shows
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs those of M(gb10.vllm.engine_info), M(gb10.vllm.copy_metrics), M(gb10.vllm.watch_info), M(gb10.vllm.proxy_info),
    M(gb10.vllm.proxy_hold) and M(gb10.vllm.rollout_journal) that belong to the host, in one task.
  - A question that fails is part of the result, and no failure of the task. Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Changes nothing in any mode.
  diff_mode:
    support: N/A
    details:
      - Changes nothing.
  idempotent:
    support: full
    details:
      - Changes nothing.
  action:
    description: Runs partly on the controller.
    support: full
    details: The action runs the other modules on the host, and looks whether the process that holds the lock is still there.
options:
  engine:
    description: Whether the host has an engine.
    type: bool
    default: false
  proxy:
    description: Whether the host is a proxy.
    type: bool
    default: false
  keeper:
    description: Whether the host keeps the journals and the lock.
    type: bool
    default: false
  base_dir:
    description: See M(gb10.vllm.engine_info).
    type: path
  port:
    description: HTTP port of the engine.
    type: int
  interval_seconds:
    description: See M(gb10.vllm.copy_metrics).
    type: float
  proxy_copy_header:
    description: See M(gb10.vllm.copy_metrics).
    type: str
  socket:
    description: See M(gb10.vllm.proxy_hold).
    type: path
  folder:
    description: See M(gb10.vllm.rollout_journal).
    type: path
"""

EXAMPLES = r"""
- name: Look at the host
  gb10.vllm.host_status:
    engine: "{{ 'engines' in group_names }}"
    proxy: "{{ 'proxies' in group_names }}"
  register: found
"""

RETURN = r"""
engine:
  description: Result of M(gb10.vllm.engine_info).
  type: dict
  returned: when O(engine) is true
metrics:
  description: Result of M(gb10.vllm.copy_metrics).
  type: dict
  returned: when the engine runs and has a port of its own
watch:
  description: Result of M(gb10.vllm.watch_info).
  type: dict
  returned: always
proxy:
  description: Result of M(gb10.vllm.proxy_info).
  type: dict
  returned: when O(proxy) is true
hold:
  description: Result of M(gb10.vllm.proxy_hold).
  type: dict
  returned: when O(proxy) is true
journal:
  description: Result of M(gb10.vllm.rollout_journal), and in C(stale) why the lock is stale where there is one.
  type: dict
  returned: when O(keeper) is true
"""
