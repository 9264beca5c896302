# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian trees made by mmdebstrap: one for the hosts, one for the container images. Cached by their recipe."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from settings import FOLDERS, MACHINE, MIRROR, SUITE
from shell import build, content_key, remove_leftovers, step

HOST_PACKAGES = (
    "systemd,systemd-sysv,dbus,python3,python3-apt,sudo,openssh-server,iproute2,procps,nginx-light,nftables,curl,"
    "ca-certificates,docker.io,iptables,keepalived,less,libnuma1,libgomp1,"
    "prometheus,prometheus-alertmanager,prometheus-node-exporter"
)
IMAGE_PACKAGES = "python3,libstdc++6,libnuma1,libgomp1,bash"

# Run by mmdebstrap with the tree as $1. The roles under test decide about nginx and what watches the site, so a fresh host must
# not run them; keys and ids are given to each host by the lab.
HOST_CUSTOMIZATION = """
chroot "$1" systemctl enable systemd-networkd.service docker.service ssh.service
chroot "$1" systemctl disable keepalived.service nginx.service nftables.service apt-daily.timer apt-daily-upgrade.timer \
  dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer 2>/dev/null || true
chroot "$1" systemctl disable prometheus.service prometheus-alertmanager.service prometheus-node-exporter.service 2>/dev/null
rm -f "$1"/etc/ssh/ssh_host_* "$1"/etc/nginx/sites-enabled/default "$1"/etc/resolv.conf
mkdir -p "$1"/models "$1"/opt/vllm "$1"/var/log/journal "$1"/etc/docker "$1"/root/.ssh
chmod 0700 "$1"/root/.ssh
test ! -e "$1"/etc/systemd/system/multi-user.target.wants/nginx.service
test -z "$(find "$1"/etc/systemd/system -name 'prometheus*')"
"""

_SLIM = [
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
]
# 200 MB of data for the picture of a graph that nobody in the lab looks at.
_NO_ZONES = "--dpkgopt=path-exclude=/usr/share/javascript/moment-timezone/*"
_HOST = [
    *("--variant=minbase", f"--include={HOST_PACKAGES}", *_SLIM, _NO_ZONES),
    f"--customize-hook={HOST_CUSTOMIZATION}",
]
# Only what Debian calls essential: no package manager in the image.
_IMAGE = ["--variant=essential", f"--include={IMAGE_PACKAGES}", *_SLIM]


def tree_key(options: list[str]) -> str:
    return content_key(SUITE, MACHINE, MIRROR, *options)


def base_tree_path() -> Path:
    return FOLDERS.cache / f"base-{tree_key(_HOST)}"


def image_layer_path() -> Path:
    return FOLDERS.cache / f"layer-{tree_key(_IMAGE)}.tar"


def build_all() -> None:
    _make(base_tree_path(), _HOST, "base tree of the hosts")
    _make(image_layer_path(), _IMAGE, "base layer of the images")


def _make(target: Path, options: list[str], title: str) -> None:
    """Build beside the target and rename: what has the right name is whole."""
    if target.exists():
        return
    FOLDERS.cache.mkdir(parents=True, exist_ok=True)
    with step(f"{title} built with mmdebstrap"):
        kind = target.name.split("-")[0]
        remove_leftovers(FOLDERS.cache, f".new-{kind}-*")
        temporary = FOLDERS.cache / f".new-{kind}-tmp"
        temporary.mkdir()
        candidate = FOLDERS.cache / f".new-{target.name}"
        log = FOLDERS.cache / "logs" / f"{kind}.log"
        mirror = [MIRROR] if MIRROR else []
        # Times in the tree would otherwise differ from build to build, and so would the image's digest.
        env = {"SOURCE_DATE_EPOCH": "1767225600", "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"}
        try:
            build(["mmdebstrap", *options, SUITE, str(candidate), *mirror], log, timeout=900, env=env)
            os.sync()
            candidate.rename(target)
        finally:
            remove_leftovers(FOLDERS.cache, f".new-{kind}-*")


_INSIDE = """set -e
base=$1; shift
mount --bind "$base" "$base"
while [ "$1" != -- ]; do mount --bind "$1" "$base$2"; shift 2; done
shift
mount -t tmpfs tmpfs "$base/tmp"
mount -t tmpfs tmpfs "$base/dev/shm"
mount -t proc proc "$base/proc"
mount -o remount,bind,ro "$base"
exec chroot "$base" env HOME=/tmp "$@"
"""


def run_inside(command: list[str], binds: Mapping[Path, str], log: Path, timeout: float) -> None:
    """Run a command in the base tree, with folders of this machine in it, and without leaving a trace in the tree.

    So the engine's files meet the very Python and C library that they will meet in the hosts and images.
    """
    pairs = [part for source, target in binds.items() for part in (str(source), target)]
    build(["sh", "-c", _INSIDE, "inside", str(base_tree_path()), *pairs, "--", *command], log, timeout)
