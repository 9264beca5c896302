# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal and the lock of rollouts, as files on the first proxy.

Private to this collection: may change at any time. Host-side, standard library only.

`<folder>/<rollout>.jsonl` has one JSON object per act: `time` (seconds since the epoch), `host`, `step`, `result` and
whatever else the step knows. It is only ever appended to. `<folder>/lock.json` says who holds the lock; the time at which that
file was last touched is the last sign of life of its rollout.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host

FOLDER = "/var/lib/gb10-vllm/rollouts"


class LockedError(RuntimeError):
    """Somebody else holds the lock; the message says who, since when and why."""


def append(folder: str, rollout: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the events in one piece and flush them to the disk before returning."""
    now = time.time()
    written = [
        {"time": round(float(event.get("time") or 0) or now, 3), **{k: v for k, v in event.items() if k != "time"}}
        for event in events
    ]
    text = "".join(json.dumps(event, sort_keys=True) + "\n" for event in written)
    Path(folder).mkdir(parents=True, exist_ok=True)
    handle = os.open(f"{folder}/{rollout}.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(handle).st_size
        if size and os.pread(handle, 1, size - 1) != b"\n":
            # A power loss cut the last line short; without a break it would take this event with it.
            text = "\n" + text
        os.write(handle, text.encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    show_life(folder, rollout)
    return written


def audit_line(rollout: str, event: Mapping[str, Any]) -> str:
    """One act in one line for the system log."""
    known = ("step", "host", "result", "verb", "path", "to", "reason", "by")
    told = " ".join(f"{name}={event[name]!r}" for name in known if event.get(name))
    return f"gb10.vllm rollout={rollout} {told}"


def read(folder: str, rollout: str) -> list[dict[str, Any]]:
    """All events of a rollout. A last line that a power loss cut short is left out; what came before it counts."""
    try:
        lines = Path(folder, f"{rollout}.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:
            continue
    return events


def rollouts(folder: str) -> list[str]:
    """Ids of the rollouts that have a journal, oldest first; an id begins with its time."""
    return sorted(path.stem for path in Path(folder).glob("*.jsonl"))


def lock_holder(folder: str) -> dict[str, Any] | None:
    """Who holds the lock; `seen` is its last sign of life, the newest act of its rollout. None when nobody holds it."""
    holder = _host.read_json(f"{folder}/lock.json")
    if holder is not None:
        with contextlib.suppress(FileNotFoundError):
            holder["seen"] = os.stat(f"{folder}/lock.json").st_mtime
    return holder


def look(folder: str, rollout: str = "") -> dict[str, Any]:
    """The rollout, else the newest one, with all its events, and who holds the lock."""
    rollout = rollout or (rollouts(folder) or [""])[-1]
    return {"rollout": rollout, "events": read(folder, rollout) if rollout else [], "lock": lock_holder(folder)}


def show_life(folder: str, rollout: str) -> None:
    """Note that the rollout is at work, if it holds the lock."""
    with contextlib.suppress(FileNotFoundError):
        if (_host.read_json(f"{folder}/lock.json") or {}).get("rollout") == rollout:
            os.utime(f"{folder}/lock.json")


def staleness(holder: Mapping[str, Any], gone: bool | None, now: float) -> str:
    """Why the lock is stale, empty when it is not known to be. `gone`: what is known of the process that holds it."""
    controller = holder.get("controller") or {}
    if gone:
        return f"its process {controller.get('pid', '?')} on {controller.get('host', '?')} is gone"
    silent = now - float(holder.get("seen", now))
    if gone is None and silent > float(holder.get("quiet_seconds", silent)):
        return f"it has been silent for {silent / 60:.0f} min, longer than the longest of its steps may take"
    return ""


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Nobody else changes the lock meanwhile; ends with the process, so it cannot be left behind."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def acquire(folder: str, holder: dict[str, Any], stale: str = "", instead_of: str = "", write: bool = True) -> bool:
    """Take the lock; False when this rollout has it already, LockedError when another one has.

    `instead_of` names the rollout whose lock, `stale` for that reason, is taken over; with `write` false nothing is written.
    """
    if write:
        Path(folder).mkdir(parents=True, exist_ok=True)
    with _alone(folder) if write else contextlib.nullcontext():
        present = lock_holder(folder)
        if present and present.get("rollout") == holder["rollout"]:
            return False
        if present and present.get("rollout") != instead_of:
            raise LockedError(refusal(present, time.time(), stale))
        if write:
            _host.write_atomically(f"{folder}/lock.json", json.dumps({**holder, "since": time.time()}, indent=2) + "\n")
        return True


def release(folder: str, rollout: str, gone: bool | None = None, write: bool = True) -> bool:
    """Give the lock back; False when nobody has it, LockedError when it is another rollout's, or `any` is asked for and its process is at work."""
    if not os.path.isdir(folder):
        return False
    with _alone(folder):
        present = lock_holder(folder)
        if present is None:
            return False
        if rollout not in (present.get("rollout"), "any") or (rollout == "any" and gone is False):
            raise LockedError(refusal(present, time.time()))
        if write:
            os.unlink(f"{folder}/lock.json")
            _host.sync_folder(folder)
        return True


def refusal(holder: Mapping[str, Any], now: float, stale: str = "") -> str:
    """Who has the lock, since when, why, and what can be done."""
    minutes = (now - float(holder.get("since", now))) / 60
    said = (
        f"rollout {holder.get('rollout', '?')} ({holder.get('why', '?')}) of {holder.get('who', '?')} has held the lock for "
        f"{minutes:.0f} min"
    )
    if stale:
        return (
            f"{said}, and the lock is stale: {stale}. Go on with the playbook resume.yml, go back with rollback.yml, or release the lock "
            f"with unlock.yml and begin something else"
        )
    controller = holder.get("controller") or {}
    where = f" (process {controller['pid']} on {controller['host']})" if controller.get("pid") else ""
    return (
        f"{said}{where}. Wait for it; if it was ended from outside, look with the playbook status.yml, release the lock with the playbook "
        f"unlock.yml, and then go on with resume.yml or go back with rollback.yml"
    )
