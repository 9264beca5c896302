# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ssh into the hosts: the key pair of the lab, the host key, and commands."""

from __future__ import annotations

import shlex
import socket
import subprocess

from settings import FOLDERS, HOSTS
from shell import LabError, run, wait_until, write_atomically


def create_keys() -> None:
    for key in (FOLDERS.ssh_key, FOLDERS.host_key):
        public = key.with_name(f"{key.name}.pub")
        if not (key.exists() and public.exists()):
            key.parent.mkdir(parents=True, exist_ok=True)
            key.unlink(missing_ok=True)
            public.unlink(missing_ok=True)
            run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gb10-lab", "-f", str(key)])
    # All hosts show the same key, so that a host thrown away and made anew is still the known one.
    host_key = " ".join(FOLDERS.host_key.with_name(f"{FOLDERS.host_key.name}.pub").read_text().split()[:2])
    lines = [f"{name},{address} {host_key}\n" for name, address in HOSTS.items()]
    write_atomically(FOLDERS.known_hosts, "".join(lines))


def ssh_command(name: str, command: list[str]) -> list[str]:
    options = {
        "UserKnownHostsFile": FOLDERS.known_hosts,
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": 5,
        "ServerAliveInterval": 5,
        "LogLevel": "ERROR",
    }
    flags = [flag for key, value in options.items() for flag in ("-o", f"{key}={value}")]
    # ssh joins its arguments with spaces; quoting keeps them the arguments that were given.
    return ["ssh", "-F", "none", "-i", str(FOLDERS.ssh_key), *flags, f"root@{HOSTS[name]}", shlex.join(command)]


def execute(name: str, command: list[str]) -> int:
    """Run the command with this terminal; returns its exit status."""
    return subprocess.call(ssh_command(name, command))


def answers(name: str, command: list[str]) -> bool:
    """True if the command ends well on the host. Never raises: a host that cannot be reached answers False."""
    try:
        with socket.create_connection((HOSTS[name], 22), timeout=1):
            pass
        return run(ssh_command(name, command), timeout=20, check=False).returncode == 0
    except (OSError, LabError):
        return False


def wait_ready(name: str, timeout: float = 90) -> None:
    """Ready means: systemd has finished its start and the container engine runs."""
    check = ["sh", "-c", "systemctl is-active --quiet docker.service && ! systemctl list-jobs --no-legend | grep -q ."]
    wait_until(lambda: answers(name, check), timeout, f"{name}: ssh and docker (console: {console(name)})")


def console(name: str) -> str:
    return str(FOLDERS.host(name) / "console.log")
