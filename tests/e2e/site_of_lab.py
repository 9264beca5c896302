# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab as a site: run playbooks on it, talk to its hosts, read its journal, keep clients sending."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LAB = Path(os.environ.get("GB10_LAB_DIR", "/var/lib/gb10-vllm-lab"))
# Where pytest tells stories side by side, every process but the first has a lab of its own, which uses the first one's cache.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
if WORKER:
    os.environ["GB10_LAB_CACHE"] = str(LAB / "cache")
    os.environ["GB10_LAB_NET"] = str(int(os.environ.get("GB10_LAB_NET", "90")) + 10 * WORKER)
    LAB = LAB.with_name(f"{LAB.name}-beside-{WORKER}")
    os.environ["GB10_LAB_DIR"] = str(LAB)
# The virtual environment's own ansible-playbook, whether or not the environment is activated.
BIN = Path(sys.executable).parent


def lab(*words: str, timeout: float = 900) -> str:
    """A command of the lab, for example `lab("exec", "spark1", "--", "reboot")`; returns what it printed."""
    command = [sys.executable, str(ROOT / "tests" / "lab"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"lab {' '.join(words)} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def describe() -> dict[str, Any]:
    """Addresses, key and images of the running lab."""
    found: dict[str, Any] = json.loads((LAB / "run" / "lab.json").read_text())
    return found


class Site:
    """The lab's site with one of the two engines, and the variables of this story on top of its inventory."""

    def __init__(
        self, engine: str, variables: dict[str, Any] | None = None, inventory: str = "inventories/lab"
    ) -> None:
        self.engine = engine
        self.variables = variables or {}
        self.inventory = inventory

    def play(
        self,
        playbook: str,
        *words: str,
        variables: dict[str, Any] | None = None,
        quiet: bool = True,
        timeout: float = 1200,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook of the clone, as an owner would; never raises for a failed one."""
        command = [str(BIN / "ansible-playbook"), "--inventory", self.inventory, f"playbooks/{playbook}.yml", *words]
        command += ["--extra-vars", json.dumps({**self.variables, **(variables or {})})]
        own = {"ENGINE": self.engine, "PATH": f"{BIN}:{os.environ['PATH']}", "ANSIBLE_FORCE_COLOR": "0"}
        return subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **own, **(environment or {})},
            text=True,
            timeout=timeout,
            check=False,
            capture_output=quiet,
            stdin=subprocess.DEVNULL,
        )

    def must_play(self, playbook: str, *words: str, variables: dict[str, Any] | None = None, quiet: bool = True) -> str:
        """Run a playbook that has to work; its output is in the exception when it does not."""
        done = self.play(playbook, *words, variables=variables, quiet=quiet)
        if done.returncode:
            raise AssertionError(
                f"{playbook} failed ({done.returncode}):\n{(done.stdout or '')[-6000:]}{(done.stderr or '')[-2000:]}"
            )
        return done.stdout or ""

    def killed_play(
        self, playbook: str, after: int, variables: dict[str, Any] | None = None, count: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Like `play`, but SIGKILL takes the controller after so many writes to the journal (0: never).

        The exit status is -9 then; a run that ended before that leaves the number of its writes in the file `count`.
        """
        plugin = {
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests" / "e2e" / "callbacks"),
            "ANSIBLE_CALLBACKS_ENABLED": "kill_after",
            "KILL_AFTER": str(after),
            "KILL_COUNT_FILE": str(count or ""),
        }
        return self.play(playbook, variables=variables, environment=plugin)


@contextlib.contextmanager
def meanwhile(act: Any, *words: Any, **options: Any) -> Iterator[Future[Any]]:
    """Something that goes on beside the block; its end is waited for, and its failure is the block's."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(act, *words, **options)
        yield future
        future.result()


def on(host: str, command: str, timeout: float = 240) -> str:
    """Run a shell command on a lab host and return its output. systemd alone may take 90 s to stop a unit that is just starting."""
    return lab("exec", host, "--", "sh", "-c", command, timeout=timeout)


def journal(keeper: str = "proxy1") -> list[dict[str, Any]]:
    """The newest rollout's events."""
    text = on(keeper, "cat $(ls /var/lib/gb10-vllm/rollouts/*.jsonl | sort | tail -n 1)")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def moment(events: list[dict[str, Any]], step: str, last: bool = False) -> float:
    """Time of the first (or last) event of a step."""
    times = [event["time"] for event in events if event["step"] == step]
    return max(times) if last else min(times)


def base_url(proxy: str = "proxy1") -> str:
    return f"http://{describe()['hosts'][proxy]['address']}:8080/v1"


@contextlib.contextmanager
def clients(out: Path, *words: str, proxy: str = "proxy1") -> Iterator[None]:
    """Real clients that send chat completions through a proxy for as long as the block lasts."""
    command = [sys.executable, str(ROOT / "tests" / "e2e" / "traffic" / "client.py")]
    command += [
        "--base-url",
        base_url(proxy),
        "--model",
        "tiny",
        "--out",
        str(out),
        "--seconds",
        "3600",
        "--concurrency",
        "200",
        *words,
    ]
    process = subprocess.Popen(command)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=120)


def wait_for(condition: Any, seconds: float, what: str) -> float:
    """Wait until the condition holds and return the seconds it took; says what was waited for when it does not."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.25)
    return time.monotonic() - started


def wait_within(run: Future[Any], condition: Any, what: str) -> None:
    """Wait for a moment within a playbook that runs beside, however slow the machine. If it ends first, the story fails with its words."""

    def come() -> bool:
        over = run.done()
        if condition():
            return True
        if over:
            result = run.result()
            raise AssertionError(f"the playbook ended before this: {what}\n{getattr(result, 'stdout', result)[-3000:]}")
        return False

    wait_for(come, 600, what)
