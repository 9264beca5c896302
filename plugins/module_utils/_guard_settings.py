# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard is told, and how its figures are told to a monitor.

Private to this collection: may change at any time. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._guard import GIB, Bounds
from ._guard_hold import Rules

ACTS = ("drop", "refuse", "stop", "kill", "start")
_WORDS = {
    "available_bytes": "MemAvailable as the memory guard sees it.",
    "floor_bytes": "MemAvailable at which the memory guard acts.",
    "warned": "Whether less is available than the bound for warnings.",
    "engine_held": "Whether the engine is kept down for want of memory.",
    "gave_up": "Whether the engine is kept down until a person starts it.",
}


@dataclass(frozen=True)
class Settings:
    """The configuration file. `meminfo` and `cgroup` (its limit less its usage is taken for MemAvailable) are for tests."""

    warn_gib: float
    floor_gib: float
    kill_gib: float
    free_gib: float = 2
    free_seconds: float = 5
    step_seconds: float = 3
    stop_seconds: float = 30
    resume_gib: float = 0
    resume_seconds: float = 60
    restarts: int = 2
    restart_window_seconds: float = 7200
    hook: list[str] = field(default_factory=list)
    unit: str = "vllm.service"
    container: str = "vllm"
    base_dir: str = "/etc/gb10-vllm"
    state_dir: str = "/var/lib/gb10-vllm"
    run_dir: str = "/run/gb10-vllm"
    meminfo: str = "/proc/meminfo"
    cgroup: str = ""

    def bounds(self) -> Bounds:
        return Bounds(
            warn=round(self.warn_gib * GIB),
            floor=round(self.floor_gib * GIB),
            kill=round(self.kill_gib * GIB),
            free=round(self.free_gib * GIB),
            free_seconds=self.free_seconds,
            step_seconds=self.step_seconds,
            stop_seconds=self.stop_seconds,
        )

    def rules(self) -> Rules:
        return Rules(self.resume_seconds, self.restarts, self.restart_window_seconds)


def metrics(gauges: Mapping[str, int], acts: Mapping[str, int]) -> str:
    """The text for the node exporter."""
    lines = []
    for name, value in gauges.items():
        lines.append(f"# HELP gb10_vllm_guard_{name} {_WORDS[name]}")
        lines.append(f"# TYPE gb10_vllm_guard_{name} gauge")
        lines.append(f"gb10_vllm_guard_{name} {value}")
    lines.append("# HELP gb10_vllm_guard_acts_total What the memory guard did.")
    lines.append("# TYPE gb10_vllm_guard_acts_total counter")
    lines += [f'gb10_vllm_guard_acts_total{{act="{act}"}} {acts.get(act, 0)}' for act in ACTS]
    return "\n".join(lines) + "\n"
