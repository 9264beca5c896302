# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host of a pair looks at and does: its own unit, container and ports, and questions to its engine.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of _pair.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate_probe, _host, _http, _pair, _pause, _stable
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER

STOPPED = ("inactive", "failed")
# Beyond the unit's own budget: for docker to remove what is left, and for the memory to come back.
PROOF_SECONDS = 60
SETTLE_BYTES = 256 * 2**20
# What an engine counts up whenever it works, a long prompt included.
_PROGRESS = re.compile(
    r"^vllm:(?:prompt_tokens_total|generation_tokens_total|iteration_tokens_total_count)(?:\{.*\})? (\S+)$", re.M
)


@dataclass(frozen=True)
class Release:
    """What the current release says of this rank."""

    identity: str
    is_split: bool
    rank: int
    port: int
    master_port: int
    model: str
    max_model_len: int | None
    budgets: Mapping[str, float]


def release(base: str) -> Release | None:
    content = _host.read_json(f"{base}/current/release.json")
    if content is None:
        return None
    words = [word for line in content["command"] for word in line]
    master = words[words.index("--master-port") + 1] if "--master-port" in words else 0
    return Release(
        identity=content["id"],
        is_split=content["topology"] == "split",
        rank=int(content["rank"]),
        port=int(content["port"]),
        master_port=int(master),
        model=content["served_model_name"],
        max_model_len=content.get("max_model_len"),
        budgets=content["budgets"],
    )


def hindrance(found: Release | None, unit: Mapping[str, str], rollouts: tuple[str, ...], pause_folder: str) -> str:
    """Why nothing may act on this host; empty if it may."""
    if found is None:
        return "no release is in use"
    if not found.is_split:
        return f"the release in use ({found.identity}) is no pair"
    if paused := _pause.paused(pause_folder, time.time()):
        return f"paused: {paused}"
    if unit.get("UnitFileState") != "enabled":
        return f"{_host.UNIT} is {unit.get('UnitFileState') or 'not there'}, and only an enabled one is to run"
    if not rollouts:
        return f"the release in use ({found.identity}) never became stable"
    return ""


def rollouts(base: str, identity: str) -> tuple[str, ...]:
    return tuple(entry["rollout"] for entry in _stable.read(base) if entry["release"] == identity)


def look(name: str, base: str, pause_folder: str) -> tuple[_pair.Rank, Release | None]:
    """This host as it is now."""
    unit, found = _host.unit_state(), release(base)
    stable = rollouts(base, found.identity) if found else ()
    # Between its end and its restart by systemd a unit still has its old name, and nothing behind it.
    running = unit["ActiveState"] not in STOPPED and not unit["SubState"].startswith("auto-restart")
    rank = _pair.Rank(
        name=name,
        hindrance=hindrance(found, unit, stable, pause_folder),
        running=running,
        invocation=unit.get("InvocationID", ""),
        gone=not running and found is not None and not left(found),
        rollouts=stable,
        is_split=bool(found and found.is_split),
    )
    return rank, found


def left(found: Release) -> list[str]:
    """What of the rank is left, in words."""
    with contextlib.suppress(_host.HostError):
        remains = []
        if _host.unit_state()["ActiveState"] not in STOPPED:
            remains.append(f"{_host.UNIT} is not stopped")
        if container := _host.container_state(CONTAINER):
            remains.append(f"container {CONTAINER} is {container['status']}")
        if found.rank == 0:
            remains += [f"port {port} is open" for port in (found.port, found.master_port) if _host.is_listening(port)]
        return remains
    return ["docker does not answer"]


def stop(found: Release) -> str:
    """Stop this rank and prove it; what is left, in words, empty when nothing is."""
    budget = _host.Deadline(found.budgets["unit_stop"] + PROOF_SECONDS)
    with contextlib.suppress(_host.HostError):
        _host.run(["systemctl", "stop", _host.UNIT], timeout=found.budgets["unit_stop"] + PROOF_SECONDS, check=False)
    # The unit removes its container; what is left now belongs to nobody.
    if left(found):
        with contextlib.suppress(_host.HostError):
            _host.run(["docker", "rm", "--force", CONTAINER], timeout=PROOF_SECONDS, check=False)
    while (remains := left(found)) and budget.left > 0:
        budget.pause(0.5)
    if not remains:
        settle(_host.Deadline(PROOF_SECONDS))
    return "; ".join(remains)


def settle(budget: _host.Deadline) -> None:
    """Wait until two readings of the free memory in a row are alike; the next start needs it all."""
    before = _host.memory_available_bytes()
    while budget.left > 0:
        budget.pause(0.5)
        now = _host.memory_available_bytes()
        if abs(now - before) <= SETTLE_BYTES:
            return
        before = now


def start() -> str:
    """Start this rank; why it could not be started, empty if it was."""
    try:
        _host.run(["systemctl", "reset-failed", _host.UNIT], check=False)
        # It returns when the container's process runs; that it loads takes longer.
        _host.run(["systemctl", "start", _host.UNIT], timeout=120)
    except _host.HostError as error:
        return str(error)
    return ""


class Prover:
    """Asks the head's engine for tokens, and remembers how far its counters were."""

    def __init__(self, gate: Mapping[str, Any], secrets: str) -> None:
        self._gate = gate
        self._secrets = secrets
        self._progress: float | None = None

    def prove(self, found: Release, invocation: str, serves: bool) -> _pair.Proof:
        """`serves`: one token is enough; before that the answer has to be the expected one."""
        base = _gate_probe.base_url("127.0.0.1", found.port)
        health = _gate_probe.health(base)
        if health.closed:
            return _pair.Proof(_pair.CLOSED, "nobody listens on its port", invocation)
        options = {
            **{name: option.get("default") for name, option in _gate_probe.OPTIONS.items()},
            **self._gate,
            "model": found.model,
            "max_model_len": found.max_model_len,
            "api_key": api_key(self._secrets),
        }
        if serves:
            options["max_tokens"] = 1
        answer = _gate_probe.ask(base, options, {})
        if answer.status == 200 and serves:
            return _pair.Proof(_pair.GOOD, "", invocation)
        if answer.status == 200:
            step = _gate_probe.completion(base, options, _gate_probe.rules(options))
            outcome = _pair.GOOD if step.good else _pair.BAD
            return _pair.Proof(outcome, step.reason, invocation)
        reason = f"a completion was answered {answer.status or 'not at all'} {answer.problem}".rstrip()
        # A wrong key says nothing about the engine, and one that works is only busy.
        if answer.status in (401, 403) or self._moved(base):
            return _pair.Proof(_pair.BUSY, reason, invocation)
        return _pair.Proof(_pair.BAD, reason, invocation)

    def _moved(self, base: str) -> bool:
        """Whether the engine has worked since its counters were last read."""
        page = _http.get(f"{base}/metrics", timeout=5)
        before, self._progress = self._progress, sum(float(value) for value in _PROGRESS.findall(page.body))
        return page.status == 200 and before is not None and self._progress > before


def api_key(secrets: str) -> str:
    with contextlib.suppress(OSError):
        for line in Path(secrets).read_text().splitlines():
            if line.startswith("VLLM_API_KEY="):
                return line.partition("=")[2]
    return ""


def replace_file(path: str, content: str) -> None:
    """For files that are written all the time and mean nothing after a power loss: atomic, without waiting for the disk."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "w") as stream:
            stream.write(content)
        os.chmod(temporary, 0o644)
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
