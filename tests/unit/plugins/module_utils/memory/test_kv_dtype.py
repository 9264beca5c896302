# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the type of the cache costs and what "auto" means."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import kv_dtype, units


@pytest.mark.parametrize(
    ("name", "latent", "size"),
    [
        ("bf16", False, 1024),
        ("float16", False, 1024),
        ("float32", False, 2048),
        ("fp8", False, 512),
        ("fp8_e4m3", False, 512),
        ("int8_per_token_head", False, 528),
        ("fp8_per_token_head", False, 528),
        ("int4_per_token_head", False, 272),
        ("nvfp4", False, 288),
        ("nvfp4_4over6", False, 288),
    ],
)
def test_bytes_of_a_token(name: str, latent: bool, size: int) -> None:
    assert kv_dtype.token_bytes(name, 2, 256, latent) == size


@pytest.mark.parametrize(("name", "size"), [("bf16", 1152), ("fp8", 576), ("fp8_ds_mla", 656), ("nvfp4_ds_mla", 352)])
def test_bytes_of_a_latent_token(name: str, size: int) -> None:
    assert kv_dtype.token_bytes(name, 1, 576, latent=True) == size


@pytest.mark.parametrize(("name", "latent"), [("auto", False), ("fp9", False), ("fp8_ds_mla", False), ("nvfp4", True)])
def test_unknown_type(name: str, latent: bool) -> None:
    with pytest.raises(units.LayoutUnknown) as refused:
        kv_dtype.token_bytes(name, 2, 256, latent)
    assert refused.value.key == "kv_cache_dtype"
    assert name in str(refused.value)


@pytest.mark.parametrize(
    ("config", "separate", "expected"),
    [
        ({}, None, ""),
        ({"quantization_config": {"quant_method": "fp8"}}, None, ""),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, None, ""),
        ({"quantization_config": {"quant_method": "mxfp4"}}, None, ""),
        ({"quantization_config": {"kv_cache_scheme": {"num_bits": 8, "type": "float"}}}, None, "fp8"),
        ({"quantization_config": {"kv_cache_scheme": None}}, None, ""),
        ({"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}, None, "fp8"),
        ({"text_config": {"quantization_config": {"kv_cache_quant_algo": "NVFP4"}}}, None, "nvfp4"),
        ({}, {"quantization": {"quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8"}}, "fp8"),
        (
            {"quantization_config": {"kv_cache_quant_algo": "FP8"}},
            {"quantization": {"kv_cache_quant_algo": "FP8"}},
            "fp8",
        ),
    ],
)
def test_what_a_checkpoint_asks_for(config: dict[str, Any], separate: dict[str, Any] | None, expected: str) -> None:
    assert kv_dtype.checkpoint_kv_dtype(config, separate) == expected


@pytest.mark.parametrize(
    ("config", "separate", "key"),
    [
        ({"quantization_config": {"kv_cache_quant_algo": "INT3"}}, None, "kv_cache_quant_algo"),
        ({"quantization_config": {"kv_cache_scheme": {"num_bits": 4}}}, None, "kv_cache_scheme"),
        (
            {"quantization_config": {"kv_cache_quant_algo": "FP8"}},
            {"quantization": {"kv_cache_quant_algo": "NVFP4"}},
            "kv_cache_quant_algo",
        ),
    ],
)
def test_checkpoint_that_makes_no_sense(config: dict[str, Any], separate: dict[str, Any] | None, key: str) -> None:
    with pytest.raises(units.ShapeRefused) as refused:
        kv_dtype.checkpoint_kv_dtype(config, separate)
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("asked", "checkpoint", "version", "expected"),
    [
        ("fp8", "", "", ("fp8",)),
        ("bf16", "fp8", "0.33.0", ("bf16",)),
        ("auto", "", "", ("bf16",)),
        ("auto", "fp8", "0.10.2", ("bf16",)),
        ("auto", "fp8", "0.33.0", ("fp8",)),
        ("auto", "fp8", "0.33.0+cu130", ("fp8",)),
        ("auto", "fp8", "", ("bf16", "fp8")),
        ("auto", "fp8", "0.1.dev20073+g8e685d198", ("bf16", "fp8")),
        ("auto", "fp8", "0.29.1rc1.dev17", ("bf16", "fp8")),
    ],
)
def test_auto_depends_on_checkpoint_and_build(
    asked: str, checkpoint: str, version: str, expected: tuple[str, ...]
) -> None:
    assert kv_dtype.resolve_kv_dtype(asked, checkpoint, version) == expected
