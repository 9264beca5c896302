# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes of weights from headers and index."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import units, weights


def shard(tensors: dict[str, tuple[str, list[int]]], **header: Any) -> bytes:
    """The beginning of a safetensors file; the data itself is left out, since nobody may read it."""
    bits = {"BF16": 16, "F8_E4M3": 8, "U8": 8, "F32": 32, "F4": 4}
    offset, entries = 0, dict(header)
    for name, (dtype, form) in tensors.items():
        size = bits[dtype]
        for extent in form:
            size *= extent
        entries[name] = {"dtype": dtype, "shape": form, "data_offsets": [offset, offset + size // 8]}
        offset += size // 8
    raw = json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw


class File:
    """A file that remembers what was read of it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.asked: list[tuple[int, int]] = []

    def __call__(self, offset: int, count: int) -> bytes:
        self.asked.append((offset, count))
        return self.data[offset : offset + count]


MODEL = {
    "model.layers.0.self_attn.q_proj.weight": ("BF16", [16, 8]),
    "model.layers.5.mlp.down_proj.weight": ("U8", [8, 8]),
    "model.layers.6.mlp.down_proj.weight": ("BF16", [8, 8]),
    "mtp.fc.weight": ("BF16", [4, 4]),
    "visual.layers.9.weight": ("F8_E4M3", [10]),
    "model.ngram_table.weight": ("F4", [1000, 2]),
}


def test_header() -> None:
    file = File(shard(MODEL, __metadata__={"format": "pt"}))
    tensors = weights.read_header(file)
    assert file.asked == [(0, 8), (8, len(file.data) - 8)]
    assert [tensor.size for tensor in tensors] == [256, 64, 128, 32, 10, 1000]


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"drafting": True}, 1490),
        ({"drafting": False}, 1330),
        ({"drafting": True, "vision": False}, 1480),
        ({"drafting": False, "vision": False, "elsewhere": (r"ngram_table",)}, 320),
    ],
)
def test_only_what_is_loaded_counts(options: dict[str, Any], size: int) -> None:
    tensors = weights.read_header(File(shard(MODEL)))
    found = weights.sum_tensors([*tensors, *tensors], layers=6, **options)
    assert (found.size, found.source) == (size, "headers")
    assert "160 bytes of draft layers" in found.note


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "ends after 0 bytes"),
        (b"\x10\0\0\0\0\0\0\0{}", "header ends after 2 of 16"),
        ((1 << 40).to_bytes(8, "little"), "would be"),
        (b"\x02\0\0\0\0\0\0\0[]", "not an object"),
        (b"\x02\0\0\0\0\0\0\0xx", "not JSON"),
        (shard({}, a={"dtype": "BF16", "shape": [2], "data_offsets": [0, 5]}), "takes 5 bytes"),
        (shard({}, a={"dtype": "NEW", "shape": [2], "data_offsets": [7, 5]}), "takes -2 bytes"),
        (shard({}, a={"dtype": "BF16"}), "malformed"),
    ],
)
def test_broken_files(data: bytes, text: str) -> None:
    with pytest.raises(units.PlanError, match=text) as refused:
        weights.read_header(File(data), "model-00001.safetensors")
    assert refused.value.key == "model-00001.safetensors"


def test_a_type_that_is_new_is_believed() -> None:
    entry = {"dtype": "NEW", "shape": [2], "data_offsets": [0, 5]}
    assert weights.read_header(File(shard({}, a=entry)))[0].size == 5


@pytest.mark.parametrize("metadata", [{"total_size": 1000}, {"total_size": 1000.0}])
def test_index(metadata: dict[str, Any]) -> None:
    index = {"metadata": metadata, "weight_map": {"a": "x-2", "b": "x-1", "c": "x-2"}}
    assert (weights.index_weights(index).size, weights.index_weights(index).source) == (1000, "index")
    assert weights.index_files(index) == ("x-1", "x-2")


@pytest.mark.parametrize(
    "index",
    [
        {},
        {"metadata": {}, "weight_map": {}},
        {"metadata": [], "weight_map": ["a"]},
        {"metadata": {"total_size": 0}},
        {"metadata": {"total_size": "1"}},
    ],
)
def test_index_without_a_size(index: dict[str, Any]) -> None:
    with pytest.raises(units.PlanError, match="total_size"):
        weights.index_weights(index)
    with pytest.raises(units.PlanError, match="weight_map"):
        weights.index_files(index)


def test_share_of_a_rank() -> None:
    whole = weights.Weights(1001, "headers")
    assert weights.per_rank(whole, 1) == whole
    assert weights.per_rank(whole, 2).size == 501
    assert weights.per_rank(whole, 2, shared=101).size == 551


def test_store_key() -> None:
    assert weights.store_key("sha256:ab", "model@1", "split") == "ab|model@1|split"
    with pytest.raises(units.PlanError, match="image_digest"):
        weights.store_key("", "model@1", "split")


def test_a_large_model_takes_little_time() -> None:
    names = [f"model.layers.{layer}.mlp.experts.{expert}.w" for layer in range(48) for expert in range(40)]
    files = [shard({f"{name}.{part}": ("BF16", [64, 64]) for name in names[part::8]}) for part in range(8)]
    begin = time.process_time()
    tensors = [tensor for data in files for tensor in weights.read_header(File(data))]
    total = weights.sum_tensors(tensors, layers=48, drafting=True)
    assert total.size == len(names) * 8192
    assert time.process_time() - begin < 0.2
