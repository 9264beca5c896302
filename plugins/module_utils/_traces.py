# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout left on an engine host: the releases it was about, the phases of its starts, and the memory they found.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host, _phase

READY = "ready"
MOST_LINES = 50_000
HIDDEN = "(hidden)"
# Values of such names never leave the host.
SECRET = re.compile(r"(?i)(^|[_-])(api[_-]?keys?|keys?|tokens?|secrets?|passw(or)?d|credentials?)($|[_-])")
# Numbers of tokens are no secrets.
HARMLESS = re.compile(r"(?i)(max|num|min|speculative|batched)[_-].*tokens?|tokens?[_-](limit|budget)")
KEPT = (
    *("id", "topology", "rank", "ranks", "image", "model", "revision", "served_model_name", "port"),
    *("command", "environment", "volumes", "container_options", "mods", "budgets", "made_at", "made_by"),
)
MEASURED = ("planned_requests", "concurrency", "tokens", "kv_bytes", "max_model_len", "utilization", "verdict", "began")
_LINE = re.compile(r"(?P<time>\d+\.\d+) \S+ (?P<who>[^\s:\[]+)(\[\d+\])?: (?P<text>.*)")


def is_secret(name: str) -> bool:
    return bool(SECRET.search(name)) and not HARMLESS.search(name)


class Cover:
    """Replaces secret values, by words that still tell whether two of a name are the same."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}

    def value(self, name: str, value: str) -> str:
        if not is_secret(name):
            return value
        known = self.seen.setdefault(name, [])
        if value not in known:
            known.append(value)
        number = known.index(value)
        return HIDDEN if number == 0 else f"{HIDDEN[:-1]}, value {number + 1})"

    def words(self, line: Iterable[str]) -> list[str]:
        """One line of the command: `--name value` and `--name=value`."""
        found = [str(word) for word in line]
        for place, word in enumerate(found):
            name, separator, value = word.partition("=")
            if place and is_secret(found[0].lstrip("-").replace("-", "_")):
                found[place] = self.value(found[0].lstrip("-").replace("-", "_"), word)
            elif separator and word.startswith("-"):
                found[place] = f"{name}={self.value(name.lstrip('-'), value)}"
        return found


def readable(record: Mapping[str, Any], cover: Cover) -> dict[str, Any]:
    """The part of a release's record that a report shows."""
    kept = {name: record[name] for name in KEPT if name in record}
    kept["environment"] = {
        name: cover.value(name, str(value)) for name, value in (record.get("environment") or {}).items()
    }
    kept["command"] = [cover.words(line) for line in record.get("command") or []]
    options = []
    for option in record.get("container_options") or []:
        # --env=NAME=VALUE has its name in the middle.
        head, separator, value = str(option).rpartition("=")
        options.append(f"{head}={cover.value(head.split('=')[-1].lstrip('-'), value)}" if separator else str(option))
    kept["container_options"] = options
    return kept


def entries(lines: Iterable[str]) -> Iterator[tuple[float, str, str]]:
    """Time, writer and text of journalctl's short-unix lines."""
    for line in lines:
        match = _LINE.match(line)
        if match:
            yield float(match["time"]), match["who"], match["text"]


def phases(lines: Iterable[tuple[float, str, str]], began: float) -> list[dict[str, Any]]:
    """The phases of one start with the time at which each began, up to the one in which the engine is ready."""
    found: list[dict[str, Any]] = []
    for at, _who, text in lines:
        name = _phase.phase([text], before="")
        if not name or (found and found[-1]["phase"] == name):
            continue
        found.append({"phase": name, "at": at if found else min(at, began) or at})
        if name == READY:
            break
    return found


def stopped(lines: Iterable[tuple[float, str, str]]) -> float | None:
    """When the unit was down, by systemd's own word; what a stop took after that, the memory took to come back."""
    found = None
    for at, who, text in lines:
        if who == "systemd" and re.search(r"Stopped |Deactivated successfully|Failed with result", text):
            found = at
    return found


def journal(since: float, until: float, seconds: float, unit: str = _host.UNIT) -> Iterator[str]:
    """The unit's log lines of a time, no more than MOST_LINES of them and for no longer than `seconds`."""
    command = ["journalctl", f"--unit={unit}", "--output=short-unix", "--no-pager", "--quiet"]
    command += [f"--since=@{since:.6f}", f"--until=@{until:.6f}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace"
    ) as process:
        watch = threading.Timer(max(0.1, seconds), process.kill)
        watch.start()
        try:
            yield from (line.rstrip("\n") for line in itertools.islice(process.stdout or (), MOST_LINES))
        finally:
            watch.cancel()
            process.kill()


def measured(stored: Iterable[Mapping[str, Any]], releases: Iterable[str]) -> list[dict[str, Any]]:
    """The kept figures of the releases' starts, oldest first."""
    wanted = set(releases)
    found = [
        {"release": start["release"], **{name: start.get(name) for name in MEASURED}}
        for content in stored
        for start in content.get("starts") or []
        if start.get("release") in wanted
    ]
    return sorted(found, key=lambda start: start["began"] or 0)
