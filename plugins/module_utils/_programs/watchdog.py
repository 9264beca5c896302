# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watchdog of an engine host: looks every few seconds, and restarts only what is stalled or dead.

Private to this collection: may change at any time. Host-side, standard library only; the loop and its hands. What it sees is judged by
`_watchdog`, what it does about it by `_watchdog_decide`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import (
    _gate_probe,
    _host,
    _members_client,
    _watchdog,
    _watchdog_look,
)
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog_decide as decide
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog_report import ERROR, NOTE, WARNING, Files

# An engine that hangs does not end by itself; what still waits in it is lost either way.
KILL_AFTER = 10.0
# Beyond the unit's own budget for a stop, for docker and systemd themselves.
RESTART_MARGIN = 60.0
NOTHING = decide.Decision()


class Watchdog:
    """One engine, looked at again and again."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        # What the site does not say of its question is the gate's own.
        named = ("prompt", "expect", "max_tokens", "completion_seconds")
        self.gate = {name: config["gate"].get(name, _gate_probe.OPTIONS[name]["default"]) for name in named}
        self.files = Files(config["state_dir"], config["run_dir"])
        self.memory = self.files.remembered()
        self.state = _watchdog.State()
        self.asker = _watchdog_look.Asker()
        self.unsaved = ""
        self.told: set[str] = set()
        self.said: dict[str, str] = {}
        self.verdict, self.since = _watchdog.Verdict("", ""), time.time()
        self.rules = decide.Rules(
            restarts=config["restarts"],
            window=config["window_seconds"],
            pause=config["pause_seconds"],
            unfit=config["stalled_seconds"],
        )

    def look(self) -> None:
        """Look once and do what follows."""
        config, now = self.config, time.time()
        standing, record = _watchdog_look.standing(config["base_dir"], config["pause_dir"], now)
        budgets = record.get("budgets", {})
        rules = _watchdog.Rules(
            load=budgets.get("gate_deadline", 1800),
            stalled=config["stalled_seconds"],
            refused=config["refused_seconds"],
            watts=config["working_watts"],
        )
        power = bool(rules.watts) and self.state.unanswered is not None
        sample = _watchdog_look.sample(config["address"], record, self.asker, power)
        verdict, self.state = _watchdog.triage(self.state, sample, rules)
        self.note_verdict(verdict)
        decision, memory = decide.decide(self.memory, verdict, sample.invocation, standing, now, self.rules)
        decision = self.remember(memory, decision)
        self.show(standing, decision, sample)
        if memory.away:
            return
        if memory.wanted == decide.WITHDRAWN:
            self.tell()
        self.act(decision, record, budgets)
        if self.memory.wanted == decide.READY:
            self.tell()
        interval = config["completion_interval_seconds"]
        # Also one whose server answers nothing at all any more; what refuses has nobody to be asked.
        if (
            self.state.ready
            and sample.health not in ("", "refused")
            and self.asker.due(sample.invocation, sample.at, self.state.moved, interval)
        ):
            self.asker.ask(self.base(record), self.question(record), sample.invocation)

    def base(self, record: dict[str, Any]) -> str:
        return _gate_probe.base_url(self.config["address"], record["port"])

    def question(self, record: dict[str, Any]) -> dict[str, Any]:
        """The options of the gate's questions to the release that is current."""
        return {
            **self.gate,
            "model": record["served_model_name"],
            "max_model_len": record["max_model_len"],
            "api_key": _watchdog_look.api_key(record["secrets_file"]),
            # A full engine answers late, and is not to be asked a second time meanwhile.
            "completion_seconds": max(self.gate["completion_seconds"], 2 * self.config["stalled_seconds"]),
        }

    def note_verdict(self, verdict: _watchdog.Verdict) -> None:
        if verdict.kind != self.verdict.kind:
            self.since = time.time()
            if not {verdict.kind, self.verdict.kind} <= set(_watchdog.FIT):
                level = WARNING if verdict.kind in (_watchdog.STALLED, _watchdog.DEAD) else NOTE
                self.files.say(level, "seen", f"{verdict.kind}: {verdict.reason}", before=self.verdict.kind)
        self.verdict = verdict

    def remember(self, memory: decide.Memory, decision: decide.Decision = NOTHING) -> decide.Decision:
        """Write down what changed, before it is done. Who cannot write down his restarts has no bound, and restarts nothing."""
        before = self.memory
        if memory == before and not self.unsaved:
            return decision
        if memory.wanted != before.wanted:
            self.told = set()
        self.memory = memory
        try:
            self.files.remember(memory)
            self.unsaved = ""
        except OSError as error:
            why = f"its memory cannot be written, so it restarts nothing: {error}"
            if not self.unsaved:
                self.files.say(ERROR, "unsaved", why)
            self.unsaved = why
            if decision.act in (decide.RESTART, decide.PAIR):
                self.memory = replace(memory, acts=before.acts)
                return decide.Decision(why_not=why)
        return decision

    def tell(self) -> None:
        """Tell the proxies that do not know yet."""
        state, reason = self.memory.wanted, self.memory.why
        for server, reply in _members_client.tell_all(set(self.config["proxies"]) - self.told, state, reason).items():
            if reply.done:
                self.told.add(server)
            words = f"{state}: proxy {server}: {reply.words}"
            if self.said.get(server) != words:
                self.said[server] = words
                self.files.say(NOTE if reply.done else WARNING, "told", f"{words} ({reason})")
        if state == decide.READY and self.told >= set(self.config["proxies"]):
            self.remember(decide.told(self.memory))

    def act(self, decision: decide.Decision, record: dict[str, Any], budgets: dict[str, Any]) -> None:
        if decision.act == decide.PROVE:
            self.prove(record)
        elif decision.act == decide.GIVE_UP:
            self.files.say(
                ERROR, "gave_up", f"{decision.reason}. Nothing more is tried until a rollout or a person has been here"
            )
        elif decision.act == decide.PAIR:
            self.files.say(WARNING, "pair", f"asks for a restart of the pair: {decision.reason}")
            request = {"reason": decision.reason, "time": round(time.time(), 3)}
            _host.write_atomically(self.files.pair_request, json.dumps(request) + "\n")
        elif decision.act == decide.RESTART:
            self.files.say(WARNING, "restart", decision.reason, number=len(self.memory.acts))
            began = time.monotonic()
            trouble = restart(budgets.get("unit_stop", 300) + RESTART_MARGIN)
            seconds = round(time.monotonic() - began, 1)
            words = trouble or f"systemd started it again after {seconds} s"
            self.files.say(ERROR if trouble else NOTE, "restarted", words, seconds=seconds)

    def prove(self, record: dict[str, Any]) -> None:
        """The gate's questions, once; a copy that passes may be called ready."""
        options = {**self.question(record), "completion_seconds": self.gate["completion_seconds"]}
        step = _gate_probe.look(self.base(record), options, _gate_probe.rules(options, busy_is_bad=False)).steps[-1]
        words = "passed" if step.good else f"not passed: {step.reason}"
        if step.good or self.said.get("gate") != words:
            self.files.say(NOTE if step.good else WARNING, "gate", words)
        self.said["gate"] = "" if step.good else words
        if step.good:
            self.remember(decide.proven(self.memory))

    def show(self, standing: decide.Standing, decision: decide.Decision, sample: _watchdog.Sample) -> None:
        question, seen, memory = sample.question, sample.figures, self.memory
        took = question.ended - question.asked if question and question.ended is not None else None
        state = {
            "time": round(time.time(), 3),
            "verdict": self.verdict.kind,
            "reason": self.verdict.reason,
            "since": round(self.since, 3),
            "release": standing.release,
            "invocation": sample.invocation,
            "paused": standing.paused,
            "why_not": decision.why_not,
            "copy": decide.WITHDRAWN if memory.wanted == decide.WITHDRAWN else "",
            "untold": sorted(set(self.config["proxies"]) - self.told) if memory.wanted else [],
            "restarts": len(memory.acts),
            "gave_up": memory.gave_up,
            "completion": question.result or "waits" if question else "",
            "completion_seconds": None if took is None else round(took, 3),
            "requests": {"running": seen.running, "waiting": seen.waiting} if seen else None,
        }
        self.files.show(state)


def restart(budget: float) -> str:
    """Let systemd restart the engine, and help where it does not end. Returns what went wrong, in words."""
    _host.run(["systemctl", "reset-failed", _host.UNIT], check=False)
    before = (_host.container_state(CONTAINER) or {}).get("id")
    end, kill_at = time.monotonic() + budget, time.monotonic() + KILL_AFTER
    with subprocess.Popen(["systemctl", "restart", _host.UNIT], stderr=subprocess.PIPE, text=True) as job:
        while job.poll() is None and time.monotonic() < end:
            if before and time.monotonic() > kill_at:
                _host.run(["docker", "kill", before], check=False)
                before = None
            time.sleep(0.2)
        if job.poll() is None:
            job.kill()
            return f"systemd did not restart it within {budget:.0f} s"
        said = job.stderr.read().strip() if job.stderr else ""
    return f"systemd could not start it: {said}" if job.returncode else ""


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    config = json.loads(Path(parser.parse_args().config).read_text())
    ends = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_about: ends.set())
    dog, trouble = Watchdog(config), ""
    dog.files.say(NOTE, "begins", f"looks every {config['look_seconds']} s")
    while not ends.is_set():
        before, trouble = trouble, ""
        try:
            dog.look()
        except (OSError, _host.HostError) as error:
            trouble = str(error)
            if trouble != before:
                dog.files.say(ERROR, "blind", f"cannot look, so does nothing: {trouble}")
        ends.wait(config["look_seconds"])
    # Threads may wait for an engine that does not answer.
    os._exit(0)
