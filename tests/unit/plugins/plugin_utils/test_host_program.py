# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packed programs: complete, the same each time, and they run with Python alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _host_program

OWN = _host_program.OWN
ROOT = Path(_host_program.__file__).parents[1] / "module_utils"
PROGRAMS = sorted(path.stem for path in (ROOT / "_programs").glob("[!_]*.py"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sources = {
        "_programs/__init__.py": "",
        "_programs/say.py": f"import json\nfrom {OWN} import _words, _deep\n\ndef main():\n    print(_words.HELLO)\n    return 3\n",
        "_words.py": f"from {OWN}._deep.inner import HELLO\n",
        "_deep/__init__.py": "",
        "_deep/inner.py": f"import {OWN}._last\nfrom . import near\nfrom .far import FAR\nHELLO = {OWN}._last.HELLO\n",
        "_deep/near.py": "",
        "_deep/far.py": "FAR = 1\n",
        "_last.py": "HELLO = 'hello'\n",
        "_stranger.py": "",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    return tmp_path


def run(packed: bytes, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    file = folder / "program.pyz"
    file.write_bytes(packed)
    # -I: nothing of this test's own environment is found.
    return subprocess.run(
        [sys.executable, "-I", str(file), *words], capture_output=True, text=True, check=False, timeout=30
    )


def test_it_holds_what_it_imports_and_nothing_else(root: Path) -> None:
    assert list(_host_program.needed(root, "say")) == [
        "_deep/__init__.py", "_deep/far.py", "_deep/inner.py", "_deep/near.py", "_last.py", "_programs/__init__.py",
        "_programs/say.py", "_words.py",
    ]  # fmt: skip


def test_it_runs_with_python_alone_and_its_result_is_the_exit_status(root: Path, tmp_path: Path) -> None:
    done = run(_host_program.pack(_host_program.needed(root, "say"), "say"), tmp_path)
    assert (done.returncode, done.stdout) == (3, "hello\n"), done.stderr


def test_the_same_sources_are_the_same_file_and_others_are_not(root: Path) -> None:
    first = _host_program.pack(_host_program.needed(root, "say"), "say")
    (root / "_stranger.py").write_text("changed = True\n")
    assert _host_program.pack(_host_program.needed(root, "say"), "say") == first
    (root / "_last.py").write_text("HELLO = 'good day'\n")
    assert _host_program.pack(_host_program.needed(root, "say"), "say") != first


@pytest.mark.parametrize("program", ["shout", "../_words", "__init__.x", ""])
def test_what_there_is_not_is_refused_with_what_there_is(root: Path, program: str) -> None:
    with pytest.raises(_host_program.ProgramError, match=r"does not have; it has: say$"):
        _host_program.needed(root, program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_of_the_collection_starts_with_python_alone(program: str, tmp_path: Path) -> None:
    done = run(_host_program.pack(_host_program.needed(ROOT, program), program), tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    assert "--config" in done.stdout
