# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's state as a table that a person reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.plugin_utils._site_status import site_status
from ansible_collections.gb10.vllm.plugins.plugin_utils._status_lines import lines

DOCUMENTATION = r"""
name: status_table
short_description: Show a site's state as a table
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Turns what M(gb10.vllm.host_status) found on each host into a table for people, or into JSON with the same content.
  - A host that could not be reached or looked at is shown as such, and never as a host on which nothing runs.
positional: _input, engines, proxies, form
options:
  _input:
    description: The registered results of M(gb10.vllm.host_status) by host. An empty, failed or unreachable one is a host in trouble.
    type: dict
    required: true
  engines:
    description: Names of the hosts with an engine.
    type: list
    elements: str
    required: true
  proxies:
    description: Names of the proxies. The first one keeps the journal and the lock.
    type: list
    elements: str
    required: true
  form:
    description: A table for people, or one JSON object for programs.
    type: str
    choices: [table, json]
    default: table
"""

EXAMPLES = r"""
- name: Show the site
  ansible.builtin.debug:
    msg: "{{ found | gb10.vllm.status_table(groups['engines'], groups['proxies']) }}"
  vars:
    hosts: "{{ groups['engines'] + groups['proxies'] }}"
    found: "{{ dict(hosts | zip(hosts | map('extract', hostvars) | map(attribute='found', default={}))) }}"
"""

RETURN = r"""
_value:
  description: The table or the JSON, lines joined by newlines.
  type: str
"""


def status_table(found: Mapping[str, Any], engines: Sequence[str], proxies: Sequence[str], form: str = "table") -> str:
    """The whole state, in one of its forms."""
    if form not in ("table", "json"):
        raise AnsibleFilterError(f"vllm_status_format is {form!r}, it must be table or json")
    status = site_status(found, engines, proxies)
    return json.dumps(status, indent=2) if form == "json" else "\n".join(lines(status))


class FilterModule:
    """What Ansible asks this file for."""

    def filters(self) -> dict[str, Any]:
        return {"status_table": status_table}
