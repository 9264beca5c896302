# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The argument check in the surroundings it may meet in an image; with the real vLLM it is in tests/contract."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._argument_check import check_script
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN

# As much of vLLM's layout as the check relies on; it logs to standard output, as vLLM does.
PACKAGE = {
    "__init__.py": "",
    "platforms/__init__.py": """
class Unspecified:
    def is_unspecified(self): return True
current_platform = Unspecified()
""",
    "platforms/cpu.py": "class CpuPlatform: pass",
    "tool_parsers.py": """
class ToolParserManager:
    list_registered = staticmethod(lambda: ["hermes", "qwen3_xml"])
""",
    "reasoning.py": """
class ReasoningParserManager:
    list_registered = staticmethod(lambda: ["qwen3"])
""",
    "entrypoints/__init__.py": "",
    "entrypoints/cli/__init__.py": "",
    "entrypoints/cli/serve.py": """
class ServeSubcommand:
    @staticmethod
    def cmd(args): raise SystemExit("the engine was started")
""",
    "entrypoints/cli/main.py": """
import argparse, os
import vllm.entrypoints.cli.serve as serve
from vllm import platforms
def main():
    os.write(1, b"INFO a log line\\n")
    assert type(platforms.current_platform).__name__ == "CpuPlatform"
    parser = argparse.ArgumentParser(prog="vllm")
    sub = parser.add_subparsers().add_parser("serve")
    sub.add_argument("model")
    sub.add_argument("--port", type=int)
    sub.add_argument("--tool-call-parser")
    sub.add_argument("--reasoning-parser")
    sub.add_argument("--gpu-memory-utilization", type=float, default=0.9)
    args = parser.parse_args()
    if args.port == 13: raise TypeError("Error: not this port")
    serve.ServeSubcommand().cmd(args)
""",
}


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def check(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run the script as in an image whose commands are those of `folder`, and a folder named vllm lies about."""
    (folder / "work" / "vllm").mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-", *arguments],
        input=check_script(),
        env={"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        cwd=folder / "work",
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    (line,) = done.stdout.splitlines()
    result: dict[str, Any] = json.loads(line)
    return result


@pytest.fixture(params=["direct", "env", "wrapper", "long path"])
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A package vllm that only a Python off the PATH has, and the ways in which the command may lead there."""
    for name, text in PACKAGE.items():
        path = tmp_path / "site" / "vllm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    python = tmp_path / "private" / "python3"
    executable(python, f'#!/bin/sh\nPYTHONPATH={tmp_path / "site"} exec {sys.executable} "$@"\n')
    real = tmp_path / "private" / "vllm"
    executable(real, f"#!{python}\n")
    command = tmp_path / "bin" / "vllm"
    if request.param == "direct":
        executable(command, f"#!{python}\n")
    elif request.param == "env":
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "python3-of-vllm").symlink_to(python)
        executable(command, "#!/usr/bin/env -S python3-of-vllm\n")
    elif request.param == "wrapper":
        executable(command, f'#!/bin/sh\n# hands over\nexport A=1\nexec "{real}" "$@"\n')
    else:
        executable(command, f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\nimport sys\n")
    return tmp_path


def test_package_accepts(image: Path) -> None:
    good = ["m", "--port", "1", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3"]
    assert check(image, *good) == {"ok": True, "message": ""}


@pytest.mark.parametrize("image", ["direct"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prot", "1"], "unrecognized arguments: --prot 1"),
        (["--port", "high"], "argument --port: invalid int value: 'high'"),
        (["--port", "13"], "TypeError: Error: not this port"),
        (["--tool-call-parser", "hermse"], "ValueError: argument --tool-call-parser: unknown parser 'hermse'"),
        (["--reasoning-parser", "q"], "ValueError: argument --reasoning-parser: unknown parser 'q'"),
        (["--gpu-memory-utilization", "78"], "ValueError: argument --gpu-memory-utilization: 78.0 is not in (0, 1]"),
    ],
)
def test_package_refuses_by_name(image: Path, arguments: list[str], message: str) -> None:
    result = check(image, "m", *arguments)
    assert not result["ok"]
    assert result["message"].startswith(message)


@pytest.mark.parametrize(
    ("arguments", "ok", "message"),
    [
        (["--port", "1"], True, ""),
        (["--prot", "1"], False, "unrecognized arguments: --prot 1"),
        (["--dtype", "int3"], False, "argument --dtype: invalid choice"),
        (["--enable-auto-tool-choice"], False, "--enable-auto-tool-choice requires --tool-call-parser"),
    ],
)
def test_stand_in(tmp_path: Path, arguments: list[str], ok: bool, message: str) -> None:
    executable(tmp_path / "bin" / "vllm", Path(STAND_IN[1]).read_text())
    result = check(tmp_path, "m", *arguments)
    assert result["ok"] is ok
    assert message in result["message"]


def test_image_without_vllm(tmp_path: Path) -> None:
    result = check(tmp_path, "m")
    assert not result["ok"]
    assert "neither" in result["message"]
