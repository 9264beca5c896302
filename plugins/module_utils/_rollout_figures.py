# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where rollouts stand, from the lock and the newest journal, for Prometheus.

Private to this collection: may change at any time. Host-side, standard library only, without I/O. Times are given as they are,
in seconds since the epoch: whoever asks takes the difference, so a program that hangs does not make them look young.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family, gauge

Event = Mapping[str, Any]


def _last(events: Sequence[Event], step: str) -> Event | None:
    return next((event for event in reversed(events) if event.get("step") == step), None)


def families(rollout: str, events: Sequence[Event], lock: Mapping[str, Any] | None, count: int) -> list[Family]:
    """All figures. `rollout` and `events` are the newest journal's; there is none on a site that is new."""
    lock = lock or {}
    begin, end = _last(events, "begin") or {}, _last(events, "end") or {}
    halfway = bool(begin) and not end and lock.get("rollout") != rollout
    state = "open" if lock.get("rollout") == rollout else end.get("result") or "left"
    about = {key: str(begin.get(key) or "") for key in ("verb", "path", "topology")}
    return [
        gauge("gb10_vllm_rollout_open", "Whether somebody holds the lock of this site.", int(bool(lock))),
        gauge("gb10_vllm_rollout_lock_timestamp_seconds", "Since when the lock is held.", lock.get("since")),
        gauge(
            "gb10_vllm_rollout_seen_timestamp_seconds",
            "Last sign of life of the rollout that holds it.",
            lock.get("seen"),
        ),
        gauge("gb10_vllm_rollout_quiet_seconds", "For how long that rollout may be silent.", lock.get("quiet_seconds")),
        gauge(
            "gb10_vllm_rollout_left_halfway",
            "Whether the newest rollout has neither an end nor the lock.",
            int(halfway),
        ),
        gauge("gb10_vllm_rollout_begin_timestamp_seconds", "When the newest rollout began.", begin.get("time")),
        gauge("gb10_vllm_rollout_end_timestamp_seconds", "When the newest rollout ended.", end.get("time")),
        gauge(
            "gb10_vllm_rollout_info",
            "The newest rollout.",
            1 if begin else None,
            rollout=rollout,
            state=state,
            **about,
        ),
        Family("gb10_vllm_rollouts", "gauge", "Journals that are kept.", [({}, count)], [""]),
    ]
