# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether somebody asked that nothing acts by itself on this host.

Private to this collection: may change at any time. Host-side, standard library only.

Each file in the folder pauses all automatic acts: `{"until": seconds since the epoch or null, "who": ..., "why": ...}`. Past
`until` it counts no longer. A file that cannot be understood pauses: an operator may just `touch` one.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

FOLDER = "/var/lib/gb10-vllm/pause"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def read(folder: str) -> dict[str, dict[str, Any] | None]:
    """What each file in the folder says, by its name; None for one that cannot be understood."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return {}
    # Names with a dot are files that are being written.
    return {name: _content(os.path.join(folder, name)) for name in names if not name.startswith(".")}


def _content(path: str) -> dict[str, Any] | None:
    try:
        content = json.loads(Path(path).read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def reason(files: dict[str, dict[str, Any] | None], now: float) -> str:
    """Why nothing may act, in words; empty when nothing keeps it from acting. Pure."""
    return "; ".join(words for words in (_words(name, content, now) for name, content in files.items()) if words)


def _words(name: str, content: dict[str, Any] | None, now: float) -> str:
    if content is None:
        return f"{name} (an operator's file)"
    until, left = content.get("until"), ""
    if isinstance(until, (int, float)) and not isinstance(until, bool):
        if now > until:
            return ""
        left = f" for another {until - now:.0f} s"
    said = ", ".join(str(content[key]) for key in ("who", "why") if content.get(key))
    return f"{name}{left}{f' ({said})' if said else ''}"


def paused(folder: str, now: float) -> str:
    """Empty, or the reason in words. A folder that cannot be read pauses."""
    try:
        return reason(read(folder), now)
    except OSError as error:
        return f"{folder} cannot be read: {error.strerror or error}"
