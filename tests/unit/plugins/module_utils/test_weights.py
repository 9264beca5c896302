# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Complete, cut short or missing: what an interrupted download leaves is never taken for a model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _weights


def header(tensors: Any) -> bytes:
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


TWO = {"__metadata__": {"format": "pt"}, "a": {"data_offsets": [0, 10]}, "b": {"data_offsets": [10, 50]}}
WHOLE = len(header(TWO)) + 50


@pytest.mark.parametrize(
    ("data", "length"),
    [
        (header(TWO), WHOLE),
        (header(TWO) + b"data", WHOLE),
        (header({}), 8 + 2),
        (header({"__metadata__": {}}), len(header({"__metadata__": {}}))),
        (header(TWO)[:-1], None),
        (header(TWO)[:7], None),
        (b"", None),
        (b"\0" * 8, None),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n", None),
        (header([1]), None),
        (header({"a": {}}), None),
        (header({"a": {"data_offsets": [0]}}), None),
        (header({"a": {"data_offsets": ["x", "y"]}}), None),
        (header({"a": 1}), None),
    ],
    ids=["header", "with data", "empty", "metadata only", "cut header", "cut length", "nothing", "zeros", "git lfs pointer", "list",
         "no offsets", "one offset", "texts", "number"],
)  # fmt: skip
def test_expected_length(data: bytes, length: int | None) -> None:
    assert _weights.expected_length(data) == length


INDEX = json.dumps({"weight_map": {"x": "1.safetensors", "y": "2.safetensors", "z": "1.safetensors"}})


@pytest.mark.parametrize(
    ("texts", "lengths", "expected"),
    [
        ({"config.json": "{}", _weights.INDEX: INDEX}, {"1.safetensors": WHOLE, "2.safetensors": WHOLE}, (2, [], [])),
        ({"config.json": "{}"}, {"model.safetensors": WHOLE}, (1, [], [])),
        ({_weights.INDEX: INDEX}, {"1.safetensors": WHOLE, "2.safetensors": WHOLE}, (2, ["config.json"], [])),
        ({"config.json": "{}", _weights.INDEX: INDEX}, {"1.safetensors": WHOLE}, (2, ["2.safetensors"], [])),
        ({"config.json": "{}", _weights.INDEX: INDEX}, {"1.safetensors": WHOLE - 1, "2.safetensors": WHOLE + 1},
         (2, [], ["1.safetensors", "2.safetensors"])),
        ({"config.json": "{}"}, {}, (1, ["model.safetensors"], [])),
        ({}, {}, (1, ["config.json", "model.safetensors"], [])),
        ({"config.json": "{}", _weights.INDEX: "{"}, {}, (0, [], [_weights.INDEX])),
        ({"config.json": "{}", _weights.INDEX: "{}"}, {}, (0, [], [_weights.INDEX])),
        ({"config.json": "{}", _weights.INDEX: '{"weight_map": []}'}, {}, (0, [], [_weights.INDEX])),
        ({"config.json": "{}", _weights.INDEX: '{"weight_map": {"a": 1, "b": "c"}}'}, {}, (0, [], [_weights.INDEX])),
    ],
)  # fmt: skip
def test_judge(texts: dict[str, str], lengths: dict[str, int], expected: tuple[int, list[str], list[str]]) -> None:
    found = _weights.judge(texts.get, lengths.get, lambda name: header(TWO))
    assert (found.shards, found.missing, found.partial) == expected
    assert found.complete is (not expected[1] and not expected[2])
