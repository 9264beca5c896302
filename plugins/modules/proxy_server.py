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
  state:
    description:
      - V(admitted) puts the server into the list.
      - V(withdrawn) takes it out, then waits up to O(drain_seconds) for its connections to end.
    type: str
    choices: [admitted, withdrawn]
    default: admitted
  max_fails:
    description:
      - After how many failures within O(fail_timeout_seconds) nginx leaves this server out for a while. Range 0 (never) to 10.
      - If not set, the limit that the role set for all servers is used.
    type: int
  fail_timeout_seconds:
    description:
      - How long nginx leaves out a server that failed, in seconds. Range 1 to 10.
        With a long time clients are turned away although the copy is well again.
      - If not set, the time that the role set for all servers is used.
    type: int
  drain_seconds:
    description:
      - How long to wait, in seconds, until no worker of nginx holds a connection to the withdrawn server. Range 0 (do not wait) to 86400.
      - When the time is over the module does not fail; RV(drained) is false then and the caller decides.
    type: int
    default: 0
  reload_seconds:
    description:
      - How long to wait, in seconds, for the proof that a reload took effect. Range 1 to 300.
    type: int
    default: 10
  conf_dir:
    description: The configuration folder of nginx on this host.
    type: path
    default: /etc/nginx
  pid_file:
    description: The file in which the nginx master keeps its process id.
    type: path
    default: /run/nginx.pid
extends_documentation_fragment:
  - gb10.vllm._attributes
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

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import (
    Membership,
    NginxError,
    Server,
    admit,
    canonical,
    check_limits,
    is_own_listener,
    listens,
    parse,
    render,
    withdraw,
)
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS, SITE, Nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_process import is_local


def _check(params: dict[str, Any]) -> None:
    """Everything that can be refused without looking at the host."""
    check_limits(params["max_fails"], params["fail_timeout_seconds"])
    for name, low, high in (("drain_seconds", 0, 86400), ("reload_seconds", 1, 300)):
        if not low <= params[name] <= high:
            raise NginxError(f"{name} is {params[name]}, must be {low} to {high}")
    if params["server"] is not None:
        params["server"] = canonical(params["server"])


def _wanted(params: dict[str, Any], before: Membership, site: str) -> Membership:
    if params["state"] == "withdrawn":
        return withdraw(before, params["name"])
    server = params["server"]
    if is_own_listener(server, listens(site), is_local(server)):
        raise NginxError(
            f"server {server} is the proxy's own address, requests would go in circles; give the address of the copy"
        )
    return admit(before, Server(params["name"], server, params["max_fails"], params["fail_timeout_seconds"]))


def _change(nginx: Nginx, params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    """Bring the list into the wanted state; the caller holds the lock."""
    text = nginx.read(SERVERS)
    if text is None and not check_mode:
        raise NginxError(f"{nginx.conf_dir}/{SERVERS} is missing: run the role gb10.vllm.proxy on this host first")
    before = Membership() if text is None else parse(text, f"{nginx.conf_dir}/{SERVERS}")
    after = _wanted(params, before, nginx.read(SITE) or "")
    old, new = render(before) if text is None else text, render(after)
    result: dict[str, Any] = {
        "changed": old != new,
        "tested": False,
        "reloaded_at": None,
        "admitted": [{"name": entry.name, "server": entry.server} for entry in after.servers],
        "running": nginx.master() is not None,
        "diff": {"before": old, "after": new, "before_header": SERVERS, "after_header": SERVERS},
        "withdrawn": {entry.server for entry in before.servers if entry.name == params["name"]},
    }
    if not result["changed"] or (check_mode and (text is None or not result["running"])):
        return result
    if check_mode:
        nginx.test({SERVERS: new}, traceless=True)
    else:
        result["reloaded_at"] = nginx.apply({SERVERS: new})
    result["tested"] = True
    return result


def _message(params: dict[str, Any], result: dict[str, Any]) -> str:
    said = f"{params['name']} is {params['state']}" + ("" if result["changed"] else " already")
    if not result["running"]:
        said += "; nginx is not running, so this takes effect when it starts"
    if result.get("connections"):
        said += f"; {result['connections']} connections are left after {result['waited_seconds']} s"
    return said


def run(params: dict[str, Any], check_mode: bool, program: str | None) -> dict[str, Any]:
    """The whole module on plain values."""
    started = time.time()
    _check(params)
    nginx = Nginx(params["conf_dir"], params["pid_file"], program, params["reload_seconds"])
    try:
        with nginx.lock():
            result = _change(nginx, params, check_mode)
    except FileNotFoundError:  # no folder to lock: the role has never run here
        result = _change(nginx, params, check_mode)
    servers = result.pop("withdrawn") | ({params["server"]} if params["server"] else set())
    if params["state"] == "withdrawn":
        # Outside the lock: another copy can be admitted while this one finishes its work.
        since = time.monotonic()
        left = nginx.drain(servers, 0 if check_mode else params["drain_seconds"])
        result |= {"drained": not left, "connections": left, "waited_seconds": round(time.monotonic() - since, 3)}
    return result | {"started_at": started, "done_at": time.time(), "msg": _message(params, result)}


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "server": {"type": "str"},
            "state": {"type": "str", "choices": ["admitted", "withdrawn"], "default": "admitted"},
            "max_fails": {"type": "int"},
            "fail_timeout_seconds": {"type": "int"},
            "drain_seconds": {"type": "int", "default": 0},
            "reload_seconds": {"type": "int", "default": 10},
            "conf_dir": {"type": "path", "default": "/etc/nginx"},
            "pid_file": {"type": "path", "default": "/run/nginx.pid"},
        },
        required_if=[("state", "admitted", ["server"])],
        supports_check_mode=True,
    )
    try:
        result = run(module.params, module.check_mode, module.get_bin_path("nginx", opt_dirs=["/usr/sbin", "/sbin"]))
    except NginxError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
