# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the memory guard reads of a release, and the page cache it gives back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _guard_host

GIB = 1 << 30
CACHE = "/srv/hf:/root/.cache/huggingface"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"model": "org/name", "volumes": [CACHE]}, ["/srv/hf/hub/models--org--name/blobs"]),
        ({"model": "org/name", "volumes": []}, []),
        ({"model": "/models/tiny", "volumes": [CACHE, "/disk/models:/models:ro"]}, ["/disk/models/tiny"]),
        ({"model": "/models/tiny", "volumes": ["/a:/models", "/b:/models/tiny"]}, ["/b"]),
        ({"model": "/models-2/tiny", "volumes": ["/a:/models"]}, ["/models-2/tiny"]),
        ({}, []),
    ],
)
def test_checkpoint_folders(record: dict[str, Any], expected: list[str]) -> None:
    assert _guard_host.checkpoint_folders(record) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([["serve", "m"], ["--gpu-memory-utilization", "0.75"]], 90 * GIB),
        ([["--gpu-memory-utilization=0.5"]], 60 * GIB),
        ([["--gpu-memory-utilization"]], 0),
        ([["--gpu-memory-utilization", "much"]], 0),
        ([["serve"]], 0),
        ([], 0),
    ],
)
def test_share(command: list[list[str]], expected: int) -> None:
    assert _guard_host.share({"command": command}, 120 * GIB) == expected


def test_the_pages_of_the_checkpoint_are_given_back(tmp_path: Path) -> None:
    large = tmp_path / "model.safetensors"
    large.write_bytes(b"x" * (2 << 20))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "folder").mkdir()
    said = _guard_host.drop_page_cache([str(tmp_path), str(tmp_path / "missing")])
    assert said == "the page cache of 1 checkpoint file(s), 0.0 GiB on the disk"


def test_the_largest_are_named() -> None:
    said = _guard_host.largest_consumers(2)
    assert said.count("GiB") == 2
    assert ", pid " in said
