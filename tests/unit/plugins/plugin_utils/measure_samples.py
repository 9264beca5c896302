# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sweeps, a comparison and scores as the modules give them, with the curves that were published for two machines."""

from __future__ import annotations

import random
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _sweep
from ansible_collections.gb10.vllm.plugins.plugin_utils import _comparison

CURVES = {"short": {1: 36, 4: 82, 8: 109, 16: 150}, "long": {4: 81, 8: 113, 16: 87}, "mix": {4: 70, 8: 82, 12: 92}}
SPLIT = {1: 40, 4: 88, 8: 124, 16: 165, 24: 180}


def sweep(host: str, curves: dict[str, dict[int, int]], topology: str = "replicated", **engine: Any) -> dict[str, Any]:
    dice = random.Random(host)
    runs = []
    for shape, curve in curves.items():
        for at, speed in curve.items():
            for repeat in (1, 2, 3):
                off = 1 + dice.uniform(-0.03, 0.03)
                runs.append(
                    {"shape": shape, "concurrency": at, "repeat": repeat, "error": "", "acceptance": 2.8, "output_per_second": speed * off,
                     "requests_per_second": speed / 128, "ttft_p50": 180 + 60.0 * at, "ttft_p99": 300 + 160.0 * at,
                     "itl_p50": 1000 * at / speed * off, "itl_p99": 1900 * at / speed, "completed": 5 * at, "failed": 0,
                     "input_tokens": 1000, "output_tokens": 1000}
                )  # fmt: skip
    shapes = [{"name": name, "words": f"{name} prompts", "own": name == "mix"} for name in curves]
    judged = _sweep.judge(runs, shapes, current=16, bound=130, measured=16)
    about = {"id": f"{topology}-3fa91c2b7d10", "topology": topology, "image": f"registry.example/vllm@sha256:{'a' * 64}", "model": "m",
             "revision": "", "max_model_len": 262144, "max_num_seqs": 16, "kv_tokens": 1_080_000, "full_requests": 4.1,
             "load_seconds": 540.0, "load_seconds_cold": None}  # fmt: skip
    return {"host": host, "id": f"{topology}-3fa91c2b7d10-12345678", "began": 1.7e9, "ended": 1.7e9 + 5000, "complete": True,
            "done": len(runs), "left": 0, "last": "", "left_out": [24], "engine": {**about, **engine}, "tolerance": 1.0, "repeats": 3,
            "table": _sweep.lines(judged), **judged}  # fmt: skip


def tuned() -> dict[str, Any]:
    return {
        "title": "spark2 over concurrency",
        "time": 1.7e9,
        "sweeps": [sweep("spark2", CURVES)],
        "comparison": {},
        "scores": [],
    }


def compared() -> dict[str, Any]:
    mix = {"mix": CURVES["mix"]}
    copies = [sweep("spark1", mix, kv_tokens=760_000, full_requests=2.9, load_seconds=780.0), sweep("spark2", mix)]
    pair = sweep("spark1", {"mix": SPLIT}, "split", kv_tokens=3_000_000, full_requests=12.0, load_seconds=1200.0)
    found = _comparison.compare(copies, pair, 2)
    return {"title": "Split or copies", "time": 1.7e9, "sweeps": [*copies, pair], "comparison": found, "scores": []}


def scored() -> dict[str, Any]:
    day = 86400
    history = [(0, 75, "accepted", "checkpoint 12c"), (20, 84, "accepted", "checkpoint 88f"), (33, 78, "rejected", "new parser"),
               (40, None, "error", "engine ended"), (47, 86, "not comparable", "suite 3.0.0"), (60, 86, "accepted", "suite 3.0.0")]  # fmt: skip
    scores = [
        {"time": 1.7e9 + at * day, "score": score, "verdict": verdict, "label": label}
        for at, score, verdict, label in history
    ]
    return {"title": "Tool-call scores", "time": 1.7e9, "sweeps": [], "comparison": {}, "scores": scores}
