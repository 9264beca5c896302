# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the log of a run says of a task's result: bounded, and without secrets.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

Nothing of a result is kept but what is named here: no arguments, no facts, no output of commands. A message is kept of a failure
only, and never of a task whose result is not to be logged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

LONGEST = 500
COVERED = "***"
_NAME = r"(?:[\w-]*(?:api[_-]?key|token(?!s)|secret|passw(?:or)?d|credential|private[_-]?key)[\w-]*)"
_SECRETS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 " + COVERED),
    (re.compile(r"(://[^/\s:@]*:)[^/\s@]+@"), r"\1" + COVERED + "@"),
    (re.compile(r"\b(?:sk|hf|ghp|glpat|xox[bp])[-_][\w-]{6,}"), COVERED),
    (re.compile(rf"(?i)({_NAME}[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s,;&\"'}}]+)"), r"\1" + COVERED),
    (re.compile(rf"(?i)(--{_NAME}\s+)\S+"), r"\1" + COVERED),
    (re.compile(r"-----BEGIN [^-]*-----.*?(?:-----END [^-]*-----|$)", re.DOTALL), COVERED),
)


def safe(text: Any) -> str:
    """One line of a text for people, shortened, with what looks like a secret covered."""
    words = str(text or "")[: 20 * LONGEST]
    for pattern, instead in _SECRETS:
        words = pattern.sub(instead, words)
    words = " ".join(words.split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


def is_hidden(result: Mapping[str, Any]) -> bool:
    return bool(result.get("_ansible_no_log")) or "censored" in result


def message(result: Mapping[str, Any]) -> str:
    """Why a task failed. Of a loop the reasons of its items, which may be hidden one by one."""
    if is_hidden(result):
        return ""
    items = [item for item in result.get("results") or [] if isinstance(item, Mapping)]
    reasons = [message(item) for item in items if item.get("failed") or item.get("unreachable")]
    found = [reason for reason in dict.fromkeys(reasons) if reason]
    return safe("; ".join(found) or result.get("msg") or result.get("reason"))


def outcome(kind: str, result: Mapping[str, Any], ignored: bool = False) -> dict[str, Any]:
    """The part of a line that a result decides; `kind` is ok, failed, skipped or unreachable."""
    bad = kind in ("failed", "unreachable")
    changed = bool(result.get("changed"))
    line: dict[str, Any] = {
        "result": "ignored" if bad and ignored else "changed" if kind == "ok" and changed else kind,
        "changed": changed,
    }
    if isinstance(result.get("results"), list):
        line["items"] = len(result["results"])
    if is_hidden(result):
        line["hidden"] = True
    elif bad and message(result):
        line["message"] = message(result)
    return line


def text(line: Mapping[str, Any]) -> str:
    """One line of the file."""
    return json.dumps(line, sort_keys=True, default=str) + "\n"
