# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files in which the programs that watch a host say what they see and did. Reads only; a file that is not there is no trouble.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host, _pause


def look(base_dir: Path, run_dir: Path, state_dir: Path, proxy_dir: Path, now: float) -> dict[str, Any]:
    """What all these files say, and in ``trouble`` which of them cannot be read."""
    trouble: list[str] = []

    def read(path: Path, use: Callable[[dict[str, Any]], Any], otherwise: Any) -> Any:
        try:
            content = _host.read_json(str(path))
            return otherwise if content is None else use(content)
        except OSError as error:
            trouble.append(f"{path} cannot be read: {error.strerror or error}")
        except (_host.HostError, AttributeError, LookupError, TypeError, ValueError) as error:
            trouble.append(
                str(error) if isinstance(error, _host.HostError) else f"{path} is not as expected: {error!r}"
            )
        return otherwise

    programs = {path.stem: path for path in sorted(run_dir.glob("[!.]*.json"))}
    return {
        "programs": {
            name: read(path, lambda content: _aged(content, now), {"trouble": f"{path} cannot be read"})
            for name, path in programs.items()
        },
        "paused": _pause.paused(str(state_dir / "pause"), now),
        "silenced": read(base_dir / "silenced.json", names, []),
        "withdrawn": read(proxy_dir / "withdrawn.json", lambda content: {k: dict(v) for k, v in content.items()}, {}),
        "hold": read(proxy_dir / "hold.json", lambda content: _hold(content, now), None),
        "trouble": trouble,
    }


def names(record: dict[str, Any]) -> list[str]:
    """The units and containers that are silenced now."""
    return sorted([*(record.get("units") or {}), *(record.get("containers") or {})])


def _aged(content: dict[str, Any], now: float) -> dict[str, Any]:
    said = content.get("time")
    known = isinstance(said, (int, float)) and not isinstance(said, bool)
    return {**content, "age_seconds": round(max(0.0, now - float(said or 0)), 1) if known else None}


def _hold(content: dict[str, Any], now: float) -> dict[str, Any]:
    until = float(content["until"])
    return {"armed": until > now, "until": until, "why": str(content.get("why") or "")}
