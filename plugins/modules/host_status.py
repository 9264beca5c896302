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
  - Says in one go what those of M(gb10.vllm.engine_info), M(gb10.vllm.copy_metrics), M(gb10.vllm.watch_info), M(gb10.vllm.proxy_info),
    M(gb10.vllm.proxy_hold) and M(gb10.vllm.rollout_journal) say that belong to the host, because six modules take far longer than one.
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
    details: Where the lock is held, the action looks whether the process that holds it is still there.
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
    default: /etc/gb10-vllm
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
  interval_seconds:
    description: See M(gb10.vllm.copy_metrics).
    type: float
    default: 0.5
  proxy_copy_header:
    description: See M(gb10.vllm.copy_metrics).
    type: str
    default: X-Vllm-Copy
  socket:
    description: See M(gb10.vllm.proxy_hold).
    type: path
    default: /run/gb10-vllm-hold.sock
  folder:
    description: See M(gb10.vllm.rollout_journal).
    type: path
    default: /var/lib/gb10-vllm/rollouts
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

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import (
    _engine_look,
    _hold_counts,
    _host,
    _journal,
    _nginx_look,
    _watch_files,
)
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch, window
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError

FOLDERS = {
    "run_dir": Path("/run/gb10-vllm"),
    "state_dir": Path("/var/lib/gb10-vllm"),
    "proxy_dir": Path("/var/lib/gb10-vllm-proxy"),
}
NGINX = ("/etc/nginx", "/run/nginx.pid")


def answer(question: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer, or in the form of a failed module why there is none."""
    try:
        return question()
    except fetch.ProxyError as error:
        return {"failed": True, "msg": f"the engine's port is a proxy's ({error}): set vllm_port to that of the engine"}
    except (OSError, ValueError, _host.HostError, NginxError) as error:
        return {"failed": True, "msg": str(error)}


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """The whole module on plain values."""
    base, port = asked["base_dir"], asked["port"]
    found = {"watch": answer(lambda: _watch_files.look(Path(base), **FOLDERS, now=time.time()))}
    if asked["engine"]:
        found["engine"] = engine = answer(lambda: _engine_look.look(base, port))
        # A rank behind another one has no port of its own.
        if engine.get("running") and not (engine.get("current") or {}).get("rank"):
            interval, header = asked["interval_seconds"], asked["proxy_copy_header"]
            found["metrics"] = answer(lambda: window.look_twice("127.0.0.1", port, interval, 2, header))
    if asked["proxy"]:
        found["proxy"] = answer(lambda: _nginx_look.look(*NGINX))
        counts = _hold_counts.ask(asked["socket"])
        found["hold"] = {"helper": counts is not None, "counts": counts or {}}
    if asked["keeper"]:
        found["journal"] = answer(lambda: _journal.look(asked["folder"]))
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **{name: {"type": "bool", "default": False} for name in ("engine", "proxy", "keeper")},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "port": {"type": "int", "default": 8000},
            "interval_seconds": {"type": "float", "default": 0.5},
            "proxy_copy_header": {"type": "str", "default": "X-Vllm-Copy"},
            "socket": {"type": "path", "default": "/run/gb10-vllm-hold.sock"},
            "folder": {"type": "path", "default": _journal.FOLDER},
        },
        supports_check_mode=True,
    )
    seconds = module.params["interval_seconds"]
    if not 0 <= seconds <= 60:
        module.fail_json(msg=f"interval_seconds is {seconds} (vllm_status_interval_seconds), it must be 0 to 60")
    module.exit_json(changed=False, **look(module.params))


if __name__ == "__main__":
    main()
