# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs playbooks as an owner does, and records every connection that Ansible would have made."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# A clone brings its own collection path; a copy for ansible-test already lies in one.
TREE = ROOT.parents[2] if ROOT.parts[-3:] == ("ansible_collections", "gb10", "vllm") else ROOT / ".collections"
# The program of this Python first, whether or not its virtual environment is activated.
PROGRAMS = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def play(
    folder: Path,
    playbook: Path | str,
    inventory: Path | str,
    variables: dict[str, Any] | None = None,
    programs: Path | None = None,
    configuration: Path = ROOT / "ansible.cfg",
) -> subprocess.CompletedProcess[str]:
    """Run a playbook of the clone with a home, an `ssh` that only writes down its call, and nothing else of this machine.

    The folder `programs` has others that come before those of this machine.
    """
    program = shutil.which("ansible-playbook", path=PROGRAMS)
    assert program, "ansible-playbook is not installed beside this Python or on the PATH"
    ssh = folder / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$*" >> "{folder}/connections"\nexit 255\n')
    ssh.chmod(0o755)
    environment = {
        "PATH": f"{programs}{os.pathsep}{PROGRAMS}" if programs else PROGRAMS,
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ANSIBLE_CONFIG": str(configuration),
        "ANSIBLE_COLLECTIONS_PATH": str(TREE),
        "ANSIBLE_SSH_EXECUTABLE": str(ssh),
        "ANSIBLE_NOCOLOR": "1",
    }
    return subprocess.run(
        [program, "--inventory", str(inventory), str(playbook), "--extra-vars", json.dumps(variables or {})],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def connections(folder: Path) -> list[str]:
    """The connections that were tried."""
    record = folder / "connections"
    return record.read_text().splitlines() if record.exists() else []
