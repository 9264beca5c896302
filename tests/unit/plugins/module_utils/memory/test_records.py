# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is kept of a start, and what the next plan takes from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import cache_info, records, startup_log, units

FIXTURES = Path(__file__).parents[3] / "fixtures" / "memory"
ENGINE = {"max_model_len": 262144, "utilization": 0.78, "kv_cache_dtype": "fp8", "num_speculative_tokens": 4}
TOTAL = units.from_gib(121.69)


@pytest.mark.parametrize(
    ("line", "gib"),
    [
        ("Free memory on device cuda:0 (40.12/121.63 GiB) on startup is less than desired", 121.63),
        (
            "Free memory on device (112.02/121.69 GiB) on startup. Desired GPU memory utilization is (0.78, 94.92 GiB).",
            121.69,
        ),
        ("Available memory on node 0 (10.5/16.71 GiB) on startup is less than desired CPU memory utilization", 16.71),
        ("Auto set (0.47/16.71) GiB for KV cache on node 0, with 1.0 GiB requested memory for the worker.", 16.71),
        ("Explicitly set (0.07/16.71) GiB for KV cache on node 0.", 16.71),
    ],
)
def test_the_total_as_the_engine_says_it(line: str, gib: float) -> None:
    assert records.read_total(["noise", f"(Worker pid=1) INFO {line}"]) == units.from_gib(gib)


def test_a_log_without_a_total_has_none() -> None:
    assert records.read_total(["Model loading took 71 GiB"]) is None


def start(**more: Any) -> dict[str, Any]:
    figures = startup_log.read_start((FIXTURES / "start-0.33.0.log").read_text().splitlines())
    infos = cache_info.read_cache_info((FIXTURES / "metrics.txt").read_text())
    return {**records.start_entry(figures, infos, TOTAL, 1, ENGINE), "invocation": "one", "verdict": "ok", **more}


def test_the_metrics_sharpen_what_the_log_says() -> None:
    entry = start()
    assert (entry["tokens"], entry["blocks"], entry["block_size"]) == (1_075_525, 439, 3216)
    assert entry["concurrency"] == 4.102803738317757
    assert entry["requested_bytes"] == units.share(TOTAL, 78)
    assert entry["settings"] == {"kv_cache_dtype": "fp8", "num_speculative_tokens": 4}


def test_a_cache_given_in_bytes_says_nothing_of_the_share() -> None:
    entry = records.start_entry(startup_log.StartFigures(), (), TOTAL, 1, ENGINE, byte_mode=True)
    assert entry["requested_bytes"] is None


def test_a_total_that_was_only_assumed_is_not_kept_as_the_engines_own() -> None:
    entry = records.start_entry(startup_log.StartFigures(), (), None, TOTAL, ENGINE)
    assert entry["total_bytes"] is None
    assert entry["requested_bytes"] == units.share(TOTAL, 78)


def test_starts_are_kept_in_order_and_one_is_kept_once() -> None:
    content = None
    for number in range(15):
        content = records.add_start(content, {"model": "m"}, start(invocation=str(number)))
        content = records.add_start(content, {"model": "m"}, start(invocation=str(number), began=number))
    assert content is not None
    assert [entry["invocation"] for entry in content["starts"]] == [str(number) for number in range(5, 15)]
    assert records.last_value([content, {"starts": []}], "began") == 14


@pytest.mark.parametrize(
    ("entry", "engine", "count"),
    [
        (start(), ENGINE, 1),
        (start(), {**ENGINE, "utilization": 0.74, "max_model_len": 1000, "batches_in_flight": 1}, 1),
        (start(), {**ENGINE, "kv_cache_dtype": "auto"}, 0),
        (start(), {**ENGINE, "num_speculative_tokens": 2}, 0),
        (start(verdict="negative"), ENGINE, 0),
        (start(kv_bytes=None), ENGINE, 0),
        (start(concurrency=None), ENGINE, 0),
    ],
    ids=["equal", "other share and length", "other type", "other drafts", "negative", "no bytes", "no concurrency"],
)
def test_only_starts_that_say_something_of_this_plan_are_used(entry: Any, engine: Any, count: int) -> None:
    assert len(records.usable_starts({"starts": [entry]}, engine)) == count


def test_what_a_start_without_a_plan_is_compared_with() -> None:
    before = {
        "starts": [start(invocation="a", concurrency=4.1), start(invocation="b", concurrency=1.0, verdict="short")]
    }
    assert records.expected_requests(before, start(invocation="c")) == 4.1
    assert records.expected_requests(before, start(invocation="c", utilization=0.5)) is None
    assert records.expected_requests(None, start()) is None


def test_files_are_told_apart_by_image_checkpoint_and_topology() -> None:
    names = {
        records.file_name(digest, model, revision, topology)
        for digest in ("a" * 64, "b" * 64)
        for model in ("org/model", "org-model")
        for revision in ("", "abc")
        for topology in ("replicated", "split")
    }
    assert len(names) == 16
    assert all("/" not in name and name.endswith(".json") for name in names)
