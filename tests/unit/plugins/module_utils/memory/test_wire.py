# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as plain data: what goes in, what comes out, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import units, wire
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

HOSTS: list[dict[str, Any]] = [
    {"name": "spark1", "total_gib": 121.69},
    {"name": "spark2", "total_gib": 121.69, "others": [{"name": "databases", "size_gib": 4.5}]},
]
ENGINE: dict[str, Any] = {
    "max_model_len": 262144,
    "weights_gib": 71,
    "kv_cache_dtype": "fp8",
    "num_speculative_tokens": 4,
    "max_num_batched_tokens": 4096,
}
INPUTS: dict[str, Any] = {
    "model": models.FLASH_NEXT,
    "hosts": HOSTS,
    "demand": {"full_requests": 2},
    "replicated": ENGINE,
    "split": {"max_model_len": 262144, "num_speculative_tokens": 4},
}


def test_the_whole_plan() -> None:
    plan = wire.make_plan(INPUTS)
    assert (plan["verdict"], plan["kv_cache_dtype"], plan["other_types"]) == ("replicate", "fp8", [])
    assert [(copy["host"], copy["utilization"], copy["holds"]) for copy in plan["copies"]] == [
        ("spark1", 0.78, True),
        ("spark2", 0.74, True),
    ]
    first = plan["copies"][0]
    assert (first["tokens"], first["requests"], first["max_num_seqs"], first["block_size"]) == (
        1075525,
        4.1028,
        12,
        3216,
    )
    assert (first["max_num_batched_tokens"], first["weights"]) == (4096, 71 * units.GIB)
    assert plan["ranks"][0]["weights"] == units.ceil_div(71 * units.GIB, 2)


def test_bf16_beside_a_split() -> None:
    plan = wire.make_plan({**INPUTS, "replicated": {**ENGINE, "kv_cache_dtype": "bf16"}})
    assert plan["verdict"] == "split"
    assert "does not hold the two full requests you asked for: split" in plan["words"][0]


def test_both_types_are_shown_when_the_build_is_not_known() -> None:
    model = {**models.FLASH_NEXT, "quantization_config": {"kv_cache_quant_algo": "FP8"}}
    inputs = {**INPUTS, "model": model, "replicated": {**ENGINE, "kv_cache_dtype": "auto"}}
    plan = wire.make_plan(inputs)
    assert (plan["kv_cache_dtype"], plan["verdict"]) == ("bf16", "split")
    assert [(other["kv_cache_dtype"], other["verdict"]) for other in plan["other_types"]] == [("fp8", "replicate")]
    assert "with fp8 the verdict is replicate" in plan["words"][-1]
    known = wire.make_plan({**inputs, "version": "0.33.0"})
    assert (known["kv_cache_dtype"], known["other_types"]) == ("fp8", [])


def test_what_a_split_says_for_itself() -> None:
    split = {
        **INPUTS["split"],
        "weights_gib": 40,
        "kv_cache_dtype": "bf16",
        "utilization": 0.6,
        "tensor_parallel_size": 2,
    }
    rank = wire.make_plan({**INPUTS, "split": split})["ranks"][0]
    assert (rank["weights"], rank["utilization"]) == (40 * units.GIB, 0.6)
    assert rank["request_bytes"] > wire.make_plan(INPUTS)["ranks"][0]["request_bytes"]
    without_caching = wire.make_plan({**INPUTS, "split": {**split, "prefix_caching": False}})["ranks"][0]
    assert without_caching["request_bytes"] < rank["request_bytes"]


def test_given_utilizations_are_judged() -> None:
    one = wire.make_plan({**INPUTS, "replicated": {**ENGINE, "utilization": 0.74}})
    assert [copy["utilization"] for copy in one["copies"]] == [0.74, 0.74]
    each = wire.make_plan({**INPUTS, "replicated": {**ENGINE, "utilization": {"spark2": 0.78}}})
    assert [(copy["utilization"], copy["holds"]) for copy in each["copies"]] == [(0.78, True), (0.78, False)]


def test_an_unknown_family_needs_a_start() -> None:
    model = {"num_hidden_layers": 43, "compress_ratios": [0, 4, 128]}
    with pytest.raises(units.PlanError, match="start it once") as refused:
        wire.make_plan({**INPUTS, "model": model})
    assert refused.value.key == "compress_ratios"
    start = {"kv_gib": 18.6, "concurrency": 4.1, "max_model_len": 262144, "requested_gib": 94.92, "blocks": 400}
    plan = wire.make_plan({**INPUTS, "model": model, "split": None, "replicated": {**ENGINE, "starts": [start]}})
    first = plan["copies"][0]
    assert (first["cost_source"], first["block_size"], first["measured"]) == ("measured", None, True)
    assert first["requests"] == pytest.approx(4.1, abs=0.01)
    assert first["requests_low"] < 4.1 < first["requests_high"]
    assert "compress_ratios" in first["note"]


def test_a_separate_drafter_takes_its_part() -> None:
    inputs = {**INPUTS, "model": models.gated(40, 2, 32), "split": None}
    drafter = {"num_hidden_layers": 8, "num_key_value_heads": 2, "head_dim": 256}
    with_it = wire.make_plan({**inputs, "drafter": drafter})["copies"][0]["request_bytes"]
    assert with_it > wire.make_plan(inputs)["copies"][0]["request_bytes"]
    with pytest.raises(units.PlanError, match="drafter"):
        wire.make_plan({**inputs, "drafter": "some/model"})
    with pytest.raises(units.PlanError, match="several kinds"):
        wire.make_plan({**inputs, "drafter": models.GPT_OSS})


def test_more_sequences_than_blocks_are_lowered_in_words() -> None:
    plan = wire.make_plan({**INPUTS, "demand": {"full_requests": 2, "max_num_seqs": 1000}})
    assert [copy["max_num_seqs"] for copy in plan["copies"]] == [439, 308]
    assert "spark2: max_num_seqs 1000 is lowered to 308, the most that 308 cache blocks allow" in plan["words"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"surprise": 1}, "surprise"),
    ({"model": None}, "model"),
    ({"replicated": None}, "replicated"),
    ({"hosts": []}, "hosts"),
    ({"hosts": [HOSTS[0], HOSTS[0]]}, "hosts"),
    ({"hosts": [{"total_gib": 121.69}]}, "name"),
    ({"hosts": [{"name": "spark1"}]}, "total_gib"),
    ({"hosts": [{"name": "spark1", "total_gib": "121"}]}, "total_gib"),
    ({"hosts": [{"name": "spark1", "total_gib": 121, "total_bytes": 1}]}, "total_bytes"),
    ({"hosts": [{"name": "spark1", "total_bytes": 1.5}]}, "total_bytes"),
    ({"hosts": [{"name": "spark1", "total_gib": 121, "ceiling": 1.2}]}, "ceiling"),
    ({"hosts": [{"name": "spark1", "total_gib": 121, "spare_gib": 1}]}, "spare_gib"),
    ({"hosts": [{"name": "spark1", "total_gib": 121, "others": [{"name": "x"}]}]}, "others"),
    ({"hosts": [{"name": "spark1", "total_gib": 121, "engines": {"embed": 3}}]}, "embed"),
    ({"demand": {"full_requests": "2"}}, "full_requests"),
    ({"demand": {"max_num_seqs": 1.5}}, "max_num_seqs"),
    ({"demand": {"users": 2}}, "users"),
    ({"replicated": {**ENGINE, "max_model_len": None}}, "max_model_len"),
    ({"replicated": {**ENGINE, "max_model_len": "262144"}}, "max_model_len"),
    ({"replicated": {**ENGINE, "weights_gib": None}}, "weights_bytes"),
    ({"replicated": {**ENGINE, "utilization": 0.745}}, "utilization"),
    ({"replicated": {**ENGINE, "utilization": True}}, "utilization"),
    ({"replicated": {**ENGINE, "utilization": "0.74"}}, "utilization"),
    ({"replicated": {**ENGINE, "utilization": 1.0}}, "utilization"),
    ({"replicated": {**ENGINE, "weights_gib": True}}, "weights_gib"),
    ({"split": {"max_model_len": 1, "lenght": 1}}, "lenght"),
    ({"split": {"weights_gib": 40}}, "max_model_len"),
    ({"demand": {"full_requests": True}}, "full_requests"),
    ({"replicated": {**ENGINE, "utilization": {"spark9": 0.7}}}, "utilization"),
    ({"replicated": {**ENGINE, "mamba_cache_mode": "some"}}, "cache_mode"),
    ({"replicated": {**ENGINE, "kv_cache_dtype": "fp9"}}, "kv_cache_dtype"),
    ({"replicated": {**ENGINE, "starts": [{"kv_gib": 0, "concurrency": 1, "max_model_len": 5}]}}, "kv_bytes"),
    ({"replicated": {**ENGINE, "tensor_paralel_size": 1}}, "tensor_paralel_size"),
]


@pytest.mark.parametrize(("change", "key"), REFUSED)
def test_refusals_name_the_input(change: dict[str, Any], key: str) -> None:
    with pytest.raises(units.PlanError) as refused:
        wire.make_plan({**INPUTS, **change})
    assert refused.value.key == key, refused.value


def test_capacity_in_the_engines_figures() -> None:
    found = wire.capacity(models.GEMMA_TINY, {"max_model_len": 2048, "block_size": 128}, units.GIB)
    assert found["concurrency"] == pytest.approx(32768 / 101)
    assert (found["block_size"], found["blocks"], found["blocks_per_request"], found["tokens"]) == (
        128,
        32768,
        101,
        664444,
    )
