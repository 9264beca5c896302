# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Silences units and containers that are not ours, and puts them back exactly as they were.

Private to this collection: may change at any time. Host-side, standard library only.

What they were is on the disk before anything is changed, and an entry that is there is never written again: whoever is ended in the
middle can be run again in either direction. Every silenced unit is masked, because nobody can know who else starts or enables units
by name.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

from . import _foreign_unit, _host, _http
from ._foreign_kinds import RUNNING
from ._foreign_unit import Unit

NAME = "silenced.json"
# What starts other units is stopped first and started last; a socket before the service that it hands over.
STOP_ORDER = (".timer", ".path", ".socket", ".service")
SETTLED_BYTES = 256 * 1024 * 1024
START_ORDER = (".socket", ".service", ".path", ".timer")


def holds(record: Mapping[str, Any]) -> bool:
    """Whether something is silenced. What is left of a record after that says only what served then."""
    return bool(record.get("units") or record.get("containers"))


def read(base: str) -> dict[str, Any]:
    return _host.read_json(f"{base}/{NAME}") or {}


def merged(
    record: Mapping[str, Any], units: Mapping[str, Any], containers: Mapping[str, Any], more: Mapping[str, Any]
) -> dict[str, Any]:
    """The record with what is new; the first state that was seen of a unit or container is the one that counts."""
    if not holds(record):
        record = {}
    return {
        "schema": 1,
        **more,
        **{key: value for key, value in record.items() if key not in ("units", "containers")},
        "units": {**units, **(record.get("units") or {})},
        "containers": {**containers, **(record.get("containers") or {})},
    }


def in_order(names: Sequence[str], order: Sequence[str]) -> list[str]:
    return sorted(
        names,
        key=lambda name: (order.index(os.path.splitext(name)[1]) if os.path.splitext(name)[1] in order else 9, name),
    )


def starts_again(entry: Mapping[str, Any]) -> bool:
    """A job that happened to run when it was silenced is its timer's to start."""
    return entry["active"] in ("active", "reloading") or (entry["active"] in RUNNING and entry.get("type") != "oneshot")


def served_models(port: int, api_key: str) -> list[str] | None:
    """Names under which an engine answers on the port now; None when nothing listens there."""
    if not _host.is_listening(port):
        return None
    answer = _http.get(f"http://127.0.0.1:{port}/v1/models", timeout=5, token=api_key).json()
    data = answer.get("data") if isinstance(answer, dict) else None
    return [str(entry["id"]) for entry in data or [] if isinstance(entry, dict) and entry.get("id")]


def container_entry(name: str) -> dict[str, Any] | None:
    done = _host.run(["docker", "inspect", "--type=container", name], check=False)
    if done.returncode:
        return None
    (one,) = json.loads(done.stdout)
    policy = one["HostConfig"].get("RestartPolicy") or {}
    return {
        "policy": policy.get("Name") or "no",
        "retries": policy.get("MaximumRetryCount") or 0,
        "running": bool(one["State"]["Running"]) or bool(one["State"].get("Restarting")),
    }


def silence(
    base: str, keys: Sequence[str], names: Sequence[str], seconds: int, more: Mapping[str, Any], write: bool
) -> dict[str, Any]:
    """Make them silent: those named, and those in the record. HostError names what could not be, the record stays."""
    old = read(base)
    known = old.get("units") or {}
    units = [Unit(key) for key in in_order(sorted({*keys, *known}), STOP_ORDER)]
    units = [unit for unit in units if unit.load != "not-found" or unit.key in known]
    containers = {
        name: found for name in sorted({*names, *(old.get("containers") or {})}) if (found := container_entry(name))
    }
    record = merged(
        old,
        {unit.key: unit.entry(unit.is_masked_by_us) for unit in units if unit.key in keys},
        {name: containers[name] for name in names if name in containers},
        more,
    )
    loud = [unit for unit in units if not unit.is_silent]
    loud_containers = [name for name, entry in containers.items() if entry["running"] or entry["policy"] != "no"]
    result: dict[str, Any] = {
        "changed": bool(loud or loud_containers or (holds(record) and record != old)),
        "acted_on": [unit.key for unit in loud] + loud_containers,
        "record": record,
        "before": _lines(units, containers),
    }
    if write and result["changed"]:
        os.makedirs(base, exist_ok=True)
        _host.write_atomically(f"{base}/{NAME}", json.dumps(record, indent=2) + "\n")
        _silence_units(loud, seconds)
        for name in loud_containers:
            _host.run(["docker", "update", "--restart=no", name])
            _host.run(["docker", "stop", name], timeout=seconds)
        _prove_silent(loud, loud_containers)
        _settle(more["port"], seconds)
    return result


def _silence_units(loud: Sequence[Unit], seconds: int) -> None:
    for unit in loud:
        for path, _target in unit.links():
            os.unlink(path)
            _host.sync_folder(os.path.dirname(path))
    _foreign_unit.reload(loud)
    # Not enabled any more, but with its own ways to end: a mask would hide its ExecStop.
    for unit in loud:
        if unit.load == "loaded":
            unit.systemctl("stop", timeout=seconds)
    for unit in loud:
        unit.add_mask()
    _foreign_unit.reload(loud)
    for unit in loud:
        if unit.active in RUNNING:  # started by somebody between the stop and the mask
            unit.systemctl("stop", timeout=seconds)
            unit.look()


def _prove_silent(units: Sequence[Unit], containers: Sequence[str]) -> None:
    left = [f"unit {unit.key} is {unit.active} ({unit.load})" for unit in units if not unit.is_silent]
    left += [f"container {name} runs" for name in containers if (container_entry(name) or {}).get("running")]
    if left:
        raise _host.HostError(
            f"not silent: {'; '.join(left)}. What they were is in {NAME}; this can be run again, and a rollback puts them back"
        )


def _settle(port: int, seconds: int) -> None:
    """Until the port is closed and two readings of the memory are equal: what an engine held comes back after its end."""
    deadline, before = _host.Deadline(seconds), _host.memory_available_bytes()
    while deadline.left > 0:
        deadline.pause(1)
        now_free = _host.memory_available_bytes()
        if abs(now_free - before) <= SETTLED_BYTES and not _host.is_listening(port):
            return
        before = now_free
    raise _host.HostError(
        f"all units and containers are silent, but after {seconds} s port {port} is still open or the memory still changes: "
        f"`ss -ltnp sport = :{port}` names who has it"
    )


def restore(base: str, seconds: int, write: bool) -> dict[str, Any]:
    """Put back what the record says, then forget it."""
    record = read(base)
    entries: dict[str, dict[str, Any]] = record.get("units") or {}
    boxes: dict[str, dict[str, Any]] = record.get("containers") or {}
    units = [Unit(key) for key in in_order(list(entries), START_ORDER)]
    containers = {name: found for name in boxes if (found := container_entry(name))}
    result: dict[str, Any] = {
        "changed": holds(record),
        "acted_on": [unit.key for unit in units] + list(boxes),
        "record": record,
        "before": _lines(units, containers),
    }
    if not write or not result["changed"]:
        return result
    gone = sorted(set(boxes) - set(containers))
    if gone:
        raise _host.HostError(
            f"container {', '.join(gone)} is not there any more and cannot be put back. Create it again, or take it out of {base}/{NAME}"
        )
    for unit in units:
        if not entries[unit.key]["masked_before"]:
            unit.remove_mask()
        unit.put_back(entries[unit.key]["links"])
    _foreign_unit.reload(units)
    for name, box in boxes.items():
        retries = f":{box['retries']}" if box["policy"] == "on-failure" and box["retries"] else ""
        _host.run(["docker", "update", f"--restart={box['policy']}{retries}", name])
        if box["running"]:
            _host.run(["docker", "start", name], timeout=max(60, seconds))
    again = [unit for unit in units if unit.load == "loaded" and starts_again(entries[unit.key])]
    for unit in again:
        unit.systemctl("reset-failed", check=False)
        unit.systemctl("start", "--no-block")
    result["slow"] = _wait(again, seconds)
    # What served then is wanted once more, by whoever waits for it to answer.
    left = {**record, "units": {}, "containers": {}}
    _host.write_atomically(f"{base}/{NAME}", json.dumps(left, indent=2) + "\n")
    return result


def _wait(units: Sequence[Unit], seconds: int) -> list[str]:
    """Until all run; those that are still starting at the end are returned, one that is not is an error."""
    deadline = _host.Deadline(seconds)
    failed = [unit for unit in units if unit.active != "active"]
    while True:
        for unit in failed:
            unit.look()
        failed = [unit for unit in failed if unit.active != "active"]
        if not failed or deadline.left <= 0:
            break
        deadline.pause(0.25)
    dead = [f"unit {unit.key} is {unit.active}" for unit in failed if unit.active not in RUNNING]
    if dead:
        raise _host.HostError(
            f"{'; '.join(dead)} {seconds} s after it was put back and started: look with `systemctl status`. Run this again when it is mended"
        )
    return [unit.key for unit in failed]


def _lines(units: Sequence[Unit], containers: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [f"unit {unit.key}: {unit.enabled or unit.load}, {unit.active}" for unit in units]
    lines += [
        f"container {name}: {'running' if one['running'] else 'stopped'}, restart {one['policy']}"
        for name, one in containers.items()
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def after(record: Mapping[str, Any], silent: bool) -> str:
    """The same lines as they will be."""
    units: Mapping[str, Any] = record.get("units") or {}
    boxes: Mapping[str, Any] = record.get("containers") or {}
    lines = [
        f"unit {key}: masked, inactive" if silent else f"unit {key}: {one['enabled']}, {one['active']}"
        for key, one in units.items()
    ]
    lines += [
        f"container {name}: stopped, restart no"
        if silent
        else f"container {name}: {'running' if one['running'] else 'stopped'}, restart {one['policy']}"
        for name, one in boxes.items()
    ]
    return "".join(f"{line}\n" for line in sorted(lines))


def now() -> float:
    return round(time.time(), 3)
