# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command, a script or a cron table would do to an engine, from its text.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OURS, OTHER = "ours", "other"
_ENGINE = re.compile(
    r"\bvllm\s+serve\b|\bvllm\.entrypoints\b|\bvllm-openai\b|\b(?:launch-cluster|run-recipe)\.(?:sh|py)\b"
    r"|\b(?:docker|podman|nerdctl)\s+(?:container\s+)?(?:run|create)\b[^\n]*vllm|\bsparkrun\s+run\b"
)
_COMPOSED = re.compile(r"^services:\s*$(?:.|\n)*^\s+image:\s*\S*vllm", re.MULTILINE)
_PART_OF_A_PAIR = re.compile(r"--headless\b|--node-rank\b|--nnodes\b|\bray\s+start\b|\blaunch-cluster\b")
_PORTS = (
    re.compile(r"--port[=\s]+[\"']?(\d+)"),
    re.compile(r"(?:\s-p|--publish)[=\s]+[\"']?(?:[\d.]+:)?(\d+):\d+"),
    re.compile(r"^\s*-\s*[\"']?(?:[\d.]+:)?(\d+):\d+[\"']?\s*$", re.MULTILINE),
)
# What can start or stop a unit; the names behind it up to the end of the command.
_UNIT_VERBS = re.compile(
    r"\bsystemctl\b[^\n;|&]*?\b(?:start|restart|try-restart|reload-or-restart|stop|kill|isolate|enable|reenable|unmask|disable|mask)\b"
    r"(?P<names>[^\n;|&]*)|(?<![.\w-])service[ \t]+(?P<name>\S+)[ \t]+(?:start|stop|restart)\b"
)
_CONTAINER_VERBS = re.compile(
    r"\b(?:docker|podman|nerdctl)\s+(?:container\s+)?(?:start|restart|stop|kill|rm|unpause|pause|update)\b(?P<names>[^\n;|&]*)"
)
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?\w+=[\"']?(?P<value>[^\"'\n]*)", re.MULTILINE)
_UNIT_NAME = re.compile(r"(?<![\w./-])([\w@:.-]+\.(?:service|timer|path|socket))\b")


def flat(text: str) -> str:
    """Without comments, and each command on one line."""
    joined = re.sub(r"\\\r?\n", " ", text)
    return "\n".join(line for line in joined.splitlines() if not line.lstrip().startswith(("#", ";")))


def engine(text: str, port: int) -> str:
    """OURS when it runs an engine on our port or as a part of a pair, OTHER for one on another port, empty for none."""
    if not _ENGINE.search(text) and not _COMPOSED.search(text):
        return ""
    ports = {int(found) for pattern in _PORTS for found in pattern.findall(text)}
    return OURS if not ports or port in ports or _PART_OF_A_PAIR.search(text) else OTHER


def _has_name(words: str, name: str) -> bool:
    return re.search(rf"(?<![\w./@-]){re.escape(name)}(?![\w./@-])", words) is not None


def short(unit: str) -> str:
    return unit[: -len(".service")] if unit.endswith(".service") else unit


def commands_unit(text: str, unit: str) -> bool:
    """Whether it starts, stops, enables or disables this unit: by name, or by a variable that has the name."""
    verbs = list(_UNIT_VERBS.finditer(text))
    spoken = [match["names"] or match["name"] or "" for match in verbs]
    if any(_has_name(words, name) for words in spoken for name in (unit, short(unit))):
        return True
    assigned = [name for match in _ASSIGNED.finditer(text) for name in match["value"].split()]
    return any("$" in words for words in spoken) and (unit in assigned or short(unit) in assigned)


def commands_container(text: str, container: str) -> bool:
    return any(_has_name(match["names"], container) for match in _CONTAINER_VERBS.finditer(text))


def commands_others(text: str, known: Iterable[str], engines: Iterable[str]) -> bool:
    """Whether it starts or stops units that have nothing to do with an engine too, as a layer that runs a whole machine does."""
    named = set(_UNIT_NAME.findall(text)) | {
        f"{word}.service" for match in _UNIT_VERBS.finditer(text) for word in (match["names"] or "").split()
    }
    return bool((named & set(known)) - set(engines) - {"docker.service", "containerd.service"})


def mentions(text: str, unit: str, container: str, port: int) -> list[str]:
    """What of an engine it names without doing anything to it."""
    found = [unit] if re.search(rf"(?<![\w.@-]){re.escape(unit)}(?![\w.-])", text) else []
    if re.search(
        rf"\b(?:docker|podman)\b[^\n;|&]*\b(?:exec|logs|inspect|stats)\b[^\n;|&]*(?<![\w./-]){container}(?![\w./-])",
        text,
    ):
        found.append(f"container {container}")
    if re.search(rf"(?:[\w\]]:|--port[= ]){port}(?!\d)", text):
        found.append(f"port {port}")
    return found
