# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has that could act on an engine, what is ours of it, and what is said of the rest.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase

from . import _foreign_text

RUNNING = ("active", "activating", "reloading", "deactivating")
ENABLED = ("enabled", "enabled-runtime", "alias", "generated")


@dataclass(frozen=True)
class Unit:
    """One unit of the system, or of an account's own manager (`account`). `text` is what it runs, with the scripts it names.

    `triggers` are units that it starts as a timer, path or socket; `pulled_by` units that start it as theirs.
    """

    name: str
    text: str = ""
    account: str = ""
    active: str = "inactive"
    enabled: str = "disabled"
    masked: bool = False
    conflicts: frozenset[str] = frozenset()
    triggers: frozenset[str] = frozenset()
    pulled_by: frozenset[str] = frozenset()
    pulls: frozenset[str] = frozenset()
    holds_port: bool = False

    @property
    def key(self) -> str:
        """How it is named to people and in the record: a unit of an account has the account in front."""
        return f"{self.account}/{self.name}" if self.account else self.name

    @property
    def is_running(self) -> bool:
        return self.active in RUNNING

    @property
    def is_enabled(self) -> bool:
        return self.enabled in ENABLED


@dataclass(frozen=True)
class Container:
    """One container of the container engine. `text` is its image and command, `policy` its restart policy."""

    name: str
    text: str
    policy: str = "no"
    running: bool = False
    removed_at_end: bool = False
    ports: frozenset[int] = frozenset()
    holds_port: bool = False
    has_gpu: bool = False


@dataclass(frozen=True)
class Cron:
    """One command of a cron table; `where` is FILE:LINE."""

    where: str
    text: str


@dataclass(frozen=True)
class Our:
    """What is ours: never a finding."""

    port: int = 8000
    unit: str = "vllm.service"
    container: str = "vllm"
    prefix: str = "gb10-vllm-"

    def is_unit(self, unit: Unit) -> bool:
        return not unit.account and (unit.name == self.unit or unit.name.startswith(self.prefix))


@dataclass
class Finding:
    """`silence`: the switch stops and disables it. `refused` says why that cannot be done, and what can."""

    kind: str
    name: str
    what: str = ""
    acts: bool = False
    live: bool = False
    named: bool = False
    enabled: str = ""
    active: str = ""
    startable_by: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    would: str = ""
    refused: str = ""
    text: str = ""

    @property
    def silence(self) -> bool:
        return self.live and (self.acts or self.named) and not self.refused

    def as_dict(self) -> dict[str, object]:
        return {**asdict(self), "silence": self.silence}


def matches(name: str, patterns: Sequence[str]) -> bool:
    """A person may leave the `.service` and the account out."""
    last = name.rpartition("/")[2]
    return any(
        fnmatchcase(said, pattern)
        for said in (name, last, _foreign_text.short(name), _foreign_text.short(last))
        for pattern in patterns
    )
