# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a suite against a copy, within a budget and so that an interrupted run goes on where it was.

Private to this collection: may change at any time. Controller only.

Its folder has one folder per run of the suite (`streamed-1`, `whole-1`, ...): the suite's own database there knows what is done. What the
relay counted is beside them. All of it is thrown away when the evaluation is complete.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import (
    _children,
    _evaluation_relay,
    _evaluation_suite,
    _evaluation_wire,
)

# An engine may have become another one since then, by whatever way.
STALE_SECONDS = 86400


class RunError(RuntimeError):
    """The suite could not run to its end; the message says why. `gone`: because the engine ended."""

    def __init__(self, message: str, gone: bool = False) -> None:
        super().__init__(message)
        self.gone = gone


def version_of(program: str) -> str:
    """What `tool-eval-bench --version` says, empty when it cannot be run."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().rpartition(" ")[2] if done.returncode == 0 else ""


class Evaluation:
    """One evaluation: every mode and trial of a plan, against one address."""

    def __init__(
        self,
        plan: _evaluation_suite.Plan,
        program: str,
        folder: str,
        upstream: str,
        key: str,
        seconds: float,
        tell: Callable[[str], None],
    ) -> None:
        self.plan, self.program, self.folder, self.tell = plan, program, Path(folder), tell
        self.seconds, self.end = seconds, monotonic() + seconds
        self.upstream, self.key = upstream, key

    def measure(self, modes: Sequence[str], trials: int) -> dict[str, Any]:
        """`passes` and `wire` of a record, and `problem` or `gone` where it did not come to its end."""
        self.open_folder()
        found: dict[str, Any] = {"passes": [], "problem": "", "gone": "", "resumed": False}
        kept = self.kept()
        seen = _evaluation_wire.Seen.of(kept.get("wire") or {})
        port = int(kept.get("port") or 0)
        with _evaluation_relay.Relay(self.upstream, self.key, self.plan.timeout, port, seen) as relay:
            # The suite goes on only with a run against the same address.
            self.resumable = port == relay.port
            found["resumed"] = bool(kept) and self.resumable
            self.keep(relay)
            try:
                for mode in modes:
                    relay.streamed = mode == "streamed"
                    for trial in range(1, trials + 1):
                        found["passes"].append({**self.one(relay, f"{mode}-{trial}"), "trial": trial})
            except RunError as error:
                found["gone" if error.gone else "problem"] = str(error)
            except _evaluation_suite.SuiteError as error:
                found["problem"] = str(error)
            self.keep(relay)
        found["wire"] = relay.seen.as_dict()
        lost = sorted({name for entry in found["passes"] for name in entry["lost"]})
        if lost and not found["problem"]:
            words = relay.seen.lost_words()
            found["problem"] = f"{len(lost)} scenarios could not be graded, because {words}: {', '.join(lost)}"
        return found

    def open_folder(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - (self.folder / "kept.json").stat().st_mtime > STALE_SECONDS:
                shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def kept(self) -> dict[str, Any]:
        try:
            found = json.loads((self.folder / "kept.json").read_text())
            return found if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def keep(self, relay: _evaluation_relay.Relay) -> None:
        with relay.lock:
            text = json.dumps({"port": relay.port, "wire": relay.seen.as_dict()})
        handle, temporary = tempfile.mkstemp(dir=self.folder, prefix=".kept.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(temporary, self.folder / "kept.json")

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def one(self, relay: _evaluation_relay.Relay, name: str) -> dict[str, Any]:
        """One run of the suite, or what an earlier one that was interrupted left of it."""
        place, began = self.folder / name, time.time()
        done = place / "pass.json"
        if done.exists():
            found: dict[str, Any] = json.loads(done.read_text())
            return found
        place.mkdir(exist_ok=True)
        # The suite looks for a file of this name, upwards from here.
        (place / ".env").touch()
        resume = "" if self.plan.command or not self.resumable else _unfinished(place / "data" / "benchmarks.sqlite")
        found = self.run(relay, place, name, resume)
        found |= {"streamed": relay.streamed, "seconds": round(time.time() - began, 1)}
        done.write_text(json.dumps(found))
        return found

    def run(self, relay: _evaluation_relay.Relay, place: Path, name: str, resume: str) -> dict[str, Any]:
        words = list(self.plan.command) or _evaluation_suite.arguments(self.program, self.plan, "result.json", resume)
        environment = _evaluation_suite.environment(os.environ, relay.url, relay.token, self.plan, relay.streamed)
        lines: list[str] = []
        with _started(words, place, environment) as process:
            status = self.follow(process, relay, name, lines)
        output = (place / "stdout").read_text(errors="replace")
        if resume and status and "Resume aborted" in "".join(lines):
            shutil.rmtree(place / "data", ignore_errors=True)
            return self.run(relay, place, name, "")
        if status:
            raise RunError(
                f"{os.path.basename(words[0])} ended with {status}: {_evaluation_suite.complaint(lines or output.splitlines())}"
            )
        if self.plan.command:
            return _evaluation_suite.printed(output, self.plan.command)
        return _evaluation_suite.outcome((place / "result.json").read_text())

    def follow(
        self, process: subprocess.Popen[str], relay: _evaluation_relay.Relay, name: str, lines: list[str]
    ) -> int:
        """Read what it says until it ends; its exit status."""
        said: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(process, said), daemon=True).start()
        finished = total = 0
        while True:
            try:
                line = said.get(timeout=0.5)
            except queue.Empty:
                line = ""
            if line is None:
                return process.wait()
            if line:
                lines.append(line)
                event = _evaluation_suite.progress(line)
                total = int(event.get("total") or total)
                if event.get("event") == "scenario_result":
                    finished += 1
                    self.keep(relay)
                    self.tell(
                        f"{name}: {finished} of {total} scenarios, {event.get('scenario_id')} {event.get('status')}"
                    )
            if relay.gone:
                raise RunError(relay.gone, gone=True)
            if monotonic() > self.end:
                # It notes what is done, for the next time.
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                done = f"{finished} of {total or 'the'} scenarios of {name}"
                raise RunError(
                    f"the budget of {self.seconds:g} s was over with {done} done; the next evaluation goes on there"
                )


def _read(process: subprocess.Popen[str], said: queue.SimpleQueue[str | None]) -> None:
    for line in process.stderr or ():
        said.put(line)
    said.put(None)


@contextlib.contextmanager
def _started(words: Sequence[str], place: Path, environment: dict[str, str]) -> Any:
    """The process with its commentary as a pipe. One without its relay would note that every scenario failed; a killed one goes on later."""
    try:
        with (place / "stdout").open("w") as output:
            process = _children.start(
                words, cwd=place, env=environment, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace"
            )
    except OSError as error:
        raise RunError(f"{words[0]} cannot be run: {error}") from None
    try:
        yield process
    finally:
        _children.end(process)


def _unfinished(database: Path) -> str:
    """The id of a run that was interrupted, empty when there is none."""
    if not database.exists():
        return ""
    query = (
        "SELECT run_id FROM scenario_runs WHERE status IN ('running', 'interrupted') ORDER BY created_at DESC LIMIT 1"
    )
    try:
        with contextlib.closing(sqlite3.connect(database)) as connection:
            row = connection.execute(query).fetchone()
    except sqlite3.Error:
        return ""
    return str(row[0]) if row else ""
