# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An engine that only counts, and its metrics page as three versions of vLLM print it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

LATENCY = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0)
FIRST = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
)
BETWEEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)


@dataclass(frozen=True)
class Version:
    """What differs between versions. Where two names are given, the version prints both."""

    kv_use: tuple[str, ...]
    prefix: tuple[str, ...]
    between: tuple[str, ...]
    bounds: Sequence[float] = BETWEEN
    reasons: tuple[str, ...] = ("stop", "length", "abort")


VERSIONS = {
    "0.8.5": Version(
        ("gpu_cache_usage_perc",), ("gpu_prefix_cache",), ("time_per_output_token_seconds",), BETWEEN[:13]
    ),
    "0.10.2": Version(
        ("gpu_cache_usage_perc", "kv_cache_usage_perc"),
        ("gpu_prefix_cache", "prefix_cache"),
        ("time_per_output_token_seconds", "inter_token_latency_seconds"),
    ),
    "0.33.0": Version(
        ("kv_cache_usage_perc",),
        ("prefix_cache",),
        ("inter_token_latency_seconds", "request_time_per_output_token_seconds"),
        reasons=("stop", "length", "abort", "error", "repetition"),
    ),
}


@dataclass
class Engine:
    """One engine of a process: what it has counted."""

    running: float = 0
    waiting: float = 0
    kv_use: float = 0.0
    prompt: float = 0
    generation: float = 0
    prefix: tuple[int, int] = (0, 0)
    finished: dict[str, int] = field(default_factory=dict)
    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    drafted: tuple[int, int, int] | None = None

    def serve(self, prompt: int, tokens: int, first: float = 0.2, each: float = 0.02, reason: str = "stop") -> None:
        self.prompt += prompt
        self.generation += tokens
        self.finished[reason] = self.finished.get(reason, 0) + 1
        self.first.append(first)
        self.between += [each] * (tokens - 1)


@dataclass
class Process:
    """One server process, with one engine or several; `apis` servers of it hide when it began."""

    version: str = "0.33.0"
    started: float = 1_780_000_000.25
    engines: list[Engine] = field(default_factory=lambda: [Engine()])
    apis: int = 1

    def page(self) -> str:
        version, lines = VERSIONS[self.version], []

        def series(name: str, kind: str, rows: Iterable[tuple[str, float]]) -> None:
            lines.extend([f"# HELP vllm:{name} Words about it.", f"# TYPE vllm:{name} {kind}"])
            lines.extend(
                f"vllm:{name}{'_total' if kind == 'counter' else ''}{{{labels}}} {value}" for labels, value in rows
            )

        def each(name: str, kind: str, figure: str) -> None:
            series(name, kind, [(labels, float(getattr(engine, figure))) for labels, engine in self._named()])

        each("num_requests_running", "gauge", "running")
        each("num_requests_waiting", "gauge", "waiting")
        for name in version.kv_use:
            each(name, "gauge", "kv_use")
        for name in version.prefix:
            for part, place in (("queries", 0), ("hits", 1)):
                series(f"{name}_{part}", "counter", [(la, float(en.prefix[place])) for la, en in self._named()])
        each("prompt_tokens", "counter", "prompt")
        each("generation_tokens", "counter", "generation")
        series("num_preemptions", "counter", [(labels, 0.0) for labels, _engine in self._named()])
        if self.apis == 1:
            born = [(labels, self.started + 20.123456 + i) for i, (labels, _engine) in enumerate(self._named())]
            series("generation_tokens_created", "gauge", born)
            lines.append(f"process_start_time_seconds {self.started}")
        reasons = [(reason, la, en.finished.get(reason, 0)) for la, en in self._named() for reason in version.reasons]
        series(
            "request_success", "counter", [(f'{la},finished_reason="{reason}"', float(n)) for reason, la, n in reasons]
        )
        for place, name in enumerate(("num_drafts", "num_draft_tokens", "num_accepted_tokens")):
            known = [(la, float(en.drafted[place])) for la, en in self._named() if en.drafted]
            if known:
                series(f"spec_decode_{name}", "counter", known)
        for name, bounds, figure in [
            ("time_to_first_token_seconds", FIRST, "first"),
            *((name, version.bounds, "between") for name in version.between),
            ("e2e_request_latency_seconds", LATENCY, "first"),
            ("request_queue_time_seconds", LATENCY, "first"),
        ]:
            lines.extend([f"# HELP vllm:{name} Words about it.", f"# TYPE vllm:{name} histogram"])
            for labels, engine in self._named():
                lines.extend(buckets(name, labels, bounds, getattr(engine, figure)))
        return "\n".join(lines) + "\n"

    def _named(self) -> list[tuple[str, Engine]]:
        return [
            (f'engine="{number}",model_name="a \\"model\\" }} of 1"', engine)
            for number, engine in enumerate(self.engines)
        ]


def buckets(name: str, labels: str, bounds: Sequence[float], observed: Sequence[float]) -> list[str]:
    """A histogram as it is printed."""
    counts = [0] * (len(bounds) + 1)
    for value in observed:
        counts[bisect_left(bounds, value)] += 1
    rows, sofar = [], 0
    for bound, count in zip([*bounds, math.inf], counts, strict=True):
        sofar += count
        le = "+Inf" if bound == math.inf else str(float(bound))
        rows.append(f'vllm:{name}_bucket{{{labels},le="{le}"}} {float(sofar)}')
    return [
        *rows,
        f"vllm:{name}_count{{{labels}}} {float(sofar)}",
        f"vllm:{name}_sum{{{labels}}} {float(sum(observed))}",
    ]


def one(version: str = "0.33.0", **figures: Any) -> Process:
    """A process with one engine that has these figures."""
    return Process(version, engines=[Engine(**figures)])
