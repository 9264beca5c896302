# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stories of sweeps share: the client for the stand-in, the runs on a host's disk, a controller that is killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

import site_of_lab as lab

SWEEPS = "/var/lib/gb10-vllm/sweeps"
NOTE = "/var/lib/gb10-vllm/rollouts/borrowed.json"


def client_for_the_stand_in() -> dict[str, Any]:
    """The stand-in's image has no bench client; the real engine's has, and has to be on the host like any other."""
    return {"vllm_tune_image": lab.describe()["images"]["real"], "vllm_tune_volumes": lab.describe()["venv_mounts"]}


def have_the_client(*hosts: str) -> None:
    for host in hosts:
        lab.on(host, f"docker pull --quiet {lab.describe()['images']['real']}", timeout=120)


def runs(host: str) -> dict[str, dict[str, Any]]:
    """The finished runs on the host, by the name of their sweep and their own."""
    found = {}
    for path in lab.on(host, f"ls {SWEEPS}/*/runs/*.json 2>/dev/null || true").split():
        found["/".join(path.split("/")[-3::2])] = json.loads(lab.on(host, f"cat {path}"))
    return found


def killed(site: lab.Site, playbook: str, variables: dict[str, Any], when: Callable[[], bool], seconds: float) -> None:
    """Run the playbook and kill the controller, with everything that it has started here, once the condition holds."""
    command = [str(lab.BIN / "ansible-playbook"), "--inventory", site.inventory, f"playbooks/{playbook}.yml"]
    command += ["--extra-vars", json.dumps({**site.variables, **variables})]
    own = {"ENGINE": site.engine, "PATH": f"{lab.BIN}:{os.environ['PATH']}", "ANSIBLE_FORCE_COLOR": "0"}
    process = subprocess.Popen(
        command, cwd=lab.ROOT, env={**os.environ, **own}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + seconds
        while not when():
            if process.poll() is not None or time.monotonic() > end:
                os.killpg(process.pid, signal.SIGKILL)
                raise AssertionError(
                    f"{playbook} was not to be killed in the middle:\n{process.communicate()[0][-6000:]}"
                )
            time.sleep(0.25)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
