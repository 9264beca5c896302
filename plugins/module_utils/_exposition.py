# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of a host as the text that Prometheus reads.

Private to this collection: may change at any time. Host-side, standard library only, without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass
class Family:
    """All series of one name. A histogram's rows carry the endings of their names in `endings`."""

    name: str
    kind: str
    words: str
    rows: list[tuple[Mapping[str, str], float]] = field(default_factory=list)
    endings: list[str] = field(default_factory=list)

    def add(self, value: float, ending: str = "", **labels: str) -> None:
        self.rows.append((labels, value))
        self.endings.append(ending)


def gauge(name: str, words: str, value: float | None = None, **labels: str) -> Family:
    """A family with one series, or with none when there is no value: unknown is not 0."""
    family = Family(name, "gauge", words)
    if value is not None:
        family.add(value, **labels)
    return family


def render(families: Iterable[Family]) -> str:
    """The page. A family without a series is left out."""
    lines: list[str] = []
    for family in families:
        if not family.rows:
            continue
        lines += [f"# HELP {family.name} {family.words}", f"# TYPE {family.name} {family.kind}"]
        for (labels, value), ending in zip(family.rows, family.endings, strict=True):
            told = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            lines.append(
                f"{family.name}{ending}{{{told}}} {_number(value)}"
                if told
                else f"{family.name}{ending} {_number(value)}"
            )
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    """Whole numbers in full: what is counted stays exact."""
    return str(int(value)) if value == int(value) else repr(float(value))
