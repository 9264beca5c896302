# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's state as plain data, from what was found on its hosts.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils._traffic import traffic

Found = Mapping[str, Any]


def trouble(result: Found) -> str:
    """Why a registered result says nothing about its host; empty when it does."""
    if not result or result.get("unreachable"):
        return "could not be reached"
    return f"could not be looked at: {' '.join(str(result.get('msg', '?')).split())}" if result.get("failed") else ""


def part(found: Found, host: str, name: str) -> Found:
    """One of the results of M(gb10.vllm.host_status); for a host without any, why that is so."""
    result = found.get(host) or {}
    return (result.get(name) or {}) if result and not trouble(result) else result


def site_status(found: Found, engines: Sequence[str], proxies: Sequence[str]) -> dict[str, Any]:
    """All of it, from the registered results of M(gb10.vllm.host_status) by host; a figure that nobody could say is None."""
    looked = {name: part(found, name, "engine") for name in engines}
    fronts = {name: part(found, name, "proxy") for name in proxies}
    watch = {name: part(found, name, "watch") for name in dict.fromkeys([*engines, *proxies])}
    asked = [proxy for proxy in fronts.values() if not trouble(proxy)]
    admitted = [server["name"] for proxy in asked for server in proxy["admitted"]] if asked else None
    journal = part(found, proxies[0], "journal") if proxies else {}
    events = journal.get("events") or []
    return {
        "engines": {name: _engine(name, engine, admitted, events) for name, engine in looked.items()},
        "proxies": {name: _proxy(proxy, watch[name], part(found, name, "hold")) for name, proxy in fronts.items()},
        "rollout": {
            "trouble": trouble(journal),
            "id": journal.get("rollout") or None,
            "last": events[-1] if events else None,
            "lock": journal.get("lock"),
            "stale": journal.get("stale") or "",
        },
        "traffic": traffic(_copies(looked, {name: part(found, name, "metrics") for name in engines})),
        "watch": {name: _watch(seen) for name, seen in watch.items() if seen and not seen.get("unreachable")},
    }


def _engine(name: str, engine: Found, admitted: Sequence[str] | None, events: Sequence[Found]) -> dict[str, Any]:
    """One engine host; `admitted` is None when no proxy could be asked."""
    in_front = None if admitted is None else name in admitted
    if why := trouble(engine):
        return {"trouble": why, "admitted": in_front}
    current = engine.get("current") or {}
    unit, running = engine["unit"], engine["running"]
    phase = engine.get("phase", "")
    return {
        "trouble": "",
        "admitted": in_front,
        "release": current.get("id"),
        "topology": current.get("topology"),
        "rank": current.get("rank"),
        "ranks": current.get("ranks"),
        "unit": unit["ActiveState"],
        "enabled": unit.get("UnitFileState") or "not installed",
        "restarts": int(unit["NRestarts"]) if unit.get("NRestarts") else None,
        "since": (engine.get("container") or {}).get("started") if running else None,
        # A rank behind another one has no port of its own.
        "healthy": engine["healthy"] if running and not current.get("rank") else None,
        "gate": _gate(name, current.get("id"), engine.get("stable") or [], events),
        "memory_available_bytes": engine["memory_available_bytes"],
        "previous": (engine.get("previous") or {}).get("id"),
        "state": phase,
        "last_log_line": engine.get("last_log_line", "") if phase not in ("", "ready") else "",
    }


def _gate(name: str, release: str | None, stable: Sequence[Found], events: Sequence[Found]) -> str | None:
    """What the current release has proven: it is stable, or the newest rollout's last verdict on this host."""
    if release and any(entry["release"] == release for entry in stable):
        return "stable"
    verdicts = [event["step"] for event in events if event["host"] == name and event["step"] in ("passed", "failed")]
    return verdicts[-1] if release and verdicts else None


def _proxy(proxy: Found, watch: Found, held: Found) -> dict[str, Any]:
    """One proxy; `held` is what the helper that lets requests wait counts."""
    if why := trouble(proxy):
        return {"trouble": why}
    admitted = [
        {**server, "connections": proxy["connections"].get(server["server"], 0)} for server in proxy["admitted"]
    ]
    answers = not trouble(held) and bool(held.get("helper"))
    return {
        "trouble": "",
        "configured": proxy["configured"],
        "running": proxy["running"],
        "admitted": admitted,
        "hold": {
            **(watch.get("hold") or {"armed": False, "until": None, "why": ""}),
            "waiting": held["counts"].get("waiting") if answers else None,
        },
        "withdrawn": watch.get("withdrawn") or {},
    }


def _watch(found: Found) -> dict[str, Any]:
    """What watches one host; what it says of the proxy is told with the proxy."""
    if why := trouble(found):
        return {"trouble": [why], "programs": {}, "paused": None, "silenced": []}
    return {name: found[name] for name in ("trouble", "programs", "paused", "silenced")}


def _copies(engines: Found, metrics: Found) -> dict[str, Found]:
    """What was read from each host that serves a copy. One that cannot be looked at may have been one, unless the model is split."""
    known = {name: engine.get("current") for name, engine in engines.items() if not trouble(engine)}
    split = any((current or {}).get("ranks", 1) > 1 for current in known.values())
    copies: dict[str, Found] = {}
    for name, engine in engines.items():
        if why := trouble(engine):
            copies |= {} if split else {name: {"reason": why.partition(":")[0], "state": "unknown"}}
        elif not engine["running"] and known[name] and known[name]["rank"] == 0:
            copies[name] = {"reason": f"the unit is {engine['unit']['ActiveState']}", "state": "stopped"}
        elif engine["running"] and (known[name] or {}).get("rank", 0) == 0:
            copies[name] = metrics[name] or {"reason": "not read", "state": "unknown"}
    return copies
