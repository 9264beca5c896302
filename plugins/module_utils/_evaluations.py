# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of evaluations, as files on the first proxy.

Private to this collection: may change at any time. Host-side, standard library only.

`<folder>/<id>.json` is one record. It is written in one piece and never again: what was measured does not change.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = "/var/lib/gb10-vllm/evaluations"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")


class RecordError(RuntimeError):
    """A record that cannot be kept; the message says why."""


def keep(folder: str, record: dict[str, Any]) -> str:
    """Write a record that is not there yet, flushed to the disk; its path."""
    name = str(record.get("id") or "")
    if not _ID.fullmatch(name):
        raise RecordError(f"{name!r} is no id of a record: letters, digits, dots, dashes and underscores are allowed")
    Path(folder).mkdir(parents=True, exist_ok=True)
    target = f"{folder}/{name}.json"
    handle, candidate = tempfile.mkstemp(dir=folder, prefix=".record.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(json.dumps(record, indent=1, sort_keys=True) + "\n")
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        # Unlike a rename, a link never replaces what is there.
        os.link(candidate, target)
    except FileExistsError:
        raise RecordError(f"{target} is there already, and a record is never written again") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(candidate)
    return target


def read(folder: str) -> tuple[list[dict[str, Any]], list[str]]:
    """All records, oldest first, and the names of files that are none."""
    found, broken = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            record = json.loads(path.read_text())
            if not isinstance(record, dict) or not {"id", "how", "what", "passes"} <= record.keys():
                raise ValueError
        except (OSError, ValueError):
            broken.append(path.name)
            continue
        found.append(record)
    return sorted(found, key=lambda record: float(record.get("time") or 0)), broken
