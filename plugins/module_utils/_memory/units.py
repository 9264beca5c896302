# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units and refusals of the memory plan. Private to this collection: may change at any time."""

from __future__ import annotations

GIB = 1 << 30
"""Bytes in one GiB. Every size inside the plan is a whole number of bytes; GiB only appear in texts."""


class PlanError(ValueError):
    """A plan cannot be made.

    Args:
        message: what is wrong and the way out, for a person.
        key: the configuration key or input that stands in the way, empty if there is no single one.
    """

    def __init__(self, message: str, key: str = "") -> None:
        super().__init__(message)
        self.key = key


class ShapeRefused(PlanError):
    """The model's configuration is incomplete or contradicts itself. ``key`` names the entry."""


class LayoutUnknown(PlanError):
    """The configuration is understood, its cache layout is not: plan it from the figures of an earlier start."""


def from_gib(value: float) -> int:
    """Bytes of a size given in GiB (any sign), rounded to the nearest byte."""
    return round(value * GIB)


def to_gib(size: int) -> float:
    """GiB of a size in bytes."""
    return size / GIB


def say_gib(size: int, digits: int = 1) -> str:
    """A size in bytes as text, for example ``"18.6 GiB"``; in MiB where the digits would show nothing."""
    if 0 < abs(size) * 10**digits < GIB:
        return f"{size / (1 << 20):.1f} MiB"
    return f"{size / GIB:.{digits}f} GiB"


def ceil_div(value: int, unit: int) -> int:
    """The smallest number of whole units (unit >= 1) that hold a value."""
    return -(-value // unit)


def hundredths_below(size: int, total: int) -> int:
    """The largest utilization whose share of ``total`` is at most ``size``.

    Args:
        size: bytes that may be taken; negative counts as none.
        total: bytes of the device as the engine sees it, more than 0.

    Returns:
        Whole hundredths, so 74 stands for 0.74. Never rounded up, and exact: no floating point is involved.
    """
    return max(0, size * 100 // total)


def hundredths_above(size: int, total: int) -> int:
    """The smallest utilization, in whole hundredths, whose share of ``total`` is at least ``size``."""
    return max(0, ceil_div(size * 100, total))


def share(total: int, hundredths: int) -> int:
    """Bytes that the engine requests: ``ceil(total x utilization)``, the rule of its own start-up check."""
    return ceil_div(total * hundredths, 100)
