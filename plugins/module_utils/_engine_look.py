# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on an engine host: its unit, its releases, its port, and where its start is. Reads only.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

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


def look(base: str, port: int) -> dict[str, Any]:
    """All of it; `base` is the folder of the collection's files, `port` the engine's.

    Raises:
        OSError, HostError: something cannot be asked.
    """
    unit = _host.unit_state()
    running = unit["ActiveState"] == "active"
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
        lines = _host.last_log_lines(200)
        # The lines of a start are no longer among the last ones when it has served for a while.
        result["phase"] = "ready" if healthy else _phase.phase(lines, before="")
        result["last_log_line"] = _phase.short(lines[-1]) if lines else ""
    return result
