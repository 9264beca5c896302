# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two servers that the contract is about, and how each is started on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._argument_check import check_script
from ansible_collections.gb10.vllm.tests.lab.settings import ENGINE_IN_HOST, FOLDERS
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server

LENGTH = 1024  # of the context, in tokens


@dataclass(frozen=True)
class Engine:
    name: str
    vllm: Sequence[str]  # what stands for the command `vllm`
    python: Sequence[str]  # what stands for the `python3` of the image
    patience: float  # seconds for a start
    options: Sequence[str] = ()  # that it needs on such a machine
    refused_memory: Sequence[str] = ()  # options with which there is too little memory
    env: Mapping[str, str] = field(default_factory=dict)
    refused_env: Mapping[str, str] = field(default_factory=dict)
    short_kv: Sequence[str] = ()  # options with which the cache is too small for LENGTH tokens
    short_kv_env: Mapping[str, str] = field(default_factory=dict)
    model: str = "/models/tiny"

    def serve(
        self, log: Path, options: Sequence[str], env: Mapping[str, str] | None = None, port_taken: bool = False
    ) -> Server:
        words = [*self.vllm, "serve", self.model, *self.options, *options]
        return Server(words, log, {**self.env, **(env or {})}, port_taken)

    def kill_core(self, server: Server, faults: Path) -> None:
        """The process that computes dies under the server that answers."""
        if self.name == "stand-in":
            faults.write_text('{"exit_after": 0.1}')
            return
        (core,) = (pid for pid in descendants(server.process.pid) if "EngineCore" in title(pid))
        os.kill(core, signal.SIGKILL)

    def check_arguments(self, options: Sequence[str], folder: Path) -> Any:
        """What the argument check says inside the image; `folder` becomes a place of commands, like /usr/local/bin."""
        if self.name == "stand-in":
            (folder / "vllm").symlink_to(self.vllm[-1])
        done = subprocess.run(
            [*self.python, "-", self.model, *options],
            input=check_script(),
            env={**os.environ, **self.env, "PATH": f"{folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=self.patience,
            check=True,
        )
        return json.loads(done.stdout)


def title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [found for child in map(int, children) for found in (child, *descendants(child))]


# The hosts' own tree in a mount namespace of the process: the engine's packages are for its Python and libraries.
_INSIDE = """set -e
base=$1 engines=$2 model=$3; shift 3
mount --bind "$base" "$base"
mount --bind "$engines" "$base$0"
mount -t tmpfs tmpfs "$base/models"
mkdir "$base/models/tiny"
mount --bind "$model" "$base/models/tiny"
mount -t tmpfs tmpfs "$base/tmp"
mount --rbind /proc "$base/proc"
mount --rbind /sys "$base/sys"
mount --rbind /dev "$base/dev"
exec chroot "$base" "$@"
"""


def newest(pattern: str) -> Path:
    found = sorted(FOLDERS.cache.glob(pattern), key=lambda path: path.stat().st_mtime)
    assert found, f"the contract needs the real engine, and {FOLDERS.cache / pattern} is missing: run `make lab` first"
    return found[-1]


def real() -> Engine:
    assert (FOLDERS.engines / "current" / "complete").exists(), (
        f"the contract needs the real engine, and there is no complete one in {FOLDERS.engines}: run `make lab` first"
    )
    places = [str(place) for place in (newest("base-*"), FOLDERS.engines, newest("models/[!.]*"))]
    inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _INSIDE, ENGINE_IN_HOST, *places]
    python = [*inside, "/usr/bin/env", f"PYTHONPATH={ENGINE_IN_HOST}/current/site-packages", "HOME=/tmp", "python3"]
    return Engine(
        name="real",
        vllm=[*python, "-m", "vllm.entrypoints.cli.main"],
        python=python,
        patience=240,
        options=["--enforce-eager", "--gpu-memory-utilization", "0.1", "--max-num-seqs", "8"],
        refused_memory=["--gpu-memory-utilization", "0.999"],
        short_kv=["--kv-cache-memory-bytes", "524288"],  # the tiny model takes 1 KiB per token
        env={
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "TORCHDYNAMO_DISABLE": "1",
        },
    )


def stand_in() -> Engine:
    return Engine(
        name="stand-in",
        vllm=STAND_IN,
        python=["python3"],
        patience=20,
        env={"STANDIN_LOAD_SECONDS": "1", "STANDIN_TOKEN_SECONDS": "0.003"},
        refused_env={"STANDIN_REFUSE_MEMORY": "1"},
        short_kv_env={"STANDIN_KV_TOKENS": "512"},
    )


ENGINES = {"stand-in": stand_in, "real": real}
