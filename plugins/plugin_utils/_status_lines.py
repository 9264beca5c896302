# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's state as lines that a person reads: what is served, one table of the copies, what stands in front, what watches.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _traffic

Status = Mapping[str, Any]
COLUMNS = ("COPY", "UNIT", "GATE", "ADMITTED", *_traffic.COLUMNS, "FREE GiB", "RESTARTS", "STATE")
NO_COPY = ["-"] * len(_traffic.COLUMNS)
# What each program calls its state; the rest of what it writes is in the JSON.
_STATES = ("verdict", "phase", "level")
# Every program writes far more often than this.
_SILENT_SECONDS = 120


def lines(status: Status) -> list[str]:
    """The whole state."""
    traffic = status["traffic"]
    rows = [
        list(COLUMNS),
        *(_host(name, host, traffic["copies"].get(name)) for name, host in status["engines"].items()),
    ]
    if whole := traffic["sum"] if traffic["copies"] else None:
        rows.append([f"{whole['read']} of {whole['copies']}", "", "", "", *_traffic.cells(whole), "", "", ""])
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    said = [(name, host.get("last_log_line")) for name, host in status["engines"].items()]
    return [
        *_served(status),
        *table,
        *(_traffic.notes(traffic) if traffic["copies"] else []),
        *(f"{name} says: {line}" for name, line in said if line),
        "",
        *(line for name, proxy in status["proxies"].items() for line in _proxy(name, proxy)),
        *_rollout(status["rollout"]),
        *(line for name, watch in status["watch"].items() for line in _watch(name, watch)),
    ]


def time_of(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%MZ")


def _served(status: Status) -> list[str]:
    """Each release that is current somewhere: what it is, where it runs and since when."""
    groups: dict[str, list[str]] = {}
    for name, host in status["engines"].items():
        if host.get("release"):
            groups.setdefault(host["release"], []).append(name)
    made = []
    for release, names in groups.items():
        hosts = {name: status["engines"][name] for name in names}
        copies = [status["traffic"]["copies"].get(name, {}) for name in names]
        what = [next(iter(hosts.values()))["topology"]]
        what.append("stable" if all(host["gate"] == "stable" for host in hosts.values()) else "not stable")
        what += sorted({f"vLLM {copy['build']}" for copy in copies if copy.get("build")})
        since = [
            f"since {_minute(host['since'])} on {name}" if host["since"] else f"off on {name}"
            for name, host in hosts.items()
        ]
        before = sorted({host["previous"] for host in hosts.values() if host["previous"]})
        made.append(f"{release} ({', '.join(what)}) {', '.join(since)}")
        made += [f"before it: {', '.join(before)}"] if before else []
    return [*made, ""] if made else []


def _minute(stamp: str) -> str:
    return f"{stamp[:16].replace('T', ' ')}Z"


def _host(name: str, host: Status, copy: Status | None) -> list[str]:
    """One engine host's row."""
    admitted = {None: "?", True: "yes", False: "no"}[host["admitted"]]
    if host["trouble"]:
        return [name, "?", "?", admitted, *_traffic.UNKNOWN, "?", "?", host["trouble"]]
    rank = f" (rank {host['rank']})" if (host["ranks"] or 1) > 1 else ""
    unit = (
        host["unit"]
        if (host["unit"], host["enabled"]) == ("active", "enabled")
        else f"{host['unit']}, {host['enabled']}"
    )
    return [
        f"{name}{rank}",
        unit,
        host["gate"] or "-",
        admitted,
        *(_traffic.cells(copy) if copy else NO_COPY),
        f"{host['memory_available_bytes'] / 2**30:.1f}",
        "?" if host["restarts"] is None else str(host["restarts"]),
        ", ".join(word for word in (host["state"], "no answer" if host["healthy"] is False else "") if word) or "-",
    ]


def _proxy(name: str, proxy: Status) -> Iterator[str]:
    """One proxy, who waits there, and what it lost without a rollout."""
    if proxy["trouble"]:
        yield f"proxy {name}: {proxy['trouble']}"
        return
    if not proxy["configured"]:
        yield f"proxy {name}: not set up yet (playbook site.yml)"
        return
    servers = ", ".join(f"{server['name']} ({server['connections']} connections)" for server in proxy["admitted"])
    runs = "runs" if proxy["running"] else "does not run"
    yield f"proxy {name}: nginx {runs}; admitted: {servers or 'nothing, clients get 503'}; {_hold(proxy['hold'])}"
    for copy, why in proxy["withdrawn"].items():
        since = why.get("since")
        when = f" since {time_of(since)}" if isinstance(since, (int, float)) else ""
        yield f"proxy {name}: {copy} is withdrawn{when}: {why.get('reason') or 'no reason said'}"


def _hold(hold: Status) -> str:
    waiting = hold["waiting"]
    now = "its helper does not answer, nobody knows who waits" if waiting is None else f"{waiting} wait now"
    if hold["armed"]:
        for_what = f" for {hold['why']}" if hold["why"] else ""
        return f"requests may wait until {time_of(hold['until'])}{for_what}, {now}"
    return f"requests do not wait, {now}" if waiting else "requests do not wait"


def _rollout(rollout: Status) -> Iterator[str]:
    """What the newest rollout is at, who holds the lock, and what can be done."""
    if rollout["trouble"]:
        yield f"journal and lock, on the first proxy: {rollout['trouble']}"
        return
    last, lock = rollout["last"], rollout["lock"]
    if last:
        how = {"ok": "ended well", "failed": "ended as failed"}.get(last["result"], last["result"])
        if last["step"] != "end":
            how = f"has not ended; its last act was {last['step']} of {last['host']} ({last['result']})"
        if not lock and (last["step"] != "end" or last["result"] != "ok"):
            how += "; the playbook resume.yml goes on with it, rollback.yml goes back"
        yield f"rollout {rollout['id']}: {how}"
    if lock:
        yield f"lock: held by {lock['who']} for rollout {lock['rollout']} ({lock['why']})"
    if lock and rollout["stale"]:
        yield (
            f"the lock is stale: {rollout['stale']}. The playbook resume.yml goes on with the rollout, rollback.yml goes back, unlock.yml "
            "only releases the lock"
        )


def _watch(name: str, watch: Status) -> Iterator[str]:
    """What each program on a host says, and who pauses them."""
    for program, found in watch["programs"].items():
        yield f"{name} {program}: {found.get('trouble') or _program(found)}"
    if watch["paused"]:
        yield f"{name}: nothing is done automatically: {watch['paused']}"
    if watch["silenced"]:
        yield f"{name}: silenced: {', '.join(watch['silenced'])}"
    yield from (f"{name}: {what}" for what in watch["trouble"])


def _program(found: Status) -> str:
    """What one program last wrote."""
    said = [str(found[key]) for key in (*_STATES, "reason") if found.get(key)]
    hold = found["hold"] if isinstance(found.get("hold"), Mapping) else {}
    for gave_up in (found.get("gave_up"), hold.get("gave_up")):
        said += (
            [f"gave up, a person has to look{f': {gave_up}' if isinstance(gave_up, str) else ''}"] if gave_up else []
        )
    age = found.get("age_seconds")
    said += [f"silent for {age:.0f} s"] if age is not None and age > _SILENT_SECONDS else []
    return ", ".join(said) or "runs"
