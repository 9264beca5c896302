# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of rollouts, on the host that keeps their journals and their lock: the first proxy.

Private to this collection: may change at any time. Host-side, standard library only. Reads only.
"""

from __future__ import annotations

from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _exporter, _journal, _rollout_figures
from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family


def look(folder: str) -> list[Family]:
    known = _journal.rollouts(folder)
    newest = known[-1] if known else ""
    events = _journal.read(folder, newest) if newest else []
    return _rollout_figures.families(newest, events, _journal.lock_holder(folder), len(known))


def start(config: dict[str, Any]) -> _exporter.Collect:
    return lambda: look(config["rollouts"])


def main() -> int:
    """Entry point."""
    return _exporter.run("rollout", start)
