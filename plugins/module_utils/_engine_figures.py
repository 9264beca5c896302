# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an engine's own page does not say, for Prometheus: its release, its unit, its cache against the plan, who walks past the proxy.

Private to this collection: may change at any time. Host-side, standard library only, without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family, gauge


def newest_start(kept: Iterable[Mapping[str, Any]], release: str) -> Mapping[str, Any]:
    """The figures of the newest start of this release, empty when there are none."""
    starts = [start for content in kept for start in content.get("starts", []) if start.get("release") == release]
    return max(starts, key=lambda start: start.get("began") or 0, default={})


def families(
    copy: str,
    release: str | None,
    record: Mapping[str, Any] | None,
    unit: Mapping[str, str],
    start: Mapping[str, Any],
    paused: str,
) -> list[Family]:
    """All figures of one engine host.

    Args:
        copy: inventory name of the host.
        release: id of the current release, None without one.
        record: that release's manifest.
        unit: properties of the engine's unit.
        start: what was measured at the newest start of this release.
        paused: why nothing acts by itself here, empty when it may.
    """
    record = record or {}
    serves = bool(record) and record.get("rank") == 0
    about = {key: str(record.get(key, "")) for key in ("topology", "rank", "served_model_name")}
    return [
        gauge("gb10_vllm_copy_expected", "Whether an engine should answer on this host.", int(serves), copy=copy),
        gauge(
            "gb10_vllm_release_info",
            "The current release.",
            1 if release else None,
            copy=copy,
            release=release or "",
            image=str(record.get("digest", ""))[:12],
            **about,
        ),
        gauge(
            "gb10_vllm_unit_active",
            "Whether the engine's unit is active.",
            int(unit.get("ActiveState") == "active"),
            copy=copy,
        ),
        gauge(
            "gb10_vllm_unit_restarts",
            "How often systemd has started the engine again since a person or a rollout did.",
            float(unit["NRestarts"]) if unit.get("NRestarts", "").isdigit() else None,
            copy=copy,
        ),
        gauge("gb10_vllm_kv_requests", "Full requests that fit into the cache.", start.get("concurrency"), copy=copy),
        gauge(
            "gb10_vllm_kv_planned_requests",
            "Full requests that the plan expects to fit.",
            start.get("planned_requests"),
            copy=copy,
        ),
        gauge("gb10_vllm_kv_tokens", "Tokens that fit into the cache.", start.get("tokens"), copy=copy),
        gauge(
            "gb10_vllm_paused", "Whether somebody asked that nothing acts by itself here.", int(bool(paused)), copy=copy
        ),
    ]
