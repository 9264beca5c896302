# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switches the links `current` and `previous` of a host, each in one step.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host

RUNNING = ("active", "activating", "deactivating", "reloading")


def switch(base: str, wanted: str, then_previous: str | None, write: bool) -> dict[str, Any]:
    """Make `wanted` the current release, and `then_previous` the one before: None for the one that was current, empty for none.

    HostError says why not: the release is not on this host, or the engine's unit runs. Returns `changed`, `current`, `previous`
    and a `diff`; with `write` false only that.
    """
    current, previous = _host.linked_release(base, "current"), _host.linked_release(base, "previous")
    changed = current != wanted
    before = current if then_previous is None else then_previous or None
    after = (wanted, before if changed else previous)
    if changed and write:
        if not (Path(base) / "releases" / wanted / "start").is_file():
            raise _host.HostError(
                f"release {wanted} is not on this host ({base}/releases); stage it first (playbook site.yml)"
            )
        state = _host.unit_state()
        if state["ActiveState"] in RUNNING:
            raise _host.HostError(
                f"{_host.UNIT} is {state['ActiveState']} on release {current}; it is stopped before the release is switched "
                f"(playbook cutover.yml does both)"
            )
        if before:
            # previous first: a crash between the two steps leaves both links on releases that ran.
            _host.link_atomically(f"releases/{before}", f"{base}/previous")
        elif previous:
            os.unlink(f"{base}/previous")
        _host.link_atomically(f"releases/{wanted}", f"{base}/current")
        _host.run(["systemctl", "daemon-reload"])
    return {
        "changed": changed,
        "current": after[0],
        "previous": after[1] or "",
        "diff": {
            "before": f"current: {current}\nprevious: {previous}\n",
            "after": f"current: {after[0]}\nprevious: {after[1]}\n",
        },
    }
