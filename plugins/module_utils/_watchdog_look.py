# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watchdog's eyes: unit, port, metrics, one token, and what the site says of this host.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge. Reads, asks, changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate_probe, _host, _http, _pause, _stable
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch, reading, text
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog import Figures, Question, Sample
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog_decide import Standing

DOCKER = "docker.service"
STEPS = "vllm:iteration_tokens_total_count"
# A busy server may take its time for an answer; a watchdog may not take for ever.
ANSWER_SECONDS = 10.0
# docker.service begins to stop as soon as the engine's unit, which needs it, has stopped.
TOGETHER = 2_000_000
_PROPERTIES = (
    *("Id", "ActiveState", "SubState", "UnitFileState", "InvocationID", "Result", "ExecMainStatus", "NRestarts"),
    *("ActiveEnterTimestampMonotonic", "ActiveExitTimestampMonotonic", "InactiveEnterTimestampMonotonic"),
)
Units = dict[str, dict[str, str]]


def units() -> Units:
    """The properties of the engine's unit and of docker's, by name."""
    done = _host.run(["systemctl", "show", _host.UNIT, DOCKER, f"--property={','.join(_PROPERTIES)}"], timeout=20)
    blocks = [
        dict(line.split("=", maxsplit=1) for line in block.splitlines() if "=" in line)
        for block in done.stdout.split("\n\n")
    ]
    return {block["Id"]: block for block in blocks if "Id" in block}


def stopped_by(found: Units, last_job: str) -> str:
    """Who stopped an inactive unit: operator, docker, or nobody (it ended by itself, or was never started). Pure."""
    engine, docker = found[_host.UNIT], found.get(DOCKER, {})
    if last_job != "stop":
        return "nobody"
    ended, left = (
        int(each or 0)
        for each in (engine["InactiveEnterTimestampMonotonic"], docker.get("ActiveExitTimestampMonotonic"))
    )
    if docker.get("ActiveState") == "active" and left and abs(left - ended) < TOGETHER:
        return "docker"
    return "operator"


def last_job() -> str:
    """What systemd was last told to do with the unit since the boot; a unit that ends by itself leaves no such line."""
    jobs = [f"JOB_TYPE={kind}" for kind in ("start", "stop", "restart")]
    command = ["journalctl", "--quiet", "--boot", "--lines=1", "--output=json", "_PID=1", f"UNIT={_host.UNIT}", *jobs]
    for line in _host.run(command, timeout=20, check=False).stdout.splitlines():
        with contextlib.suppress(ValueError):
            return str(json.loads(line).get("JOB_TYPE", ""))
    return ""


def figures(address: str, port: int) -> tuple[str, Figures | None]:
    """The copy's own metrics: read, silent (nothing in time) or off (no page of an engine)."""
    try:
        status, _headers, body = fetch.get(address, port, "/metrics", ANSWER_SECONDS)
    except text.MetricsError:
        return "off", None
    except OSError:
        return "silent", None
    return figures_of(body) if status == 200 else ("off", None)


def figures_of(body: bytes) -> tuple[str, Figures | None]:
    """The figures of a page. Pure."""
    try:
        page = body.decode()
        found = reading.read(page)
        steps = text.parse(page, (STEPS,)).get(STEPS, [])
    except ValueError:
        return "off", None
    if found is None:
        return "off", None
    counters, gauges = found["counters"], found["gauges"]
    return "read", Figures(
        running=gauges["running"] or 0,
        waiting=gauges["waiting"] or 0,
        generated=counters["generation_tokens"] or 0,
        prompts=counters["prompt_tokens"] or 0,
        steps=int(sum(sample.value for sample in steps)),
        kv=sum(found["kv_use"] or []),
    )


def watts() -> float | None:
    """What the GPU draws, where there is one that says so."""
    command = ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits"]
    try:
        return sum(float(line) for line in _host.run(command, timeout=10).stdout.split())
    except (_host.HostError, OSError, ValueError):
        return None


def answered(answer: _http.Answer) -> tuple[str, str]:
    """What the answer to a one-token completion says of the engine, and in words. Pure."""
    if answer.status == 200 and isinstance(answer.json(), dict) and answer.json().get("choices"):
        return "came", ""
    if answer.status in (400, 401, 403, 404, 422):
        return "denied", f"{answer.status}, which is the question's fault"
    if answer.status:
        return "failed", f"{answer.status} {answer.body.strip()[:120]}".strip()
    return ("refused" if answer.refused else "silent"), ""


class Asker:
    """Asks for one token, never twice at a time: a full engine gets one request more and no second."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.invocation = ""

    def of(self, invocation: str) -> Question | None:
        """The newest question to this start of the engine."""
        return self.question if invocation == self.invocation else None

    def due(self, invocation: str, now: float, moved: float | None, interval: float) -> bool:
        """Whether to ask now. Tokens of others that moved just now say as much as an own one."""
        last = self.of(invocation)
        if last is None:
            return True
        if last.ended is None or now - last.ended < interval:
            return False
        return moved is None or now - moved >= interval

    def ask(self, base: str, options: Mapping[str, Any], invocation: str) -> None:
        question = Question(asked=time.monotonic())
        self.question, self.invocation = question, invocation

        def wait() -> None:
            result, words = answered(_gate_probe.ask(base, dict(options), {"max_tokens": 1}))
            if self.question is question:
                self.question = Question(question.asked, time.monotonic(), result, words)

        threading.Thread(target=wait, daemon=True).start()


def standing(base: str, pause: str, now: float) -> tuple[Standing, dict[str, Any]]:
    """What the site says of this host, and the record of the current release."""
    current = _host.linked_release(base, "current") or ""
    record = _host.read_json(f"{base}/current/release.json") or {}
    stable = _stable.read(base)
    return Standing(
        release=current if record else "",
        stable=any(entry.get("release") == current for entry in stable),
        rollout=str(stable[-1].get("rollout", "")) if stable else "",
        rank=record.get("rank", 0),
        ranks=record.get("ranks", 1),
        paused=_pause.paused(pause, now),
    ), record


def api_key(secrets: str) -> str:
    """The engine's own key, from the file that gives it to the engine."""
    try:
        lines = Path(secrets).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split("=", maxsplit=1)[1] for line in lines if line.startswith("VLLM_API_KEY=")), "")


def sample(address: str, record: Mapping[str, Any], asker: Asker, power: bool) -> Sample:
    """One look at the engine. HostError when systemd does not answer."""
    found = units()
    unit = found[_host.UNIT]
    active, invocation = unit["ActiveState"], unit["InvocationID"]
    port = record.get("rank", 0) == 0
    health, metrics, read = "", "off", None
    if active == "active" and port:
        base = _gate_probe.base_url(address, record["port"])
        answer = _http.get(f"{base}/health", timeout=ANSWER_SECONDS)
        health = (
            "ok" if answer.status == 200 else "answers" if answer.status else "refused" if answer.refused else "silent"
        )
        if health != "refused":
            metrics, read = figures(address, record["port"])
    return Sample(
        at=time.monotonic(),
        active=active,
        sub=unit["SubState"],
        enabled=unit["UnitFileState"].startswith("enabled"),
        invocation=invocation,
        began=int(unit["ActiveEnterTimestampMonotonic"] or 0) / 1e6,
        status=f"result {unit['Result']}, exit status {unit['ExecMainStatus']}, restarted {unit['NRestarts']} times",
        stopped=stopped_by(found, last_job()) if active in ("inactive", "failed") else "nobody",
        port=port,
        health=health,
        metrics=metrics,
        figures=read,
        question=asker.of(invocation),
        watts=watts() if power and os.path.exists("/usr/bin/nvidia-smi") else None,
    )
