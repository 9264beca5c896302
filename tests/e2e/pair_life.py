# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can happen to an engine behind everybody's back, and how the stories see that it is over."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import observe
import site_of_lab as lab

STATE = "/var/lib/gb10-vllm"
# The lab's hosts share one kernel: what a boot leaves is another start of the first process.
BOOT = "stat -c %Y /proc/1"


def container_killed(host: str) -> None:
    lab.on(host, "docker kill vllm")


def client_killed(host: str) -> None:
    """`docker run` itself, which is the unit's main process; its container does not notice."""
    lab.on(host, "systemctl kill --kill-whom=main --signal=KILL vllm")


def engine_killed(host: str) -> None:
    """The first process in the container, under its init; what it has started lives on."""
    lab.on(host, "pkill -KILL -P $(docker inspect --format '{{.State.Pid}}' vllm)")


def docker_restarted(host: str) -> None:
    lab.on(host, "systemctl restart docker", timeout=120)


def power_lost(host: str) -> None:
    lab.lab("kill", host)
    lab.lab("boot", host)


def rebooted(host: str) -> None:
    before = lab.on(host, BOOT)
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        lab.on(host, "systemctl reboot")

    def is_another() -> bool:
        try:
            return lab.on(host, BOOT, timeout=10) != before
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    lab.wait_for(is_another, 120, f"{host} boots")


def disk_filled(host: str) -> None:
    """Nothing can be created where the caches are; the engine ends meanwhile, and cannot be started."""
    since = int(time.time())
    lab.on(host, f"mount -t tmpfs -o nr_inodes=1,size=4k full {STATE}")
    try:
        lab.on(host, "docker kill vllm")
        words = f"journalctl --unit=vllm --since=@{since} --output=cat | grep -c 'no space left' || true"
        lab.wait_for(lambda: int(lab.on(host, words)) > 0, 60, "a start that fails because the disk is full")
    finally:
        lab.on(host, f"umount {STATE}")


EVENTS: tuple[Callable[[str], None], ...] = (
    *(container_killed, client_killed, engine_killed, docker_restarted, power_lost, rebooted, disk_filled),
)


def containers(host: str) -> list[str]:
    """Every container of the host with its state; there is to be one."""
    return lab.on(host, "docker ps --all --format '{{.Names}} {{.State}}'").split("\n")[:-1]


def one_engine_each() -> None:
    assert {host: containers(host) for host in observe.HOSTS} == {host: ["vllm running"] for host in observe.HOSTS}


def keeper(host: str = "spark1") -> dict[str, Any]:
    """What the pair's service says of itself."""
    found: dict[str, Any] = json.loads(lab.on(host, "cat /run/gb10-vllm/pair.json 2>/dev/null || echo '{}'"))
    return found


def is_formed() -> bool:
    """Proven by the service, with the very processes that run now."""
    state = keeper().get("state") or {}
    running = {
        host: lab.on(host, "systemctl show vllm --property=InvocationID --value").strip() for host in observe.HOSTS
    }
    return state.get("phase") == "formed" and state.get("members") == running


def pair_serves_again(event: Callable[[str], None], host: str, seconds: float) -> float:
    """Let it happen; the seconds until clients have an answer from a pair that is new on both hosts."""
    before, began = observe.starts(), time.monotonic()
    event(host)

    def again() -> bool:
        try:
            if not observe.ask().good:
                return False
            now = observe.starts()
            return all(now[name] != before[name] for name in observe.HOSTS) and is_formed() and observe.ask().good
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    lab.wait_for(again, seconds, f"the pair serves again after {event.__name__} on {host}: {keeper()}")
    took = time.monotonic() - began
    said = lab.on("spark1", "journalctl --unit=gb10-vllm-pair --output=cat | grep 'stops the whole pair' | tail -n 1")
    print(f"\n{event.__name__} on {host}: the pair serves again after {took:.0f} s; {said.strip()}")
    one_engine_each()
    return took
