# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of an engine host that the engine's own page does not have, see ``_engine_figures``.

Private to this collection: may change at any time. Host-side, standard library only. Reads only.
"""

from __future__ import annotations

import ipaddress
import json
import time
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import (
    _bypass,
    _bypass_host,
    _engine_figures,
    _exporter,
    _host,
    _pause,
)
from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family, gauge


class EngineHost:
    """Looks at one engine host."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.networks = [ipaddress.ip_network(text) for text in config["allowed"]]
        self.bypassed: float | None = None

    def families(self) -> list[Family]:
        base, state = self.config["base_dir"], self.config["state_dir"]
        release = _host.linked_release(base, "current")
        record = _host.read_json(f"{base}/current/release.json") if release else None
        kept = [_content(path) for path in sorted(Path(state, "measured").glob("*.json"))]
        start = _engine_figures.newest_start(kept, release or "")
        paused = _pause.paused(_pause.FOLDER, time.time())
        found = _engine_figures.families(self.config["copy"], release, record, _host.unit_state(), start, paused)
        return [*found, *self._bypass()]

    def _bypass(self) -> list[Family]:
        """Who is connected to the engine and may not be, now or within the last minute (the kernel remembers)."""
        here = Path("/proc/self")
        sources = _bypass.Sources(self.networks, _bypass_host.own_addresses(here))
        found = _bypass.strangers(_bypass_host.sockets(here), self.config["port"], sources)
        addresses = sorted({str(address) for address, _port in found})
        if addresses:
            self.bypassed = time.time()
        copy = self.config["copy"]
        family = Family("gb10_vllm_bypass_connections", "gauge", "Connections to the engine that walk past the proxy.")
        for address in addresses[:16]:
            family.add(sum(str(one) == address for one, _port in found), copy=copy, client=address)
        last = "When somebody was last seen who walks past the proxy."
        return [family, gauge("gb10_vllm_bypass_seen_timestamp_seconds", last, self.bypassed, copy=copy)]


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def main() -> int:
    """Entry point."""
    return _exporter.run("engine", lambda config: EngineHost(config).families)
