# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each release took to load on this host, cold and warm, learned from its starts.

Private to this collection: may change at any time. Host-side, standard library only; pure but for the last three functions.

A start is cold when it is the release's first one since the host booted: nothing of the model is in the page cache then.
One file, an object of releases: {id: {"boot", "invocation", "at", "cold", "warm"}}, the last two in seconds and only where known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.gb10.vllm.plugins.module_utils import _host

FILE = "/var/lib/gb10-vllm/loads.json"
# Releases are small and old ones are of no use once their files are gone.
MOST_RELEASES = 50


class Expectation(NamedTuple):
    """`seconds` for the kind of start at hand, and `longest` of what is known; None where nothing was learned."""

    kind: str
    seconds: float | None
    longest: float | None


def expectation(known: Mapping[str, Any], release: str, boot: str) -> Expectation:
    """What a start of this release would take now."""
    entry = known.get(release)
    if not isinstance(entry, Mapping):
        return Expectation("cold", None, None)
    cold, warm = _seconds(entry.get("cold")), _seconds(entry.get("warm"))
    if entry.get("boot") != boot:
        # a warm start says nothing about reading the model from the disk
        return Expectation("cold", cold, None if cold is None else max(cold, warm or 0))
    # The page cache may be gone after all: the GPU takes the same memory.
    figures = [figure for figure in (cold, warm) if figure is not None]
    return Expectation("warm", warm or cold, max(figures, default=None))


def learn(
    known: Mapping[str, Any], release: str, seconds: float, boot: str, invocation: str, now: float
) -> dict[str, Any]:
    """The file's content after a start that took so long; the same start counts once."""
    before = known.get(release)
    entry = dict(before) if isinstance(before, Mapping) else {}
    if entry.get("invocation") == invocation:
        return dict(known)
    kind = expectation(known, release, boot).kind
    entry.update({"boot": boot, "invocation": invocation, "at": round(now), kind: round(seconds, 1)})
    newest = sorted({**known, release: entry}.items(), key=lambda item: _at(item[1]), reverse=True)
    return dict(sorted(newest[:MOST_RELEASES]))


def _seconds(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _at(entry: Any) -> float:
    return _seconds(entry.get("at")) or 0 if isinstance(entry, Mapping) else 0


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def read(path: str) -> dict[str, Any]:
    """A damaged file is an empty one: what was learned only makes waiting shorter."""
    try:
        return _host.read_json(path) or {}
    except (OSError, _host.HostError):
        return {}


def write(path: str, content: Mapping[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    _host.write_atomically(path, json.dumps(content, indent=1, sort_keys=True) + "\n")
