# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Journals of rollouts, and what hosts know of them, for tests of the report."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

BEGAN = 1_780_000_000.0
PAIR, COPIES = "split-0123456789ab", "replicated-ba9876543210"


def begin(
    hosts: Sequence[str] = ("spark1", "spark2"), path: str = "switch", serving: Sequence[str] = ("spark1",), **more: Any
) -> dict[str, Any]:
    topology = more.pop("topology", "replicated")
    plans = {
        name: {"name": name, "serving": name in serving, "start": True, "back": f"{PAIR}-{name}"} for name in hosts
    }
    return {
        "time": BEGAN, "host": "proxy1", "step": "begin", "result": "ok", "verb": "cutover", "path": path, "topology": topology,
        "words": "Switch from split to replicated: the old engine is drained and stopped on every host, then all hosts start at once.",
        "hosts": plans, "targets": {name: f"{COPIES}-{name}" for name in hosts}, "before": {name: f"{PAIR}-{name}" for name in hosts},
        "resumes": "", **more,
    }  # fmt: skip


def step(at: float, name: str, host: str, **more: Any) -> dict[str, Any]:
    return {"time": BEGAN + at, "host": host, "step": name, "result": "ok", **more}


def served(name: str, began: float, load: float, soak: float = 60.0) -> list[dict[str, Any]]:
    """A start that comes to an end: the lines as roles/rollout writes them, the admission in one piece."""
    ready = began + load
    return [
        step(began, "started", name, to=f"{COPIES}-{name}"),
        step(ready + 2.5, "loaded", name, seconds=load),
        step(ready + 1.9, "passed", name),
        step(ready + 2.1, "admitted", name, to=f"{COPIES}-{name}", lost_proxies=[]),
        step(ready + 3 + soak, "soaked", name, seconds=soak),
    ]


def ended(at: float, result: str = "ok", **more: Any) -> dict[str, Any]:
    requests = {"held": 41, "turned_away": 0, "longest_seconds": 128.4}
    return step(
        at,
        "end",
        "proxy1",
        result=result,
        **{"serving": ["spark1", "spark2"], "reason": "", "requests": requests, **more},
    )


def switch() -> list[dict[str, Any]]:
    """A pair becomes two copies; they load side by side."""
    first, second = served("spark1", 21.0, 118.0), served("spark2", 18.0, 131.0)
    both = sorted(first + second, key=lambda event: event["time"] if event["step"] != "loaded" else event["time"] - 0.7)
    return [
        begin(),
        step(3.0, "withdrawn", "spark1"),
        step(9.5, "drained", "spark1", seconds=6.4),
        step(17.8, "stopped", "spark2", seconds=7.9, **{"from": PAIR}),
        step(20.8, "stopped", "spark1", seconds=11.0, **{"from": PAIR}),
        *both,
        step(216.0, "settled", "proxy1", serving=["spark1", "spark2"], failed={}, restore=False),
        ended(216.5),
    ]


def rolling(hosts: Sequence[str] = ("spark1", "spark2")) -> list[dict[str, Any]]:
    events = [begin(hosts, path="rolling", serving=hosts)]
    at = 2.0
    for name in hosts:
        events += [
            step(at, "withdrawn", name),
            step(at + 4, "drained", name, seconds=4.0),
            step(at + 12, "stopped", name, seconds=7.5),
            *served(name, at + 12.5, 90.0, 60.0),
        ]
        at += 170
    return [*events, step(at, "settled", "proxy1", serving=list(hosts), failed={}), ended(at + 1, serving=list(hosts))]


REASON = "The engine refused its memory plan: 5.20 GiB of KV cache is needed for one request of 262144 tokens, 3.90 GiB is there"


def failed() -> list[dict[str, Any]]:
    """No copy comes up, and the pair is brought back."""
    events = switch()[:5]
    for name in ("spark1", "spark2"):
        events += [
            step(21, "started", name, to=f"{COPIES}-{name}"),
            step(65, "failed", name, result="failed", reason=REASON, to=f"{COPIES}-{name}"),
        ]
    back = [
        step(80, "started", "spark1", to=f"{PAIR}-spark1"),
        step(80, "started", "spark2", to=f"{PAIR}-spark2"),
        step(170, "loaded", "spark2", seconds=89),
        step(172, "loaded", "spark1", seconds=90),
        step(171, "passed", "spark1"),
        step(171.5, "admitted", "spark1", to=f"{PAIR}-spark1"),
    ]
    said = f"Rollout failed on spark1 and spark2.\nNothing of the new release served, so the release before was brought back.\nspark1: {REASON}"
    failures = dict.fromkeys(("spark1", "spark2"), REASON)
    return [
        *events,
        step(66, "settled", "proxy1", result="failed", serving=[], failed=failures, restore=True),
        *back,
        ended(235, "failed", serving=["spark1"], reason=said),
    ]


def killed() -> list[dict[str, Any]]:
    """The controller is gone while both copies load."""
    return [
        *switch()[:5],
        step(18, "started", "spark2", to=f"{COPIES}-spark2"),
        step(21, "started", "spark1", to=f"{COPIES}-spark1"),
    ]


def resumed() -> list[dict[str, Any]]:
    """The rollout that goes on with the killed one, 300 s later: the copies run already."""
    late = [
        begin(verb="resume", path="rolling", serving=(), resumes="20260528-202640-cutover"),
        step(4, "loaded", "spark1", seconds=0.4),
        step(3.5, "passed", "spark1"),
        step(3.6, "admitted", "spark1", to=f"{COPIES}-spark1"),
        step(8, "loaded", "spark2", seconds=0.4),
        step(7.5, "passed", "spark2"),
        step(7.6, "admitted", "spark2", to=f"{COPIES}-spark2"),
        ended(70),
    ]
    return [{**event, "time": event["time"] + 300} for event in late]


def record(topology: str, name: str) -> dict[str, Any]:
    split = topology == "split"
    flags = [
        ["--gpu-memory-utilization", "0.78" if split else "0.74"],
        ["--max-model-len", "262144"],
        ["--enable-prefix-caching"],
    ]
    flags += [["--tensor-parallel-size", "2"], ["--nnodes", "2"]] if split else [["--max-num-seqs", "24"]]
    return {
        "id": f"{PAIR if split else COPIES}-{name}", "topology": topology, "rank": 0, "ranks": 2 if split else 1,
        "image": f"registry.example:5000/eugr/spark-vllm-b12x@sha256:{('12ab' if split else 'f00d') * 16}", "model": "/models/some-large-model-nvfp4",
        "revision": "", "served_model_name": "large", "command": [["serve", "/models/some-large-model-nvfp4"], *flags],
        "environment": {"VLLM_USE_B12X": "1", "HF_TOKEN": "(hidden)", **({} if split else {"VLLM_NO_USAGE_STATS": "1"})},
        "volumes": [], "container_options": ["--ipc=host"], "mods": {}, "budgets": {"expected_load": 400},
    }  # fmt: skip


PHASES = [
    "starting the container", "importing", "creating the engine", "loading weights", "loaded weights", "compiling", "sizing the KV cache",
    "warming up", "opening the port", "ready",
]  # fmt: skip


def traces(name: str, began: float, load: float) -> dict[str, Any]:
    shares = (0, 0.02, 0.1, 0.14, 0.62, 0.65, 0.8, 0.84, 0.96, 1.0)
    marks = [{"phase": phase, "at": BEGAN + began + share * load} for phase, share in zip(PHASES, shares, strict=True)]
    figures = {"kv_bytes": int(13.2 * 2**30), "max_model_len": 262144, "verdict": "ok"}
    now = {
        "release": f"{COPIES}-{name}",
        "began": BEGAN + began + load,
        "planned_requests": 4.1,
        "concurrency": 3.98,
        "tokens": 1_043_000,
    }
    old = {
        "release": f"{PAIR}-{name}",
        "began": BEGAN - 90_000,
        "planned_requests": 2.9,
        "concurrency": 2.95,
        "tokens": 773_000,
    }
    return {
        "records": {kind["id"]: kind for kind in (record("split", name), record("replicated", name))},
        "starts": [{"began": BEGAN + began, "phases": marks}],
        "stops": [BEGAN + 14.0],
        "memory": [{**old, **figures}, {**now, **figures}],
    }


def classes(middle: int, count: int) -> dict[str, int]:
    return {str(middle - 2): count // 4, str(middle): count // 2, str(middle + 5): count - count // 4 - count // 2}


def counted() -> dict[str, Any]:
    """What an access log of ten minutes says."""
    drawn = random.Random(7)
    ends = {"before": (-597.0, 3.0), "during": (3.0, 151.1), "window": (3.0, 141.1), "after": (151.1, 216.0)}
    rates = {"before": 4, "during": 0.4, "window": 0.1, "after": 8}
    spans = {}
    for name, (first, last) in ends.items():
        count = int(rates[name] * (last - first))
        spans[name] = {
            "from": BEGAN + first, "to": BEGAN + last, "requests": count + 2, "statuses": {"200": count, "503": 2},
            "copies": {"spark1": count} if name == "before" else {"spark1": count // 2, "spark2": count - count // 2},
            "seconds_classes": classes(8, count), "first_byte_classes": classes(-10, count),
        }  # fmt: skip
    series = [(0 if 3 <= at <= 141 else drawn.randint(20, 34) * (2 if at > 150 else 1)) for at in range(-597, 216, 7)]
    failures = [2 if 100 < at < 107 else 0 for at in range(-597, 216, 7)]
    return {
        "found": True, "cut": False, "unreadable": 0, "spans": spans,
        "series": {"from": BEGAN - 597, "step_seconds": 7, "answered": series, "failed": failures},
    }  # fmt: skip


def history(events: list[dict[str, Any]], rollout: str = "20260528-202640-cutover", **more: Any) -> dict[str, Any]:
    return {"rollout": rollout, "events": events, "earlier": [], "kept": None, "lock": None, "now": BEGAN + 216, **more}


def earlier() -> list[dict[str, Any]]:
    return [
        {"rollout": "20260501-100000-cutover", "events": failed()},
        {"rollout": "20260510-090000-cutover", "events": switch()},
        {"rollout": "20260520-150000-restart", "events": rolling()},
    ]
