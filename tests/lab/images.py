# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two container images: one base layer, and on it either the stand-in engine or a door to the real one."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import registry
from settings import ENGINE_IN_HOST, FOLDERS, IMAGE_ARCHITECTURE, PYTHON, REGISTRY, REPOSITORY, STANDIN
from shell import LabError, content_key, remove_leftovers, step, write_atomically

# What the container looks like to the roles is what the published image looks like: `vllm` on the path, importable
# from python3. Only that the package comes from a mount is different (an image of 3.5 GB takes minutes per pull).
_REAL_COMMAND = """#!/usr/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""
_REAL_PATH = f"{ENGINE_IN_HOST}/current/site-packages\n"
# Needed by the CPU build on a small machine without a network, so part of the image and not of an inventory.
_REAL_ENVIRONMENT = [
    "HF_HUB_OFFLINE=1",
    "VLLM_NO_USAGE_STATS=1",
    "VLLM_CPU_OMP_THREADS_BIND=nobind",
    "TORCHDYNAMO_DISABLE=1",
    "OMP_NUM_THREADS=1",
]
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CREATED = "2026-01-01T00:00:00Z"


def contents(engine: str) -> tuple[dict[str, tuple[bytes, int]], list[str]]:
    """Files (path: bytes, mode) and environment that this engine adds to the base layer."""
    if engine == "real":
        files = {
            "usr/local/bin/vllm": (_REAL_COMMAND.encode(), 0o755),
            f"usr/local/lib/python{PYTHON}/dist-packages/vllm-engine.pth": (_REAL_PATH.encode(), 0o644),
        }
        return files, [_PATH, *_REAL_ENVIRONMENT]
    if not STANDIN.exists():
        raise LabError(f"the stand-in engine is missing: {STANDIN}")
    return {"usr/local/bin/vllm": (STANDIN.read_bytes(), 0o755)}, [_PATH]


def layer_of(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, (data, mode) in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def image_key(base: str, files: dict[str, tuple[bytes, int]], environment: list[str]) -> str:
    return content_key(base, layer_of(files), *environment)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_archive(target: Path, base_layer: Path, files: dict[str, tuple[bytes, int]], environment: list[str]) -> None:
    """A `docker save` archive, written by hand: two layers, a configuration and a table of contents."""
    top = layer_of(files)
    layers = [_digest_of(base_layer), hashlib.sha256(top).hexdigest()]
    configuration = json.dumps(
        {
            "architecture": IMAGE_ARCHITECTURE,
            "os": "linux",
            "created": _CREATED,
            "config": {"Env": environment, "Cmd": ["/bin/bash"], "WorkingDir": "/"},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}" for layer in layers]},
            "history": [
                {"created": _CREATED, "created_by": "lab base"},
                {"created": _CREATED, "created_by": "lab engine"},
            ],
        }
    ).encode()
    configuration_name = f"{hashlib.sha256(configuration).hexdigest()}.json"
    names = [f"{layer}/layer.tar" for layer in layers]
    listing = json.dumps([{"Config": configuration_name, "RepoTags": None, "Layers": names}]).encode()
    with tarfile.open(target, "w") as tar:
        for name, data in ((configuration_name, configuration), (names[1], top), ("manifest.json", listing)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        tar.add(base_layer, names[0])


def publish(engine: str, base_layer: Path) -> str:
    """Make sure the registry has this engine's image; returns its full name with digest."""
    files, environment = contents(engine)
    key = image_key(base_layer.name, files, environment)
    record = FOLDERS.cache / "images" / f"{engine}-{key}"
    if not (record.exists() and registry.has(record.read_text().strip())):
        with step(f"{engine} image built and pushed"):
            record.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(record.parent, f".new-{engine}*")
            archive = record.with_name(f".new-{engine}.tar")
            write_archive(archive, base_layer, files, environment)
            write_atomically(record, registry.push(archive, f"lab-{engine}") + "\n")
            remove_leftovers(record.parent, f".new-{engine}*")
    return f"{REGISTRY}/{REPOSITORY}@{record.read_text().strip()}"
