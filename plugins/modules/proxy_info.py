#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy on this host does right now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_info
short_description: Read the state of the proxy on this host
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Says who is admitted, whether nginx runs, which workers accept and which only finish their last requests,
    and how many connections they hold to each server.
  - Reads files of nginx, the process table and the table of TCP connections. Changes nothing, and asks nginx nothing.
options:
  servers:
    description: Further servers, as C(IP:PORT), whose connections are counted, for example withdrawn ones.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - gb10.vllm._attributes
  - gb10.vllm._nginx
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
seealso:
  - module: gb10.vllm.proxy_server
"""

EXAMPLES = r"""
- name: Look at the proxy
  gb10.vllm.proxy_info:
  register: proxy

- name: Say who is admitted
  ansible.builtin.debug:
    msg: "{{ proxy.admitted | map(attribute='name') | join(', ') }}"
"""

RETURN = r"""
configured:
  description: Whether the role has installed its site and list of servers.
  returned: success
  type: bool
admitted:
  description: The admitted servers, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Inventory name of the copy.
      type: str
    server:
      description: Where it listens.
      type: str
    max_fails:
      description: After how many failures nginx leaves it out.
      type: int
    fail_timeout_seconds:
      description: For how many seconds nginx leaves it out.
      type: int
    weight:
      description: Its share relative to the others.
      type: int
    max_conns:
      description: How many requests it has at once at most, 0 for no limit.
      type: int
withdrawn:
  description: Copies that the proxy's members service took out by itself and will put back through the gate.
  returned: success
  type: dict
  sample:
    spark2: {since: 1790000000.0, by: host, reason: "no answer for 60 s"}
running:
  description: Whether nginx is running.
  returned: success
  type: bool
master_pid:
  description: Process id of the nginx master; null when it is not running.
  returned: success
  type: int
worker_pids:
  description: Process ids of the workers that accept connections.
  returned: success
  type: list
  elements: int
draining_worker_pids:
  description: Process ids of the workers of earlier configurations that still finish requests.
  returned: success
  type: list
  elements: int
connections:
  description: Connections of nginx to each server, established or opening.
  returned: success
  type: dict
  sample:
    192.0.2.11:8000: 3
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_look
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "servers": {"type": "list", "elements": "str", "default": []},
            "conf_dir": {"type": "path", "default": "/etc/nginx"},
            "pid_file": {"type": "path", "default": "/run/nginx.pid"},
        },
        supports_check_mode=True,
    )
    try:
        result = _nginx_look.look(module.params["conf_dir"], module.params["pid_file"], module.params["servers"])
    except NginxError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
