# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host's memory: who claims what, and whether a start would be let in. Private to this collection: may change at any time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .units import PlanError, from_gib, hundredths_below, say_gib, share

SYSTEM = from_gib(6.0)
"""Kernel and services of an idle machine. Source: 110 to 117 GiB of 121.7 GiB are available on idle, headless GB10s."""

ENGINE_OUTSIDE = from_gib(15.6)
"""What the engine takes beside its share, under load. Source: public GB10 reports: 8 GiB of device context and driver,
5.6 GiB of host processes and graphs, 2 GiB that the driver keeps after the largest request so far."""

KEEP_FREE = from_gib(5.0)
"""What must stay available after all declared work. Source: guards on GB10 act at 5 to 6 GiB; below, whole machines froze."""

START_MARGIN = from_gib(3.0)
"""Room between the share and the available memory at a start: creating the device context alone takes about 2.6 GiB."""

START_DRIFT = from_gib(0.7)
"""What other work may take while the engine measures the device, where there is other work. Source: 0.5 to 0.9 GiB between
two starts of one model on two machines."""

CEILING = 80
"""Highest utilization in hundredths that is planned without an override. Source: 0.80 is the build's own recipe for a machine
with nothing else on it; 0.85 swapped and 0.90 rebooted the machine."""


@dataclass(frozen=True)
class Claim:
    """Memory that somebody holds or will hold.

    Attributes:
        name: a unit, container or service, as a person knows it.
        size: bytes, at least 0.
    """

    name: str
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise PlanError(f"{self.name}: {say_gib(self.size)} is not an amount of memory", self.name)


@dataclass(frozen=True)
class HostMemory:
    """One host. All sizes in bytes.

    Attributes:
        name: inventory name.
        total: device memory as the engine sees it (119.6 to 121.7 GiB on a GB10): from its last start, or asked of the
            image, or MemTotal. Never the nominal 128 and never a figure of ``nvidia-smi``.
        available: MemAvailable once our own engine is stopped; None before it was read.
        others: other work, declared or its measured peak, by name.
        system: what the idle machine holds.
        engine_outside: what the engine takes beside its share; measured where possible.
        keep_free: what must stay available under load.
        ceiling: highest utilization in hundredths, 1 to 99.
        start_margin: room between share and ``available``.
        start_drift: what others may take while the engine measures; None means the default if there are others.
        engines: utilization in hundredths of further engines on this host, by name.
    """

    name: str
    total: int
    available: int | None = None
    others: tuple[Claim, ...] = ()
    system: int = SYSTEM
    engine_outside: int = ENGINE_OUTSIDE
    keep_free: int = KEEP_FREE
    ceiling: int = CEILING
    start_margin: int = START_MARGIN
    start_drift: int | None = None
    engines: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        if self.total <= 0:
            raise PlanError(f"{self.name}: the total memory is {self.total} bytes", "total")
        if not 1 <= self.ceiling <= 99:
            raise PlanError(f"{self.name}: the ceiling is {self.ceiling} hundredths, expected 1 to 99", "ceiling")
        for key in ("system", "engine_outside", "keep_free", "start_margin", "start_drift", "available"):
            value = getattr(self, key)
            if value is not None and value < 0:
                raise PlanError(f"{self.name}: {key} is {value} bytes, expected at least 0", key)

    @property
    def other_bytes(self) -> int:
        """All other work together."""
        return sum(claim.size for claim in self.others)

    @property
    def drift(self) -> int:
        """Bytes that other work may take while the engine measures."""
        if self.start_drift is not None:
            return self.start_drift
        return START_DRIFT if self.other_bytes else 0

    @property
    def other_engines(self) -> int:
        """Hundredths of further engines on this host."""
        return sum(hundredths for _name, hundredths in self.engines)

    def rest(self, hundredths: int) -> int:
        """What is left for all other work under load at a utilization; negative if nothing is."""
        taken = share(self.total, hundredths + self.other_engines)
        return self.total - taken - self.system - self.engine_outside * (1 + len(self.engines))

    def highest(self) -> tuple[int, str]:
        """The largest utilization in hundredths that this host can give, and what limits it, in words."""
        reserved = self.system + self.engine_outside * (1 + len(self.engines)) + self.other_bytes + self.keep_free
        limits = [
            (self.ceiling - self.other_engines, "the ceiling of a shared machine"),
            (
                hundredths_below(self.total - reserved, self.total) - self.other_engines,
                "what the rest of the box needs",
            ),
        ]
        if self.available is not None:
            free = hundredths_below(self.available - self.start_margin, self.total)
            limits.append((free, "the memory that is available at the start"))
        value, reason = min(limits, key=lambda limit: limit[0])
        return max(0, value), reason


@dataclass(frozen=True)
class Admission:
    """Whether the engine's own start-up check will pass.

    Attributes:
        ok: True if it will.
        need: bytes asked for: ``ceil(total x utilization)``.
        have: bytes available.
        missing: bytes short, 0 if none.
        largest: the largest utilization in hundredths that passes.
        text: one line for a person.
    """

    ok: bool
    need: int
    have: int
    missing: int
    largest: int
    text: str


def admit(host: str, total: int, available: int, hundredths: int, holders: Sequence[Claim] = ()) -> Admission:
    """Predicts the check that the engine makes before it loads anything, on a machine with unified memory.

    Args:
        host: its name, for the text.
        total: device memory as the engine sees it, bytes.
        available: MemAvailable (never MemFree), bytes.
        hundredths: utilization in hundredths.
        holders: who holds memory now, largest first, for the text.
    """
    need = share(total, hundredths)
    missing, largest = max(0, need - available), min(hundredths_below(available, total), 99)
    if not missing:
        text = f"{host}: {hundredths / 100:.2f} needs {say_gib(need, 2)}, {say_gib(available, 2)} are available"
        return Admission(True, need, available, 0, largest, text)
    text = (
        f"{host}: utilization {hundredths / 100:.2f} needs {say_gib(need, 2)}, but only {say_gib(available, 2)} are "
        f"available: {say_gib(missing, 2)} are missing; the largest utilization that fits is {largest / 100:.2f}"
    )
    if holders:
        text += "; the rest is held by " + ", ".join(f"{claim.name} ({say_gib(claim.size)})" for claim in holders[:5])
    return Admission(False, need, available, missing, largest, text)


def check_shares(host: str, total: int, shares: Mapping[str, int], others: int = 0, system: int = 0) -> int:
    """Adds up everything that is planned on one host.

    Args:
        host: its name.
        total: bytes of the device.
        shares: utilization in hundredths of every engine on it, by name.
        others: bytes that other work holds.
        system: bytes reserved for the system.

    Returns:
        Bytes that stay free.

    Raises:
        PlanError: more is planned than there is; the text names every part.
    """
    planned = sum(share(total, part) for part in shares.values()) + others + system
    if planned > total:
        parts = [f"{name} {part / 100:.2f} ({say_gib(share(total, part), 2)})" for name, part in shares.items()]
        parts += [f"{name} {say_gib(size)}" for name, size in (("other work", others), ("system", system)) if size]
        raise PlanError(
            f"{host}: {say_gib(planned, 2)} are planned on {say_gib(total, 2)}: {', '.join(parts)}; lower one of them",
            "utilization",
        )
    return total - planned
