# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a host alive when its memory runs out: gb10-vllm-memory-guard.service. Standard library only.

The main thread looks at the memory and kills; it opens nothing, starts nothing and writes no log. Everything else that may take
time is done by two other threads, each in the order in which it was asked for: `hands` drops the page cache, runs the owner's
hook, stops and starts the engine; `notes` finds the engine's processes, decides about an engine that is held, and tells.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _guard_host, _guard_settings, _host, _pause
from ansible_collections.gb10.vllm.plugins.module_utils._guard import GIB, Act, Guard
from ansible_collections.gb10.vllm.plugins.module_utils._guard_files import Group, Meter
from ansible_collections.gb10.vllm.plugins.module_utils._guard_hold import Hold, Next
from ansible_collections.gb10.vllm.plugins.module_utils._guard_settings import Settings

STOPPED = ("inactive", "failed")
NOTE_SECONDS, NOTE_SOON_SECONDS = 5.0, 1.0
HOOK_SECONDS = 30
# Longer than the time between two notes: what is paused must not become free because one of them is late.
PAUSE_SECONDS = 120
PAUSE_NAME = "memory-guard.json"
PAIR_RESTART = "pair-restart"
_MCL_CURRENT_AND_FUTURE = 3
_STACK = 512 * 1024


class Worker(threading.Thread):
    """Does what it is asked to, one after the other. What fails is told and forgotten."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def ask(self, task: Callable[[], None]) -> None:
        self._asked.put(task)

    def run(self) -> None:
        while True:
            task = self._asked.get()
            try:
                task()
            except Exception as error:
                say(3, f"{getattr(task, '__name__', task)} failed: {error}")


def say(priority: int, text: str) -> None:
    """One line of the journal; 3 is an error, 4 a warning, 6 information."""
    sys.stderr.write(f"<{priority}>{text}\n")


class Program:
    """The guard of one host."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.meter = Meter(settings.meminfo, settings.cgroup)
        self.guard = Guard(settings.bounds())
        self.groups: list[Group] = []
        self.hands, self.notes = Worker(), Worker()
        self.state_file = f"{settings.run_dir}/memory_guard.json"
        self.hold = Hold(settings.rules())
        with contextlib.suppress(_host.HostError):
            self.hold = Hold.restored(settings.rules(), (_host.read_json(self.state_file) or {}).get("hold") or {})
        self.record: dict[str, Any] = {}
        self.invocation = self.largest = ""
        self.counts: Counter[str] = Counter()
        self.acts: deque[dict[str, Any]] = deque(maxlen=20)
        self.killed_after, self.killed_at = 0.0, 0
        self._noted = -NOTE_SECONDS
        self._old_groups: list[Group] = []
        # Bound once: on the way to a kill nothing is made.
        self._doings = {
            Act.DROP: (self.hands, self.drop),
            Act.REFUSE: (self.hands, self.refuse),
            Act.ALLOW: (self.hands, self.allow),
            Act.STOP: (self.hands, self.stop),
            Act.KILL: (self.hands, self.after_kill),
            Act.WARN: (self.notes, self.warn),
            Act.EASED: (self.notes, self.eased),
        }

    # The main thread ------------------------------------------------------------------------------------------------
    def watch(self) -> None:
        while True:
            now = time.monotonic()
            available = self.meter.read()
            before = self.guard.stage
            for act in self.guard.sample(now, available, self.meter.free, self.running()):
                if act is Act.KILL:
                    for group in self.groups:
                        group.kill()
                    if before is Act.KILL:
                        continue
                    self.killed_after, self.killed_at = time.monotonic() - (self.guard.crossed or now), available
                worker, task = self._doings[act]
                worker.ask(task)
            # Short while something happens, so that what is held comes back soon.
            calm = self.guard.stage is None and self.hold.since is None
            if now - self._noted >= (NOTE_SECONDS if calm else NOTE_SOON_SECONDS):
                self._noted = now
                self.notes.ask(self.note)
            time.sleep(self.guard.pace())

    def running(self) -> bool:
        return any(group.populated() for group in self.groups)

    # hands ------------------------------------------------------------------------------------------------------------
    def drop(self) -> None:
        before = self.meter.available
        done = _guard_host.drop_page_cache(_guard_host.checkpoint_folders(self.record))
        self.tell(4, Act.DROP, f"{before / GIB:.2f} GiB were available; gave back {done}")

    def refuse(self) -> None:
        self.hook("refuse")
        self.tell(4, Act.REFUSE, self._why())

    def allow(self) -> None:
        self.hook("allow")
        self.tell(6, Act.ALLOW, self._why())

    def hook(self, word: str) -> None:
        """In a unit of its own: the owner's program must not inherit this one's protection, and may take its time."""
        if self.settings.hook:
            unit = ["systemd-run", "--quiet", "--collect", "--no-block", f"--property=RuntimeMaxSec={HOOK_SECONDS}"]
            _host.run([*unit, "--", *self.settings.hook, word], timeout=HOOK_SECONDS)

    def stop(self) -> None:
        self.notes.ask(self.begin_hold)
        self.order_stop()
        self.tell(
            3,
            Act.STOP,
            f"{self._why()}; it has {self.settings.stop_seconds:g} s, and stays down until there is enough memory",
        )

    def after_kill(self) -> None:
        # Before systemd starts it again.
        self.notes.ask(self.begin_hold)
        self.order_stop()
        self.tell(
            3,
            Act.KILL,
            f"{self.killed_at / GIB:.2f} GiB were available, floor {self.guard.bounds.floor / GIB:g} GiB; "
            f"SIGKILL was sent {1000 * self.killed_after:.0f} ms after the floor was crossed",
        )

    def order_stop(self) -> None:
        _host.run(["systemctl", "stop", "--no-block", self.settings.unit], timeout=20)

    def start(self) -> None:
        if int(self.record.get("ranks", 1)) > 1:
            # One rank alone is no engine: who keeps the pair starts all of them in order.
            content = {
                "reason": "the memory guard stopped this rank, and there is enough memory again",
                "time": time.time(),
            }
            _host.write_atomically(f"{self.settings.run_dir}/{PAIR_RESTART}", json.dumps(content) + "\n")
            return
        _host.run(["systemctl", "reset-failed", self.settings.unit], check=False)
        _host.run(["systemctl", "start", "--no-block", self.settings.unit], timeout=20)

    # notes ------------------------------------------------------------------------------------------------------------
    def warn(self) -> None:
        self.largest = _guard_host.largest_consumers()
        self.tell(4, Act.WARN, f"{self._why()}; the largest are {self.largest}")

    def eased(self) -> None:
        self.largest = ""
        self.tell(6, Act.EASED, self._why())

    def begin_hold(self) -> None:
        self.hold.begin(time.time(), self._why())

    def note(self) -> None:
        unit = _guard_host.unit_state(self.settings.unit)
        self.find_engine(unit)
        now = time.time()
        step = self.hold.look(
            now,
            self.meter.available,
            self.resume_bytes(),
            unit.get("ActiveState", ""),
            unit.get("UnitFileState") == "enabled",
            self.paused(now),
        )
        if step is Next.STOP:
            self.hands.ask(self.order_stop)
        elif step is Next.START:
            self.hands.ask(self.start)
            self.tell(
                4, step, f"{self._why()}; start {len(self.hold.starts)} of {self.settings.restarts} in the window"
            )
        elif step is Next.RELEASED:
            self.tell(6, step, self.hold.words)
        elif step is Next.GIVE_UP:
            self.tell(
                3, step, f"the engine stays down, {self.hold.words}. Find out who takes the memory, then start it"
            )
        self.keep_pause(now)
        self.write(now)

    def find_engine(self, unit: dict[str, str]) -> None:
        self.record = _host.read_json(f"{self.settings.base_dir}/current/release.json") or {}
        invocation, gone = f"{unit.get('InvocationID')} {unit.get('MainPID')}", unit.get("ActiveState") in STOPPED
        # Without its container only the client is known: the container may be on its way.
        if invocation == self.invocation and (gone or (len(self.groups) > 1 and self.running())):
            return
        for group in self._old_groups:
            group.close()
        self._old_groups = self.groups
        self.groups = _guard_host.find_groups(self.settings.unit, unit, self.settings.container)
        self.invocation = invocation

    def resume_bytes(self) -> int:
        wanted = round(self.settings.resume_gib * GIB)
        if not wanted:
            share = _guard_host.share(self.record, _guard_host.memory_total())
            wanted = share + _guard_host.START_MARGIN if share else 2 * self.guard.bounds.warn
        return max(wanted, self.guard.bounds.warn)

    def paused(self, now: float) -> str:
        files = _pause.read(f"{self.settings.state_dir}/pause")
        files.pop(PAUSE_NAME, None)
        return _pause.reason(files, now)

    def keep_pause(self, now: float) -> None:
        """Nobody else may start the engine while it is held."""
        path = Path(f"{self.settings.state_dir}/pause/{PAUSE_NAME}")
        if self.hold.since is None:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"until": now + PAUSE_SECONDS, "who": "memory guard", "why": f"{self.hold.why}; {self.hold.words}"}
        _host.write_atomically(str(path), json.dumps(content) + "\n")

    def write(self, now: float) -> None:
        guard, held = self.guard, self.hold.since is not None
        level = (
            guard.stage.value
            if guard.stage
            else "hold the engine"
            if held
            else "warn"
            if guard.warned
            else "enough memory"
        )
        content = {
            "time": now,
            "level": level,
            "available_gib": round(self.meter.available / GIB, 2),
            "free_gib": round(self.meter.free / GIB, 2),
            "warn_gib": self.settings.warn_gib,
            "floor_gib": self.settings.floor_gib,
            "resume_gib": round(self.resume_bytes() / GIB, 2),
            "refused": guard.refused,
            "largest": self.largest,
            "hold": {**self.hold.as_dict(), "held": held},
            "acts": list(self.acts),
        }
        os.makedirs(self.settings.run_dir, mode=0o755, exist_ok=True)
        _host.write_atomically(self.state_file, json.dumps(content) + "\n")
        folder = f"{self.settings.state_dir}/metrics"
        os.makedirs(folder, mode=0o755, exist_ok=True)
        gauges = {
            "available_bytes": self.meter.available,
            "floor_bytes": guard.bounds.floor,
            "warned": int(guard.warned),
            "engine_held": int(held),
            "gave_up": int(self.hold.gave_up),
        }
        _host.write_atomically(f"{folder}/memory_guard.prom", _guard_settings.metrics(gauges, self.counts))

    def tell(self, priority: int, act: Act | Next, why: str) -> None:
        name = act.name.lower()
        self.counts[name] += 1
        self.acts.append({"time": time.time(), "act": name, "why": why})
        say(priority, f"{act.value}: {why}")

    def _why(self) -> str:
        available, free, bounds = self.meter.available, self.meter.free, self.guard.bounds
        return f"{available / GIB:.2f} GiB available, {free / GIB:.2f} GiB free, floor {bounds.floor / GIB:g} GiB"


def rehearse(settings: Settings) -> None:
    """Go the way to a kill once, with nobody to kill: what Python makes at the first time is then there."""
    guard = Guard(settings.bounds())
    for number, available in enumerate((guard.bounds.warn, guard.bounds.floor, guard.bounds.kill, 0, 0)):
        guard.sample(float(number), available, 0, True)
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        Path(f"{folder}/cgroup.procs").touch()
        group = Group(folder)
        group.kill()
        group.close()


def lock_memory() -> str:
    """Keep every page of this process in memory; says why not when it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT_AND_FUTURE) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def main() -> int:
    parser = argparse.ArgumentParser(description="Keeps a host alive when its memory runs out.")
    parser.add_argument("--config", required=True)
    settings = Settings(**json.loads(Path(parser.parse_args().config).read_text()))
    # All of a thread's stack is locked.
    threading.stack_size(_STACK)
    program = Program(settings)
    rehearse(settings)
    gc.collect()
    gc.freeze()
    trouble = lock_memory()
    if trouble:
        say(4, f"the guard's own memory cannot be locked ({trouble}): it may be slow when it is needed")
    program.hands.start()
    program.notes.start()
    bounds = program.guard.bounds
    say(
        6,
        f"watching: warns at {bounds.warn / GIB:g} GiB, acts at {bounds.floor / GIB:g} GiB, kills at {bounds.kill / GIB:g} GiB",
    )
    program.watch()
    return 0
