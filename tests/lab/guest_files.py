# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that make a copy of the base tree into one particular host."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path

from settings import FOLDERS, HOSTS, PREFIX_LENGTH, REGISTRY, SUFFIX
from shell import content_key

# nspawn mounts version 1 controllers read-only, and the engine has to make groups in them.
_DOCKER_DROP_IN = """[Service]
ExecStartPre=/bin/sh -c 'for tree in /sys/fs/cgroup /sys/fs/cgroup/*/; do \
if mountpoint -q "$tree"; then mount -o remount,bind,rw "$tree" || true; fi; done'
"""


def machine_id(name: str) -> str:
    # An empty file would count as a first boot, at which systemd switches every service on.
    return hashlib.sha256(f"gb10-lab{SUFFIX} {uuid.getnode()} {name}".encode()).hexdigest()[:32]


def guest_files(name: str) -> dict[str, tuple[str, int]]:
    """Path in the host's tree: (text, mode)."""
    addresses = "".join(f"{address} {host}\n" for host, address in HOSTS.items())
    daemon = {
        "insecure-registries": [REGISTRY],
        # Containers of this collection use the host's network; the lab translates and routes nothing.
        "bridge": "none",
        "iptables": False,
        "ip6tables": False,
        "ip-forward": False,
    }
    network = f"[Match]\nName=host0\n\n[Network]\nAddress={HOSTS[name]}/{PREFIX_LENGTH}\nLinkLocalAddressing=no\n"
    public_key = FOLDERS.ssh_key.with_name(f"{FOLDERS.ssh_key.name}.pub").read_text()
    return {
        "etc/hostname": (f"{name}\n", 0o644),
        "etc/machine-id": (f"{machine_id(name)}\n", 0o444),
        "etc/hosts": (f"127.0.0.1 localhost\n{addresses}", 0o644),
        "etc/systemd/network/10-host0.network": (network, 0o644),
        "etc/systemd/system/docker.service.d/lab.conf": (_DOCKER_DROP_IN, 0o644),
        "etc/docker/daemon.json": (json.dumps(daemon, indent=2) + "\n", 0o644),
        "etc/ssh/ssh_host_ed25519_key": (FOLDERS.host_key.read_text(), 0o600),
        "root/.ssh/authorized_keys": (public_key, 0o600),
    }


def definition(name: str, base_tree: Path) -> str:
    """Changes when a host made today would not be the host made before."""
    files = guest_files(name)
    return content_key(base_tree.name, *(f"{path} {mode:o} {text}" for path, (text, mode) in sorted(files.items())))


def write(name: str, root: Path) -> None:
    for path, (text, mode) in guest_files(name).items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        target.touch(mode=0o600)
        target.write_text(text)
        target.chmod(mode)
