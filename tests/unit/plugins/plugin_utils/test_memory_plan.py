# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's plan from what its hosts said: the article's two machines, refusals, measurements, wishes that make no sense."""

from __future__ import annotations

import copy
import time
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError, from_gib
from ansible_collections.gb10.vllm.plugins.plugin_utils import _memory_plan, _memory_table, _memory_wishes
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

ARGUMENTS = {
    "max-model-len": 262144, "kv-cache-dtype": "fp8", "gpu-memory-utilization": 0.78, "max-num-seqs": 8,
    "max-num-batched-tokens": 4096, "enable-prefix-caching": True, "block-size": 16, "tensor-parallel-size": 1,
    "speculative-config": {"method": "mtp", "num_speculative_tokens": 4},
}  # fmt: skip
DATABASES = [{"name": "postgresql.service", "bytes": from_gib(3.0), "process": "postgres", "pid": 812},
             {"name": "container builds", "bytes": from_gib(1.5), "process": "node", "pid": 4711}]  # fmt: skip
WORK = {"other_work": [{"name": "databases", "size_gib": 3.0}, {"name": "site builds", "size_gib": 1.5}]}
DIGEST = "a" * 64
BF16 = {"kv-cache-dtype": "bfloat16"}


def host(
    name: str, others: Any = (), wishes: Any = None, available: float = 20.0, gives_back: float = 95.0, **arguments: Any
) -> dict[str, Any]:
    """A machine of the article's, on which a copy is running now."""
    weights = {"config": models.FLASH_NEXT, "hf_quant_config": None,
               "weights": {"bytes": from_gib(69), "bytes_drafting": from_gib(71), "source": "headers", "note": ""}}  # fmt: skip
    block = {"model": "org/flash-next", "revision": "", "digest": DIGEST, "weights": weights}
    return {
        "name": name,
        "memory": {
            "total_bytes": from_gib(121.69), "total_source": "last start", "available_bytes": from_gib(available),
            "free_bytes": from_gib(3), "swap_total_bytes": 0, "swap_free_bytes": 0, "unaccounted_bytes": from_gib(93),
            "engine": {"running": True, "gives_back_bytes": from_gib(gives_back), "source": "processes"},
            "others": list(others), "others_bytes": 0, "measured": [],
        },
        "replicated": {**block, "arguments": {**ARGUMENTS, **arguments}},
        "split": {**block, "arguments": {**ARGUMENTS, "tensor-parallel-size": 2, **arguments}},
        "wishes": {"full_requests": 2, **(wishes or {})},
    }  # fmt: skip


def plan(*hosts: dict[str, Any], topology: str = "replicated") -> dict[str, Any]:
    wishes = _memory_wishes.read({one["name"]: one["wishes"] for one in hosts})
    found = _memory_plan.plan(hosts, wishes, topology)
    assert _memory_table.table(hosts, found).startswith(f"verdict: {found['verdict']}")
    return found


@pytest.mark.parametrize("busy", [host("spark2", wishes=WORK), host("spark2", DATABASES)], ids=["declared", "measured"])
def test_the_articles_machines_get_what_their_owners_found_by_trial(busy: dict[str, Any]) -> None:
    found = plan(host("spark1"), busy)
    assert found["verdict"] == "replicate"
    assert {name: entry["gpu-memory-utilization"] for name, entry in found["arguments"]["replicated"].items()} == {
        "spark1": 0.78,
        "spark2": 0.74,
    }
    quiet, shared = found["copies"]
    assert quiet["tokens"] == pytest.approx(1_080_000, rel=0.06)
    assert shared["tokens"] == pytest.approx(760_000, rel=0.06)
    assert [f"{row['requests']:.1f}" for row in (quiet, shared)] == ["4.1", "2.9"]


def test_bf16_on_one_box_is_answered_with_split() -> None:
    found = plan(host("spark1", **BF16), host("spark2", DATABASES, **BF16))
    assert found["verdict"] == "split"
    assert found["words"][0] == "spark2 does not hold the two full requests you asked for: split"
    assert min(row["requests"] for row in found["ranks"]) == pytest.approx(12, abs=1.5)


def test_a_share_that_leaves_too_little_is_refused_with_the_largest_that_fits_and_who_holds_the_rest() -> None:
    found = plan(host("spark1"), host("spark2", DATABASES))
    (problem,) = found["problems"]
    assert problem["host"] == "spark2"
    for part in (
        "0.78 needs 94.92 GiB",
        "GiB are missing",
        "fits is 0.74",
        "postgresql.service: postgres, pid 812 (3.0 GiB)",
    ):
        assert part in problem["text"]
    assert plan(host("spark1"), host("spark2", DATABASES, {"strict": False}))["problems"] == []


def test_what_the_engine_itself_would_refuse_names_need_have_missing_largest_and_holder() -> None:
    hog = [{"name": "hog.service", "bytes": from_gib(30), "process": "python3", "pid": 99}]
    (problem,) = plan(host("spark1", hog, available=3, gives_back=88.5))["problems"]
    for part in ("needs 94.92 GiB", "only 91.50 GiB are available", "3.42 GiB are missing", "fits is 0.75",
                 "hog.service: python3, pid 99 (30.0 GiB)", "3.00 GiB now and 88.50 GiB that the running engine gives back"):  # fmt: skip
        assert part in problem["text"]


def test_too_small_a_share_names_the_one_that_holds_what_was_asked_for() -> None:
    (problem,) = plan(host("spark1", **{"gpu-memory-utilization": 0.66}))["problems"]
    assert "less than you asked for: set 0.71 or more" in problem["text"]


@pytest.mark.parametrize(
    ("wishes", "lowest"),
    [({}, 0.71), ({"full_requests": 1}, 0.67), ({"tokens": 900_000}, 0.76), ({"concurrency": 3}, 0.74),
     ({"concurrency": 30, "context_tokens": 30_000}, 0.76)],
)  # fmt: skip
def test_every_way_to_ask(wishes: dict[str, Any], lowest: float) -> None:
    assert plan(host("spark1", wishes=wishes))["copies"][0]["lowest"] == lowest


def test_further_engines_on_a_host_are_added_up() -> None:
    alone, shared = (
        plan(host("spark1", wishes=wishes))["copies"][0] for wishes in ({}, {"other_engines": {"embed": 0.05}})
    )
    # its share, and once more what an engine takes beside its share
    assert round(alone["highest"] - shared["highest"], 2) == 0.18


def test_bytes_instead_of_a_share() -> None:
    (found,) = plan(host("spark1", wishes={"byte_mode": True}))["arguments"]["replicated"].values()
    assert found["kv-cache-memory-bytes"] == pytest.approx(from_gib(18.6), rel=0.02)
    assert found["gpu-memory-utilization"] == 0.78


SPLIT_SETTINGS = {"kv_cache_dtype": "fp8", "num_speculative_tokens": 4, "max_num_batched_tokens": 4096, "prefix_caching": True,
                  "block_size": 16, "tensor_parallel_size": 2}  # fmt: skip


def measured(one: dict[str, Any], **more: Any) -> dict[str, Any]:
    start = {"invocation": "x", "began": 1, "verdict": "ok", "version": "0.33.0", "utilization": 0.78, "requested_bytes": from_gib(94.92),
             "kv_bytes": from_gib(17.9), "concurrency": 3.95, "tokens": 0, "blocks": 0, "max_model_len": 262144, "weights_bytes": from_gib(73.97),
             "settings": {"kv_cache_dtype": "fp8", "num_speculative_tokens": 4, "max_num_batched_tokens": 4096, "prefix_caching": True,
                          "block_size": 16, "tensor_parallel_size": 1}, **more}  # fmt: skip
    content = {"digest": DIGEST, "model": "org/flash-next", "revision": "", "topology": "replicated", "starts": [start]}
    return {**copy.deepcopy(one), "memory": {**one["memory"], "measured": [content]}}


def test_the_next_plan_is_made_from_the_last_start() -> None:
    (row,) = plan(measured(host("spark1")))["copies"]
    assert row["measured"]
    assert row["weights"] == from_gib(73.97)
    assert row["kv_bytes"] == pytest.approx(from_gib(17.9), abs=from_gib(0.01))


@pytest.mark.parametrize(
    "more",
    [{"settings": {"kv_cache_dtype": "auto"}}, {"verdict": "negative"}],
    ids=["another cache type", "a start that went wrong"],
)
def test_a_start_that_was_another_thing_changes_nothing_but_the_weights(more: dict[str, Any]) -> None:
    (row,) = plan(measured(host("spark1"), **{**more, "weights_bytes": None}))["copies"]
    assert not row["measured"]
    assert row["weights"] == from_gib(71)


def test_the_rank_with_the_least_memory_decides_for_the_pair() -> None:
    head, second = (
        measured(host(name), settings=SPLIT_SETTINGS, requested_bytes=from_gib(80)) for name in ("spark1", "spark2")
    )
    for one in (head, second):
        one["memory"]["measured"][0]["topology"] = "split"
    second["memory"]["measured"][0]["starts"][0].update(kv_bytes=from_gib(17.0), concurrency=None)
    (row, _other) = plan(head, second, topology="split")["asked"]["ranks"]
    assert row["measured"]
    assert row["kv_bytes"] == row["requested"] - (from_gib(80) - from_gib(17.0))


def test_an_unknown_cache_is_said_to_be_unknown_and_the_engines_own_check_is_still_foreseen() -> None:
    drafter = {"speculative-config": {"method": "eagle3", "num_speculative_tokens": 3}}
    found = plan(host("spark1", gives_back=10, **drafter))
    assert found["verdict"] == "unknown"
    assert "eagle3" in found["unknown"]
    assert "missing" in found["problems"][0]["text"]


def test_an_unknown_cache_is_planned_from_what_a_start_measured() -> None:
    drafter = {"speculative-config": {"method": "eagle3", "num_speculative_tokens": 3}}
    settings = {key: value for key, value in SPLIT_SETTINGS.items() if key != "num_speculative_tokens"}
    told = "the cache of speculative method 'eagle3' with 3 tokens is not modelled"
    one = measured(host("spark1", **drafter), settings={**settings, "tensor_parallel_size": 1, "unmodelled": told})
    found = plan(one)
    (row,) = found["copies"]
    assert (found["verdict"], row["cost_source"], row["note"]) == ("replicate", "measured", told)
    assert row["requests"] == pytest.approx(3.95, abs=0.01)
    assert row["cost_error"] > 0


def test_copies_are_planned_although_the_split_is_unknown() -> None:
    hosts = [host("spark1"), host("spark2")]
    for one in hosts:
        one["split"]["arguments"] = {**one["split"]["arguments"], "pipeline-parallel-size": 2}
    found = plan(*hosts)
    assert (found["verdict"], found["ranks"]) == ("replicate", [])
    assert "a split was not planned: 2 pipeline stages are not modelled" in found["words"][-1]


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([host("a"), host("b", **{"max-model-len": 1000})], "max_model_len differs between a and b"),
        ([host("a", **{"max-model-len": None})], "a, vllm_replicated_arguments: max-model-len is not set"),
        ([host("a", wishes={"context_tokens": 300_000})], "vllm_plan_context_tokens is 300000, but max-model-len"),
    ],
)
def test_no_plan_without_what_it_is_made_of(hosts: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(*hosts)


@pytest.mark.parametrize(
    ("wishes", "message"),
    [
        ({"full_requests": 0}, "vllm_plan_full_requests is 0 on spark1: must be more than 0"),
        ({"keep_free_gib": "much"}, "vllm_plan_keep_free_gib is 'much' on spark1: must be a number"),
        ({"ceiling": 80}, "vllm_plan_ceiling is 80 on spark1: must be at most 0.99"),
        ({"other_work": [{"name": "db"}]}, r"vllm_plan_other_work\[0\]\['size_gib'\] is missing on spark1"),
        ({"other_work": [{"name": "", "size_gib": 1}]}, "must not be empty"),
        ({"other_engines": {"embed": 5}}, "the share of embed is 5.0: must be 0.01 to 0.99"),
        ({"engine": {"tensor": 1}}, "tensor is not among block_size"),
        ({"shortfal": 0.1}, "vllm_plan_shortfal is 0.1 on spark1: is not known"),
    ],
)
def test_a_wish_that_makes_no_sense_names_variable_value_and_host(wishes: dict[str, Any], message: str) -> None:
    with pytest.raises(_memory_wishes.WishError, match=message):
        _memory_wishes.read({"spark1": wishes})


def test_what_is_asked_of_the_site_is_asked_once() -> None:
    with pytest.raises(_memory_wishes.WishError, match="vllm_plan_full_requests differs between the hosts"):
        _memory_wishes.read({"spark1": {"full_requests": 1}, "spark2": {"full_requests": 2}})


def test_a_plan_takes_little_time() -> None:
    hosts = [host("spark1"), host("spark2", DATABASES)]
    started = time.process_time()
    plan(*hosts)
    assert time.process_time() - started < 0.2
