# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models on a disk, as the hub's cache and interrupted downloads leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import weights_info

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def shard(path: Path, bytes_of_data: int = 40) -> None:
    header = json.dumps({"a": {"dtype": "U8", "shape": [bytes_of_data], "data_offsets": [0, bytes_of_data]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(bytes_of_data))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A hub cache with org/model: two shards, linked from a snapshot as the hub's client does."""
    repository = tmp_path / "hub" / "models--org--model"
    snapshot = repository / "snapshots" / COMMIT
    for folder in (repository / "blobs", repository / "refs", snapshot):
        folder.mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT + "\n")
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}})
    )
    for name in ("1", "2"):
        shard(repository / "blobs" / name)
        (snapshot / f"{name}.safetensors").symlink_to(f"../../blobs/{name}")
    return tmp_path


def look(call: Any, home: Path, **changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = call(weights_info, **{"model": "org/model", "huggingface_home": str(home), **changes})
    return result


@pytest.mark.parametrize("revision", ["", "main", COMMIT])
def test_complete(call: Any, home: Path, revision: str) -> None:
    found = look(call, home, revision=revision)
    assert (found["complete"], found["shards"], found["missing"], found["partial"]) == (True, 2, [], [])
    assert found["path"].endswith(f"snapshots/{COMMIT}")


@pytest.mark.parametrize("changes", [{"model": "org/other"}, {"revision": "v2"}, {"model": "/nowhere"}])
def test_unknown(call: Any, home: Path, changes: dict[str, Any]) -> None:
    found = look(call, home, **changes)
    assert (found["complete"], found["path"], found["missing"]) == (False, "", ["the model's folder"])


def test_interrupted(call: Any, home: Path) -> None:
    blobs = home / "hub" / "models--org--model" / "blobs"
    blob = (blobs / "1").read_bytes()
    (blobs / "1").write_bytes(blob[:-1])
    (blobs / "2").rename(blobs / "2.incomplete")
    found = look(call, home)
    assert (found["complete"], found["missing"], found["partial"]) == (False, ["2.safetensors"], ["1.safetensors"])
    (blobs / "1").write_bytes(bytes(len(blob)))  # room was made, nothing was fetched
    assert look(call, home)["partial"] == ["1.safetensors"]


def test_plain_folder(call: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    shard(tmp_path / "model.safetensors")
    found = look(call, tmp_path, model=str(tmp_path))
    assert (found["complete"], found["shards"], found["path"]) == (True, 1, str(tmp_path))


def test_a_file_that_is_no_text(call: Any, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(b"\xff")
    found = look(call, tmp_path, model=str(tmp_path))
    assert found["failed"] is True
    assert "the weights of" in found["msg"]
