# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's list of the releases that became stable on it.

Private to this collection: may change at any time. Host-side, standard library only.

`<base>/stable.json` holds `{"stable": [{"rollout": id, "release": id, "at": seconds since the epoch}, ...]}`, oldest first.
Entries of several hosts with the same rollout make one state of the site.
"""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host


def read(base: str) -> list[dict[str, Any]]:
    return list((_host.read_json(f"{base}/stable.json") or {}).get("stable") or [])


def added(entries: list[dict[str, Any]], rollout: str, release: str, at: float, keep: int) -> list[dict[str, Any]]:
    """The list with this entry as its newest; a rollout has one entry, and the oldest beyond `keep` are left out."""
    others = [entry for entry in entries if entry["rollout"] != rollout]
    same = [entry for entry in entries if entry["rollout"] == rollout and entry["release"] == release]
    if same and entries[-1] == same[0]:
        return entries
    return [*others, {"rollout": rollout, "release": release, "at": round(at, 3)}][-keep:]


def write(base: str, entries: list[dict[str, Any]]) -> None:
    _host.write_atomically(f"{base}/stable.json", json.dumps({"stable": entries}, indent=2) + "\n")
