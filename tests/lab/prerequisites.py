# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages the lab needs on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shell import LabError, say, step

# What must be there (a command, or a file by its absolute path) and the package that brings it.
NEEDS = {
    "mmdebstrap": "mmdebstrap",
    "systemd-nspawn": "systemd-container",
    "docker-registry": "docker-registry",
    "skopeo": "skopeo",
    "ip": "iproute2",
    "ssh": "openssh-client",
    "unshare": "util-linux",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}

# Packages whose service would start with the machine, on the lab's port or with a configuration of nobody's.
SERVICES = ("docker-registry", "haproxy")
POLICY = Path("/usr/sbin/policy-rc.d")

# A host's systemd and its services take about eight of them, and a host that gets none does not boot.
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_INSTANCES = 512


def missing_packages() -> list[str]:
    def there(need: str) -> bool:
        return Path(need).exists() if need.startswith("/") else shutil.which(need) is not None

    return sorted({package for need, package in NEEDS.items() if not there(need)})


def install() -> None:
    packages = missing_packages()
    if packages:
        apt_install(packages)
    allowed = int(INOTIFY.read_text())
    if allowed < INOTIFY_INSTANCES:
        INOTIFY.write_text(f"{INOTIFY_INSTANCES}\n")
        say(
            f"raised fs.inotify.max_user_instances of this machine from {allowed} to {INOTIFY_INSTANCES}, until its next boot"
        )


@contextmanager
def no_services() -> Iterator[None]:
    """Packages installed here start nothing on this machine: what the tests run, they run themselves."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def apt_install(packages: list[str]) -> None:
    if shutil.which("apt-get") is None:
        raise LabError(f"the lab needs {', '.join(packages)}, and this machine has no apt-get to install them with")
    with step(f"apt-get installed {' '.join(packages)} on this machine"), no_services():
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        patient = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300"]
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            done = subprocess.run(
                [*patient, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=900,
                check=False,
            )
            if done.returncode != 0 and arguments[0] == "install":
                raise LabError(f"apt-get could not install {' '.join(packages)}: {done.stderr.strip()}")
    for service in set(SERVICES) & set(packages):
        if Path("/run/systemd/system").exists():
            subprocess.run(["systemctl", "disable", "--now", service], capture_output=True, timeout=60, check=False)
            say(f"switched off the machine's own {service}.service, which the package brought")
