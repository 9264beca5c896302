# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two servers that the contract is about, and how each is started on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._argument_check import check_script
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server


@dataclass(frozen=True)
class Engine:
    name: str
    command: Sequence[str]  # what stands for `vllm`
    model: str
    patience: float  # seconds for a start
    options: Sequence[str] = ()  # that this one needs on this machine
    env: Mapping[str, str] = field(default_factory=dict)
    refused_memory: Sequence[str] = ()
    refused_env: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[], None] = lambda: None  # that it is there

    def serve(
        self, log: Path, options: Sequence[str], env: Mapping[str, str] | None = None, port_taken: bool = False
    ) -> Server:
        words = [*self.command, "serve", self.model, *self.options, *options]
        return Server(words, log, {**self.env, **(env or {})}, port_taken)

    def check_arguments(self, options: Sequence[str]) -> Any:
        with self.on_path() as folder:
            done = subprocess.run(
                ["python3", "-", self.model, *options],
                input=check_script(),
                env={**os.environ, **self.env, "PATH": f"{folder}:{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                text=True,
                timeout=120,
                check=True,
            )
        return json.loads(done.stdout)

    @contextlib.contextmanager
    def on_path(self) -> Iterator[str]:
        """A folder with a command `vllm` as in an image."""
        with tempfile.TemporaryDirectory() as folder:
            wrapper = Path(folder, "vllm")
            wrapper.write_text(f'#!/bin/sh\nexec {" ".join(self.command)} "$@"\n')
            wrapper.chmod(0o755)
            yield folder


ENGINES = (
    Engine(
        name="stand-in",
        command=STAND_IN,
        model="/models/tiny",
        patience=20,
        env={"STANDIN_LOAD_SECONDS": "1", "STANDIN_TOKEN_SECONDS": "0.003"},
        refused_env={"STANDIN_REFUSE_MEMORY": "1"},
    ),
)
