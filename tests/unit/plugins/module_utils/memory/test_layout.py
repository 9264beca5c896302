# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Layouts against figures that engines printed: groups, blocks, tokens, concurrency."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import grouping, layout, shape, units
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

GIB = units.GIB


def made(config: dict[str, Any], length: int, kv_dtype: str = "bf16", **more: Any) -> layout.Layout:
    return grouping.make_layout(shape.read_shape(config), layout.Settings(length, kv_dtype, **more))


# configuration, length, cache type, settings, GiB or None, blocks -> block size, blocks per request, tokens, concurrency
FIXTURES: list[tuple[str, dict[str, Any], int, str, dict[str, Any], float | None, int, int, int, int, str]] = [
    ("35B, one rank", models.gated(40, 2, 32), 131072, "fp8", {}, 5.98, 299, 2096, 69, 567978, "4.33"),
    ("27B, two ranks, 3 drafts", models.gated(64, 4, 48), 262144, "fp8", {"ranks": 2, "draft_tokens": 3},
     None, 424, 1600, 179, 620944, "2.37"),
    ("27B, two ranks", models.gated(64, 4, 48), 131072, "fp8", {"ranks": 2}, 4.99, 208, 1568, 90, 302921, "2.31"),
    ("indexed, bf16", models.FLASH_NEXT, 262144, "bf16", {"draft_tokens": 2}, None, 539, 1600, 181, 780638, "2.98"),
    ("indexed, bf16, more", models.FLASH_NEXT, 262144, "bf16", {"draft_tokens": 2}, None, 744, 1600, 181, 1077542, "4.11"),
    ("indexed, fp8", models.FLASH_NEXT, 262144, "fp8", {"draft_tokens": 2}, None, 534, 3184, 100, 1399848, "5.34"),
    ("indexed, fp8, more", models.FLASH_NEXT, 262144, "fp8", {"draft_tokens": 2}, None, 707, 3184, 100, 1853358, "7.07"),
    ("CPU, dense", models.DENSE, 2048, "bf16", {"block_size": 128}, 1, 32768, 128, 16, 4194304, "2048.00"),
    ("CPU, windows", models.GEMMA_TINY, 2048, "bf16", {"block_size": 128}, 1, 32768, 128, 101, 664444, "324.44"),
    ("CPU, states", models.NEXT_TINY, 2048, "bf16", {"block_size": 128}, 1, 16384, 256, 14, 2396745, "1170.29"),
    ("CPU, wide states", {**models.NEXT_TINY, "linear_key_head_dim": 128, "linear_value_head_dim": 128},
     2048, "bf16", {"block_size": 128}, 1, 1927, 2176, 7, 563785, "275.29"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "length", "kv_dtype", "more", "gib", "blocks", "block_size", "per_request", "tokens", "concurrency"),
    [case[1:] for case in FIXTURES],
    ids=[case[0] for case in FIXTURES],
)
def test_printed_by_an_engine(
    config: dict[str, Any],
    length: int,
    kv_dtype: str,
    more: dict[str, Any],
    gib: float | None,
    blocks: int,
    block_size: int,
    per_request: int,
    tokens: int,
    concurrency: str,
) -> None:
    result = made(config, length, kv_dtype, **more)
    assert result.block_size == block_size
    assert result.blocks_per_request() == per_request
    if gib is not None:
        assert result.blocks(units.from_gib(gib)) == blocks
    assert result.tokens(blocks) == tokens
    assert f"{result.concurrency(blocks):.2f}" == concurrency


# (bytes per block in MB, blocks per request) of the article's model in the forms that explain its figures
SEED: list[tuple[str, dict[str, Any], float, int]] = [
    ("bf16", {}, 39.74, 177),
    ("bf16", {"draft_tokens": 2, "cache_mode": "none"}, 43.93, 177),
    ("fp8", {"draft_tokens": 4}, 45.49, 107),
    ("fp8", {"draft_tokens": 4, "block_size": 64}, 46.17, 106),
    ("bf16", {"ranks": 2}, 20.47, 177),
]


@pytest.mark.parametrize(("kv_dtype", "more", "megabytes", "per_request"), SEED)
def test_blocks_of_the_seed_model(kv_dtype: str, more: dict[str, Any], megabytes: float, per_request: int) -> None:
    result = made(models.FLASH_NEXT, 262144, kv_dtype, **more)
    assert round(result.block_bytes / 1e6, 2) == megabytes
    assert result.blocks_per_request() == per_request
    assert result.evidence == "ratio"


def test_windows_are_priced_in_full_and_applied_to_requests_only() -> None:
    result = made(models.GPT_OSS, 131072, batched_tokens=2048, version="0.10.2")
    per_token = result.block_bytes / result.block_size * sum(group.times for group in result.groups)
    assert per_token == 73728
    low, high = (result.counted_tokens(result.blocks(units.from_gib(gib))) for gib in (5.375, 5.385))
    assert (low, high) == (78272, 78416)
    assert result.blocks_per_request() == 131072 // 16 + (127 + 2048 + 15) // 16 + 1


def test_recurrent_layers_bound_the_sequences() -> None:
    result = made(models.gated(64, 4, 48), 131072, cache_mode="none")
    blocks = result.blocks(units.from_gib(8.82))
    assert (result.max_num_seqs(blocks), result.tokens(blocks)) == (184, 141036)
    with pytest.raises(units.PlanError, match="at most 184"):
        result.check_max_num_seqs(blocks, 256)
    result.check_max_num_seqs(blocks, 16)


def test_attention_alone_bounds_the_sequences_by_blocks() -> None:
    assert made(models.DENSE, 2048).max_num_seqs(101) == 100
    assert made(models.DENSE, 2048).max_num_seqs(0) == 0


def test_full_length_on_two_machines() -> None:
    result = made(models.MINIMAX, 196608, ranks=2)
    assert f"{result.request_bytes() / GIB:.2f}" == "23.25"
    # 190,272 is what the engine named as the longest length for 22.5 GiB, printed with two decimals
    low, high = (result.longest(result.blocks(units.from_gib(gib))) for gib in (22.495, 22.505))
    assert low <= 190272 <= high
    assert result.longest(result.blocks(units.from_gib(40))) == 196608
    assert result.longest(1) == 0


@pytest.mark.parametrize(
    ("config", "length", "more", "groups", "block_bytes"),
    [
        ("one latent form", 8192, {"ranks": 8, "block_size": 64}, 1, 61 * 64 * 1152),
        ("its draft layer joins", 8192, {"draft_tokens": 1, "block_size": 64}, 1, 62 * 64 * 1152),
        ("heads fewer than ranks are kept twice", 8192, {"ranks": 8}, 1, 48 * 16 * 512),
    ],
)
def test_one_group(config: str, length: int, more: dict[str, Any], groups: int, block_bytes: int) -> None:
    latent = {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_nextn_predict_layers": 1}
    replicated = {"num_hidden_layers": 48, "num_key_value_heads": 4, "head_dim": 128}
    result = made(replicated if config.startswith("heads") else latent, length, **more)
    assert (sum(group.times for group in result.groups), result.block_bytes) == (groups, block_bytes)


def test_context_parallel_shares_a_request() -> None:
    latent = {"num_hidden_layers": 61, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
    alone, shared = (made(latent, 262144, ranks=8, block_size=64, context_ranks=count) for count in (1, 8))
    assert shared.blocks_per_request() * 8 == alone.blocks_per_request()
    assert shared.counted_tokens(11174) == 5721088


def test_sparse_latent_has_an_index_row() -> None:
    config = {"num_hidden_layers": 78, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "index_head_dim": 128}
    assert made(config, 4096, block_size=64).block_bytes == 78 * 64 * (1152 + 132)


def test_a_separate_drafter_is_a_kind_of_its_own() -> None:
    config = models.gated(40, 2, 32)
    drafter = shape.AttentionLayers("full", 8, 4, 256)
    result = made(config, 262144, draft_tokens=15, drafter=drafter)
    assert (result.block_size, result.blocks_per_request(), result.tokens(3547)) == (1168, 743, 1251446)
    # equal to the model's own layers it joins them, beside full attention alone it shares their block table
    assert (
        sum(
            group.times
            for group in made(config, 4096, draft_tokens=15, drafter=shape.AttentionLayers("full", 8, 2, 512)).groups
        )
        == 3
    )
    dense = made(models.DENSE, 4096, draft_tokens=1, drafter=drafter)
    assert (sum(group.times for group in dense.groups), dense.block_bytes) == (1, 16 * (2 * 128 + 8 * 2048))
    assert made(config, 4096, drafter=drafter) == made(config, 4096, drafter=drafter, draft_tokens=0)


@pytest.mark.parametrize(
    ("sizes", "block_sizes"),
    [((16, 256, 4, 512), {16, 32}), ((8, 256, 1, 512), {16, 64}), ((8, 256, 3, 128), {16})],
)
def test_smaller_pages_grow_by_whole_factors(sizes: tuple[int, int, int, int], block_sizes: set[int]) -> None:
    heads, dim, global_heads, global_dim = sizes
    result = made(
        {
            "num_hidden_layers": 12,
            "num_key_value_heads": heads,
            "head_dim": dim,
            "num_global_key_value_heads": global_heads,
            "global_head_dim": global_dim,
            "sliding_window": 1024,
            "layer_types": ["sliding_attention"] * 10 + ["full_attention"] * 2,
        },
        8192,
    )
    assert {group.block_size for group in result.groups} == block_sizes
    assert result.block_bytes == 2 * 16 * heads * dim * 2 * 2


@pytest.mark.parametrize(
    ("counts", "version", "groups"),
    [((6, 7), "", 2), ((6, 8), "0.33.0", 2), ((6, 8), "0.10.2", 3), ((6, 9), "0.33.0", 3), ((6, 12), "", 3)],
)
def test_group_size_by_build(counts: tuple[int, int], version: str, groups: int) -> None:
    full, sliding = counts
    kinds = ["full_attention"] * full + ["sliding_attention"] * sliding
    config = {**models.DENSE, "num_hidden_layers": full + sliding, "sliding_window": 64, "layer_types": kinds}
    assert sum(group.times for group in made(config, 4096, version=version).groups) == groups


@pytest.mark.parametrize(("mode", "per_request"), [("none", 9), ("align", 10), ("all", 16)])
def test_what_recurrent_layers_keep(mode: str, per_request: int) -> None:
    # two groups: a full one of 8 blocks of 256 tokens, a recurrent one
    config = {**models.NEXT_TINY, "num_hidden_layers": 2, "full_attention_interval": 2}
    assert made(config, 2048, block_size=128, cache_mode=mode).blocks_per_request() == per_request


def test_batches_in_flight_widen_windows() -> None:
    one, two = (made(models.GPT_OSS, 131072, batched_tokens=1024, batches=count) for count in (1, 2))
    assert two.blocks_per_request() - one.blocks_per_request() == 1024 // 16


@pytest.mark.parametrize(
    ("version", "asynchronous", "expected"),
    [("0.25.1", True, 1), ("0.29.0", True, 2), ("0.33.0", False, 1), ("", True, 2), ("0.29.1rc1.dev17", True, 2)],
)
def test_batches_by_build(version: str, asynchronous: bool, expected: int) -> None:
    assert layout.batches_in_flight(version, asynchronous) == expected


def test_demand_includes_the_engines_own_block() -> None:
    result = made(models.DENSE, 2048, block_size=128)
    assert result.bytes_for(2) == (2 * 16 + 1) * result.block_bytes
    assert result.bytes_for(1, tokens=3 * 2048) == (3 * 16 + 1) * result.block_bytes
    assert result.bytes_for(0.5) == (16 + 1) * result.block_bytes


@pytest.mark.parametrize(
    ("config", "more", "key"),
    [
        ({**models.DENSE, "num_key_value_heads": 6}, {"ranks": 4}, "tensor_parallel_size"),
        (models.gated(40, 2, 33), {"ranks": 2}, "tensor_parallel_size"),
        (models.DENSE, {"kv_dtype": "fp9"}, "kv_cache_dtype"),
        ({**models.GPT_OSS, "kv_lora_rank": 8, "qk_rope_head_dim": 8}, {}, "kv_lora_rank"),
        ({**models.DENSE, "indexer_head_dim": 8, "indexer_compress_ratio": 4}, {}, "indexer_head_dim"),
    ],
)
def test_refusals(config: dict[str, Any], more: dict[str, Any], key: str) -> None:
    with pytest.raises(units.PlanError) as refused:
        made(config, 4096, **more)
    assert refused.value.key == key


@pytest.mark.parametrize("name", ["max_model_len", "ranks", "block_size", "batched_tokens"])
def test_settings_are_checked(name: str) -> None:
    settings: dict[str, Any] = {"max_model_len": 10, name: 0}
    with pytest.raises(units.PlanError, match=name):
        layout.Settings(**settings)
    with pytest.raises(units.PlanError, match="cache_mode"):
        layout.Settings(10, cache_mode="some")
