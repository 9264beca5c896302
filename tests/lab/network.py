# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's own bridge and the wires of its hosts. Nothing is routed or translated: the lab reaches only itself."""

from __future__ import annotations

import json
from pathlib import Path

from settings import BRIDGE, BRIDGE_ADDRESS, PREFIX_LENGTH, SUFFIX
from shell import LabError, run


def machine(name: str) -> str:
    """What systemd-nspawn calls the host; its cable is named after it."""
    return f"{name}{SUFFIX}"


def wire(name: str) -> str:
    """The outer end of a host's cable, as systemd-nspawn names it."""
    return f"vb-{machine(name)}"


def link_exists(link: str) -> bool:
    return Path("/sys/class/net", link).exists()


def create_bridge() -> None:
    if not link_exists(BRIDGE):
        run(["ip", "link", "add", BRIDGE, "type", "bridge", "forward_delay", "0"])
    run(["ip", "address", "replace", f"{BRIDGE_ADDRESS}/{PREFIX_LENGTH}", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])


def remove_bridge() -> None:
    if link_exists(BRIDGE):
        run(["ip", "link", "delete", BRIDGE])


def remove_wire(name: str) -> None:
    """A killed host can leave its cable behind, and the next start would stumble over it."""
    if link_exists(wire(name)):
        # It may go away by itself in the same moment.
        run(["ip", "link", "delete", wire(name)], check=False)


def set_wire(name: str, up: bool) -> None:
    if not link_exists(wire(name)):
        raise LabError(f"{name} has no wire: it is not running (python3 tests/lab boot {name})")
    run(["ip", "link", "set", wire(name), "up" if up else "down"])


def wire_is_up(name: str) -> bool:
    shown = run(["ip", "-json", "link", "show", "dev", wire(name)], check=False).stdout
    return bool(shown.strip()) and "UP" in json.loads(shown)[0]["flags"]
