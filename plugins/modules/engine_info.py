#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_info
short_description: Tell what a host's engine is and does
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the unit, the container, the links to the releases and their records, the engine's port and the host's memory.
  - Changes nothing, and asks the engine nothing that costs it work.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
"""

EXAMPLES = r"""
- name: Look at the engine
  gb10.vllm.engine_info:
  register: engine
"""

RETURN = r"""
unit:
  description: State of the unit as systemd names it, for example C(ActiveState) and C(UnitFileState).
  type: dict
  returned: always
running:
  description: Whether the unit is active.
  type: bool
  returned: always
container:
  description: The engine's container, null when there is none.
  type: dict
  returned: always
current:
  description: Record of the current release, null when there is none.
  type: dict
  returned: always
previous:
  description: Record of the release before, null when there is none.
  type: dict
  returned: always
records:
  description: Of every release on the host what a rollout has to know, by id.
  type: dict
  returned: always
stable:
  description: Releases that became stable here, oldest first, with the rollout that each belongs to. See M(gb10.vllm.stable_release).
  type: list
  elements: dict
  returned: always
loading:
  description: Whether the engine does not answer yet and is still within the time that its release gives it.
  type: bool
  returned: always
port_open:
  description: Whether something listens on the engine's port.
  type: bool
  returned: always
healthy:
  description: Whether C(/health) answers 200. Not a proof that the engine can generate; that is the gate's work.
  type: bool
  returned: always
phase:
  description: Where the start is, from the engine's own log.
  type: str
  returned: when the unit is active
last_log_line:
  description: The engine's last log line.
  type: str
  returned: when the unit is active
memory_available_bytes:
  description: MemAvailable of the host in bytes.
  type: int
  returned: always
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _http, _phase, _stable
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER

# What a rollout has to know of a release; the rest of the record is long, and there may be many.
KEPT = (
    *("id", "topology", "rank", "ranks", "image", "digest", "model", "revision", "served_model_name"),
    *("max_model_len", "port", "budgets", "command", "made_at", "made_by"),
)


def records(base: str) -> dict[str, dict[str, Any]]:
    """The releases that are whole; one that is not cannot be the target of anything."""
    found = {}
    for path in sorted(Path(base, "releases").glob("[!.]*/release.json")):
        record = _host.read_json(str(path))
        if record and (path.parent / "start").is_file():
            found[path.parent.name] = {name: record[name] for name in KEPT if name in record}
    return found


def is_loading(unit: dict[str, str], healthy: bool, current: dict[str, Any] | None) -> bool:
    """Whether a start is still within the gate's deadline; the unit's time is that of the monotonic clock."""
    if healthy or unit["ActiveState"] not in ("active", "activating") or unit["SubState"] == "auto-restart":
        return False
    began = int(unit["ActiveEnterTimestampMonotonic"] or 0) / 1e6
    return time.monotonic() - began < float((current or {}).get("budgets", {}).get("gate_deadline", 0))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "port": {"type": "int", "default": 8000},
        },
        supports_check_mode=True,
    )
    base, port = module.params["base_dir"], module.params["port"]
    try:
        unit = _host.unit_state()
        running = unit["ActiveState"] == "active"
        lines = _host.last_log_lines(200) if running else []
        current = _host.read_json(f"{base}/current/release.json")
        healthy = running and _http.get(f"http://127.0.0.1:{port}/health", timeout=2).status == 200
        result = {
            "unit": unit,
            "running": running,
            "container": _host.container_state(CONTAINER),
            "current": current,
            "previous": _host.read_json(f"{base}/previous/release.json"),
            "records": records(base),
            "stable": _stable.read(base),
            "port_open": _host.is_listening(port),
            "healthy": healthy,
            "loading": is_loading(unit, healthy, current),
            "memory_available_bytes": _host.memory_available_bytes(),
        }
        if running:
            result["phase"] = _phase.phase(lines)
            result["last_log_line"] = _phase.short(lines[-1]) if lines else ""
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
