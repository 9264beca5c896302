# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A full sweep of the real engine by its own bench client, interrupted once, with its pictures; then the mix that clients had sent.

GB10_SWEEP_DIR is a folder that gets the page and the pictures.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab
import sweeping

pytestmark = [pytest.mark.rotating, pytest.mark.usefixtures("real_copies")]

SITE = lab.Site("real", {"vllm_topology": "replicated"})
CONCURRENCY = [1, 2, 4, 8, 16]
WISH: dict[str, Any] = {
    "vllm_tune_concurrency": CONCURRENCY,
    "vllm_tune_shapes": {"short": {"input": 32, "output": 32}, "long": {"input": 768, "output": 64}},
    "vllm_tune_repeats": 1,
    "vllm_tune_prompts_per_slot": 3,
    "vllm_tune_least_prompts": 8,
    "vllm_tune_point_seconds": 120,
    "vllm_tune_seconds": 900,
    "vllm_report_enabled": True,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(os.environ.get("GB10_SWEEP_DIR") or tmp_path_factory.mktemp("sweeps"))


def test_it_is_interrupted_after_two_runs() -> None:
    sweeping.killed(SITE, "tune", WISH, lambda: len(sweeping.runs("spark2")) == 2, 400)
    assert observe.admitted() == {"spark1"}
    observe.must_serve(["spark1"])


def test_the_whole_sweep_within_its_budget(folder: Path) -> None:
    before, began = sweeping.runs("spark2"), time.monotonic()
    words = SITE.must_play("tune", variables={**WISH, "vllm_report_dir": str(folder)})
    took = time.monotonic() - began
    print(words[words.index("say | Show the table") :].split("PLAY RECAP")[0])
    after = sweeping.runs("spark2")
    print(f"{len(after)} runs, {len(before)} of them before it was killed; {took:.0f} s for the rest")
    assert {name: after[name] for name in before} == before, "nothing was measured twice"
    points = sorted((run["shape"], run["concurrency"]) for run in after.values())
    assert points == sorted((shape, number) for shape in ("short", "long") for number in CONCURRENCY)
    assert {run["error"] for run in after.values()} == {""}
    assert {run["failed"] for run in after.values()} == {0}
    assert all(run["output_per_second"] > 0 and run["ttft_p50"] > 0 and run["itl_p50"] > 0 for run in after.values())
    # The answers have the length that was asked for, so the figures mean what they say.
    assert all(
        run["output_tokens"] == run["completed"] * (32 if run["shape"] == "short" else 64) for run in after.values()
    )
    assert took < WISH["vllm_tune_seconds"]
    observe.must_serve(observe.HOSTS)
    (data,) = folder.glob("tune-spark2-*.json")
    (sweep,) = json.loads(data.read_text())["sweeps"]
    assert sweep["complete"]
    assert sweep["proposal"]["max_num_seqs"] in CONCURRENCY
    assert sweep["engine"]["kv_tokens"] > 0
    assert len(list(folder.glob("tune-spark2-*.svg"))) == 3


def test_the_mix_that_the_copy_has_served() -> None:
    """spark1 has served the gate's questions only; with those of clients it has a mix."""
    out = Path(os.environ.get("TMPDIR", "/tmp")) / f"tune-real-{os.getpid()}.jsonl"
    with lab.clients(out, "--retries", "0"):
        observe.answered_more(out, 200, 300)
    mix = {"vllm_tune_shapes": {}, "vllm_tune_from_histograms": True, "vllm_tune_concurrency": [2, 4]}
    words = SITE.must_play("tune", variables={**WISH, **mix, "vllm_tune_host": "spark1", "vllm_report_enabled": False})
    print(words[words.index("say | Show the table") :].split("PLAY RECAP")[0])
    runs = [run for name, run in sweeping.runs("spark1").items() if run["shape"] == "mix"]
    assert {run["concurrency"] for run in runs} == {2, 4}
    assert {run["failed"] for run in runs} == {0}
    assert "your own mix decides" in " ".join(words.split())
    observe.must_serve(observe.HOSTS)
