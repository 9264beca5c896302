# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cache keys, the image archive, and what pip is asked for."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path

import engine_site
import images
import pytest
import shell
import trees


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(("a", "bc"), ("ab", "c"), id="the same text cut elsewhere"),
        pytest.param(("a",), ("a", ""), id="one more empty part"),
        pytest.param(("a",), ("b",), id="another text"),
    ],
)
def test_content_key_tells_apart(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert shell.content_key(*one) != shell.content_key(*other)
    assert shell.content_key(*one) == shell.content_key(*one)


def test_tree_key_follows_the_recipe() -> None:
    assert trees.tree_key(["--include=a"]) != trees.tree_key(["--include=b"])
    assert trees.base_tree_path() != trees.image_layer_path()


def test_image_key_follows_engine_and_base() -> None:
    files, environment = images.contents("real")
    key = images.image_key("layer-1.tar", files, environment)
    changed = {**files, "usr/local/bin/vllm": (b"other", 0o755)}
    others = [
        images.image_key("layer-2.tar", files, environment),
        images.image_key("layer-1.tar", changed, environment),
        images.image_key("layer-1.tar", files, [*environment, "X=1"]),
    ]
    assert key not in others
    assert len(set(others)) == 3


def test_archive_is_whole(tmp_path: Path) -> None:
    base = tmp_path / "layer.tar"
    base.write_bytes(images.layer_of({"bin/sh": (b"#!", 0o755)}))
    images.write_archive(tmp_path / "image.tar", base, {"usr/local/bin/vllm": (b"engine", 0o755)}, ["A=1"])
    with tarfile.open(tmp_path / "image.tar") as tar:

        def read(name: str) -> bytes:
            file = tar.extractfile(name)
            assert file is not None
            return file.read()

        (entry,) = json.loads(read("manifest.json"))
        configuration = json.loads(read(entry["Config"]))
        digests = [f"sha256:{hashlib.sha256(read(layer)).hexdigest()}" for layer in entry["Layers"]]
    assert configuration["rootfs"]["diff_ids"] == digests
    assert configuration["config"]["Env"] == ["A=1"]


@pytest.mark.parametrize("tag", ["manylinux_2_36", "manylinux_2_28", "manylinux2014", "manylinux_2_5", "linux"])
def test_platform_tags(tag: str) -> None:
    assert f"{tag}_aarch64" in engine_site.platform_tags("aarch64")


def test_wheels_for_a_newer_c_library_are_not_taken() -> None:
    assert "manylinux_2_39_x86_64" not in engine_site.platform_tags("x86_64")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("cuda: Optional[str] = None\nhip: Optional[str] = None\n", True),
        ("cuda = None\n", True),
        ("cuda: Optional[str] = '13.0'\n", False),
        ("", False),
    ],
)
def test_only_the_cpu_build_of_torch_is_used(text: str, good: bool) -> None:
    if good:
        engine_site.check_torch(text)
    else:
        with pytest.raises(shell.LabError, match="CPU build"):
            engine_site.check_torch(text)


def test_progress_counts_what_pip_has_found() -> None:
    wanted = engine_site.progress("").split(" of ")[1]
    assert engine_site.progress("Collecting a\nProcessing /b.whl\n") == f"engine packages: 2 of {wanted}"
    assert engine_site.progress("Installing collected packages: a\n") == "engine packages: unpacking"
