# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd restarts a unit as it is meant to: a small service for ever, an engine only so often.

Private to this collection: may change at any time. Pure: texts of unit files in, findings in words out.

systemd gives a unit up when it was started `StartLimitBurst` times within `StartLimitIntervalSec`. With its defaults (5 in 10 s) a
service that dies at once is given up for ever after a bad second, and one that loads for minutes never is. So each unit that is
restarted says which of the two it wants:

* `StartLimitIntervalSec=0`: for ever, with a `RestartSec` that keeps it from spinning;
* or a window above burst x (start budget + delay): so many starts that each fail as late as they may are still counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_SECTION = re.compile(r"\[(\w+)\]")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|min|h|)\s*")
_UNITS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 0.001, "min": 60.0, "h": 3600.0}
# What each of them needs to run into its limit at all.
_BOUNDED = ("StartLimitBurst", "RestartSec", "TimeoutStartSec")
SHORTEST_DELAY = 0.1


def read(texts: Iterable[str]) -> dict[str, str]:
    """The last value of each setting as `Section.Name`, of a unit file and its drop-ins in the order in which systemd reads them."""
    found: dict[str, str] = {}
    section = ""
    for line in (line.strip() for text in texts for line in text.splitlines()):
        header = _SECTION.fullmatch(line)
        name, separator, value = line.partition("=")
        if header:
            section = header[1]
        elif separator and not line.startswith(("#", ";")):
            found[f"{section}.{name.strip()}"] = value.strip()
    return found


def seconds(text: str) -> float | None:
    """A span of time as systemd writes it; None for one that is no number, as `infinity`."""
    parts, end = [], 0
    for match in _SPAN.finditer(text):
        if match.start() != end:
            return None
        parts.append(float(match[1]) * _UNITS[match[2]])
        end = match.end()
    return sum(parts) if parts and end == len(text) else None


def problems(name: str, texts: Iterable[str], bounded: bool = False) -> list[str]:
    """What is wrong with the restarts of a unit; `bounded` for one that must not be restarted for ever."""
    settings = read(texts)
    restart = settings.get("Service.Restart", "no")
    if restart == "no":
        if settings.get("Service.Type") == "oneshot":
            return []
        return [f"{name} stays down when it ends: it says no Restart"]
    wrong = [
        f"{name} has {key} in [Service], where systemd ignores it"
        for key in ("StartLimitIntervalSec", "StartLimitBurst")
        if f"Service.{key}" in settings
    ]
    values = {key: seconds(settings.get(f"Unit.{key}", settings.get(f"Service.{key}", ""))) for key in _BOUNDED}
    window, delay = seconds(settings.get("Unit.StartLimitIntervalSec", "")), values["RestartSec"]
    if window is None:
        return [*wrong, f"{name} does not say its StartLimitIntervalSec: 0 to be restarted for ever, or a window"]
    if delay is None or delay < SHORTEST_DELAY:
        return [*wrong, f"{name} does not say a RestartSec of at least {SHORTEST_DELAY} s"]
    if window == 0:
        return [*wrong, f"{name} must not be restarted for ever"] if bounded else wrong
    burst, load = values["StartLimitBurst"], values["TimeoutStartSec"]
    if burst is None or load is None:
        return [*wrong, f"{name} has a window, but does not say StartLimitBurst and TimeoutStartSec"]
    if window <= burst * (load + delay):
        wrong.append(
            f"{name} is never given up: its window of {window:g} s is not above {burst:g} x ({load:g} s start + {delay:g} s delay)"
        )
    return wrong
