# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts: a tree on the base tree, a container with systemd in it, and a supervisor that is its power supply."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cgroups
import guest_files
import network
import processes
import remote
from settings import BRIDGE, ENGINE_IN_HOST, FOLDERS, HOSTS, SOURCE
from shell import lock, remove_tree, run, say, step, write_atomically
from trees import base_tree_path

# systemd-nspawn --keep-unit ends with this when the host asked for a reboot.
REBOOT = 133
_PR_SET_PDEATHSIG = 1


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Two lab commands on one host wait for each other; on two hosts they do not."""
    with lock(FOLDERS.run / f"{name}.lock", timeout=180):
        yield


def _supervisor_file(name: str) -> Path:
    return FOLDERS.host(name) / "supervisor.pid"


def root(name: str) -> Path:
    return FOLDERS.host(name) / "root"


def running(name: str) -> bool:
    return processes.remembered(_supervisor_file(name)) is not None


def create(name: str) -> None:
    """Make the host's disk unless it is there and made from today's definition."""
    folder, base = FOLDERS.host(name), base_tree_path()
    wanted, written = guest_files.definition(name, base), folder / "definition"
    if written.exists() and written.read_text() == wanted:
        return
    if written.exists():
        say(f"{name} was made from another definition of the lab, making it anew")
    throw_away(name)
    for part in ("upper", "work", "root", "docker"):
        (folder / part).mkdir(parents=True)
    write_atomically(folder / "base", str(base))
    _mount(name)
    guest_files.write(name, root(name))
    write_atomically(written, wanted)


def _mount(name: str) -> None:
    if not os.path.ismount(root(name)):
        folder = FOLDERS.host(name)
        base = (folder / "base").read_text()
        layers = f"lowerdir={base},upperdir={folder / 'upper'},workdir={folder / 'work'}"
        run(["mount", "-t", "overlay", f"gb10-lab-{name}", "-o", layers, str(root(name))])


def _unmount(name: str) -> None:
    while os.path.ismount(root(name)):
        run(["umount", str(root(name))])


def kill(name: str) -> None:
    """Power loss: nothing inside gets to say a word. Also clears what an earlier kill left behind."""
    processes.end(_supervisor_file(name))
    cgroups.remove(name)
    network.remove_wire(name)
    _unmount(name)


def throw_away(name: str) -> None:
    kill(name)
    remove_tree(FOLDERS.host(name))


def start(name: str) -> None:
    """Power on, without waiting for the host to be ready."""
    if running(name):
        return
    kill(name)
    create(name)
    _mount(name)
    with Path(remote.console(name)).open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, str(SOURCE), "supervise", name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    processes.remember(_supervisor_file(name), supervisor.pid)


def boot(name: str) -> None:
    with locked(name):
        if not running(name):
            with step(f"{name} ({HOSTS[name]}) booted"):
                start(name)
                remote.wait_ready(name)
        else:
            remote.wait_ready(name)


def fresh(name: str) -> None:
    with locked(name):
        with step(f"{name} thrown away"):
            throw_away(name)
        with step(f"{name} ({HOSTS[name]}) booted"):
            start(name)
            remote.wait_ready(name)


def nspawn_command(name: str) -> list[str]:
    return [
        "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", f"--machine={network.machine(name)}",
        f"--directory={root(name)}", f"--network-bridge={BRIDGE}", "--capability=all", "--link-journal=no",
        "--resolv-conf=off", "--timezone=off",
        # On an overlay the container engine would fall back to copying whole images.
        f"--bind={FOLDERS.host(name) / 'docker'}:/var/lib/docker",
        f"--bind-ro={FOLDERS.engines}:{ENGINE_IN_HOST}",
        f"--bind-ro={FOLDERS.models}:/models",
    ]  # fmt: skip


def supervise(name: str) -> int:
    """Run the container until it is switched off, again after each reboot. Started by `start` in the background."""
    processes.remember(_supervisor_file(name), os.getpid())
    libc = ctypes.CDLL(None)
    while True:
        cgroups.remove(name)
        network.remove_wire(name)
        groups = cgroups.create(name)

        def enter(groups: list[Path] = groups) -> None:
            # The container dies with its supervisor, whatever kills that one.
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            cgroups.join(groups)

        returncode = subprocess.call(
            nspawn_command(name), stdin=subprocess.DEVNULL, preexec_fn=enter,
            env={**os.environ, "SYSTEMD_SECCOMP": "0"},
        )  # fmt: skip
        if returncode != REBOOT:
            # What is left when somebody killed only systemd-nspawn would be a host without a power supply.
            cgroups.remove(name)
            network.remove_wire(name)
            return returncode
