# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Under which address a host is known, and which of its variables says so.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Address(NamedTuple):
    """An address as it was written, and the variable's name for a message."""

    source: str
    text: str


def address_of(
    name: str, values: Mapping[str, Any], variables: Iterable[str] = ("vllm_address", "ansible_host")
) -> Address:
    """The first of the variables that the host sets, else its inventory name."""
    source = next((key for key in variables if values.get(key)), "inventory_hostname")
    return Address(source, str(values.get(source) or name))
