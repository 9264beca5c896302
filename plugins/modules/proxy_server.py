#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Admit one server to the proxy, or withdraw it and wait for its work to end."""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_server
short_description: Admit a copy to the proxy, or withdraw it and wait until its work is done
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Runs on a proxy host. Changes the list of admitted servers that the role P(gb10.vllm.proxy#role) made nginx include.
  - A new list is tested by nginx in a shadow copy of the configuration, replaces the old list atomically, and is reloaded.
    The module waits for the proof that every worker which accepts connections is a new one. Without that proof the old
    list is put back and the module fails with the error line of nginx.
  - Two callers at once are safe. They take turns on a file lock, and each starts from the list the other one left.
  - Reads the configuration of nginx, the process table and the table of TCP connections.
    Changes C(gb10-vllm/servers.conf) in O(conf_dir) only. Never touches another file, and never starts or stops nginx.
options:
  name:
    description: The inventory name of the copy. At most one server has this name, so an address can be changed.
    type: str
    required: true
  server:
    description:
      - Where the copy listens, as C(IP:PORT) or C([IPv6]:PORT). Host names are refused, because nginx looks them up only when it reloads.
      - The address of another admitted name and an address on which the proxy itself listens are refused.
      - Required for O(state=admitted). With O(state=withdrawn) it names the connections to wait for when the copy is not in the list any more.
    type: str
  others:
    description:
      - Further servers that are withdrawn together with it, in one reload and one drain, with the keys C(name) and C(server).
      - Admitting takes one server at a time, each after its own gate.
    type: list
    elements: dict
    default: []
  state:
    description:
      - V(admitted) puts the server into the list.
      - V(withdrawn) takes it out, then waits up to O(drain_seconds) for its connections to end.
    type: str
    choices: [admitted, withdrawn]
    default: admitted
  drain_seconds:
    description:
      - How long to wait, in seconds, until no worker of nginx holds a connection to the withdrawn server. Range 0 (do not wait) to 86400.
      - When the time is over the module does not fail; RV(drained) is false then and the caller decides.
    type: int
    default: 0
extends_documentation_fragment:
  - gb10.vllm._attributes
  - gb10.vllm._nginx
  - gb10.vllm._nginx.change
  - gb10.vllm._nginx.limits
attributes:
  check_mode:
    support: full
    details:
      - The new list is tested where nginx is running, and nothing is written, reloaded or waited for.
      - Where the role has not run yet an empty list is assumed.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - nginx is reloaded only when the list changes.
  action:
    description: Runs partly on the controller.
    support: full
    details: The action waits for the drain in slices and prints a heartbeat; everything else happens on the host.
seealso:
  - module: gb10.vllm.proxy_info
  - module: gb10.vllm.proxy_config
"""

EXAMPLES = r"""
- name: Admit the copy that has just passed its gate
  gb10.vllm.proxy_server:
    name: spark1
    server: 192.0.2.11:8000
  delegate_to: proxy1

- name: Withdraw it and give its running requests five minutes
  gb10.vllm.proxy_server:
    name: spark1
    server: 192.0.2.11:8000
    state: withdrawn
    drain_seconds: 300
  delegate_to: proxy1
  register: withdrawn
  failed_when: withdrawn is failed or not withdrawn.drained
"""

RETURN = r"""
admitted:
  description: The admitted servers after the change, sorted by name.
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
running:
  description: Whether nginx is running. If not, the list was written and takes effect when nginx starts.
  returned: success
  type: bool
tested:
  description: Whether nginx tested a new list; false when nothing changed, or in check mode where nginx does not run or the role has not run.
  returned: success
  type: bool
drained:
  description: Whether no connection to the withdrawn server is left.
  returned: O(state=withdrawn)
  type: bool
waited_seconds:
  description: How long the drain took.
  returned: O(state=withdrawn)
  type: float
connections:
  description: Connections of nginx to the withdrawn server that are left.
  returned: O(state=withdrawn)
  type: int
started_at:
  description: When the module started, in seconds since the epoch.
  returned: success
  type: float
reloaded_at:
  description: When the reload was proven, in seconds since the epoch; null without a reload.
  returned: success
  type: float
done_at:
  description: When the module had finished, in seconds since the epoch.
  returned: success
  type: float
msg:
  description: One sentence about what was done.
  returned: success
  type: str
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_membership
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            **_nginx_membership.OPTIONS,
            "state": {"type": "str", "choices": ["admitted", "withdrawn"], "default": "admitted"},
            "drain_seconds": {"type": "int", "default": 0},
            "others": {"type": "list", "elements": "dict", "default": []},
        },
        required_if=[("state", "admitted", ["server"])],
        supports_check_mode=True,
    )
    program = module.get_bin_path("nginx", opt_dirs=["/usr/sbin", "/sbin"])
    try:
        result = _nginx_membership.change(module.params, module.check_mode, program)
    except NginxError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
