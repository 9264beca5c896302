# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The journal and the lock of rollouts, as files on the first proxy.

Private to this collection: may change at any time. Host-side, standard library only.

`<folder>/<rollout>.jsonl` has one JSON object per act: `time` (seconds since the epoch), `host`, `step`, `result` and
whatever else the step knows. It is only ever appended to. `<folder>/lock.json` says who holds the lock.
"""

from __future__ import annotations

import json
import os
import time
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
    return written


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
    return _host.read_json(f"{folder}/lock.json")


def acquire(folder: str, holder: dict[str, Any]) -> bool:
    """Take the lock in one step; False when this rollout has it already, LockedError when another one has."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    temporary = f"{folder}/.lock.{os.getpid()}"
    _host.write_atomically(temporary, json.dumps({**holder, "since": time.time()}, indent=2) + "\n")
    try:
        os.link(temporary, f"{folder}/lock.json")
        _host.sync_folder(folder)
        return True
    except FileExistsError:
        present = lock_holder(folder)
        if present and present.get("rollout") == holder["rollout"]:
            return False
        raise LockedError(refusal(present or {}, time.time())) from None
    finally:
        os.unlink(temporary)


def release(folder: str, rollout: str) -> bool:
    """Give the lock back; False when nobody has it, LockedError when it is another rollout's."""
    present = lock_holder(folder)
    if present is None:
        return False
    if rollout not in (present.get("rollout"), "any"):
        raise LockedError(refusal(present, time.time()))
    os.unlink(f"{folder}/lock.json")
    _host.sync_folder(folder)
    return True


def refusal(holder: dict[str, Any], now: float) -> str:
    """Who has the lock, since when, why, and what can be done."""
    minutes = (now - float(holder.get("since", now))) / 60
    return (
        f"rollout {holder.get('rollout', '?')} ({holder.get('why', '?')}) of {holder.get('who', '?')} has held the lock for "
        f"{minutes:.0f} min. Wait for it; if it was ended from outside, look with the playbook status.yml and release the lock "
        f"with the playbook unlock.yml"
    )
