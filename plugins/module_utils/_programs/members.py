# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes a copy out of the proxy when its own host asks, and puts it back through the gate. Started by gb10-vllm-members.socket.

`GET /copy` and `POST /copy` {"state": "withdrawn"|"ready", "reason": "..."} are about the copy of the host that asks: who it
is follows from its address. Answers are JSON: name, admitted, withdrawn_since, and the reason of the answer. 200 done, 202 not
needed, 403 not a host of this site, 409 a rollout or an operator pauses this proxy or has decided anew, 422 the gate was not
passed, 500 nginx refused. It also takes out a copy that cuts its answers in the middle.

Private to this collection: may change at any time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import (
    _cuts,
    _gate,
    _gate_memory,
    _gate_probe,
    _host,
    _members,
    _nginx_membership,
    _nginx_process,
    _pause,
)
from ansible_collections.gb10.vllm.plugins.module_utils._members import Copy, Decision
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import Membership, NginxError, parse
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS, Nginx
from ansible_collections.gb10.vllm.plugins.module_utils._tail import Tail

BIGGEST_HEAD, BIGGEST_BODY = 8192, 4096
# More than ask at once.
BACKLOG = 128
READ_SECONDS = 5
# Questions at once, of all hosts of the site and of strangers: these never keep those out.
MOST_QUESTIONS, MOST_STRANGERS = 32, 8
METRICS_SECONDS = 15
# The kernel tells the start of a process in hundredths of a second.
SAME_MOMENT_SECONDS = 0.05


@dataclass
class Config:
    """/etc/gb10-vllm/members.json; the role writes it."""

    copies: list[dict[str, Any]]
    keys_file: str
    access_log: str
    error_log: str
    port: int = 8078
    nginx: str = "/usr/sbin/nginx"
    conf_dir: str = "/etc/nginx"
    pid_file: str = "/run/nginx.pid"
    reload_seconds: float = 10
    gate_seconds: float = 60
    gate_healthy_seconds: float = 1
    watch_seconds: float = 1
    # Longer than the longest start that was measured, 13 minutes.
    host_silent_seconds: float = 1800
    cuts: dict[str, Any] = field(default_factory=dict)
    pause_dir: str = _pause.FOLDER
    state_file: str = "/run/gb10-vllm/members.json"
    record_file: str = "/var/lib/gb10-vllm-proxy/withdrawn.json"
    metrics_file: str = "/var/lib/gb10-vllm/metrics/members.prom"


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


class Members:
    """The acts. One change of nginx at a time; gates run beside."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.nginx = Nginx(config.conf_dir, config.pid_file, config.nginx, config.reload_seconds)
        self.copies = _members.copies(config.copies)
        self.local = {copy.name for copy in self.copies if _nginx_process.is_local(copy.server)}
        self.cuts = _cuts.Cuts(_cuts.Rules(**config.cuts), {copy.server: copy.name for copy in self.copies})
        self.changes = ThreadPoolExecutor(1, "change")
        self.gates = ThreadPoolExecutor(max(1, len(self.copies)), "gate")
        self.proofs: dict[str, asyncio.Task[Decision]] = {}
        self.acts: Counter[tuple[str, str, str]] = Counter()

    def membership(self) -> Membership:
        text = self.nginx.read(SERVERS)
        if text is None:
            raise NginxError(f"{self.nginx.conf_dir}/{SERVERS} is missing: run the role gb10.vllm.proxy on this host")
        return parse(text, f"{self.nginx.conf_dir}/{SERVERS}")

    def paused(self) -> str:
        return _pause.paused(self.config.pause_dir, time.time())

    async def _change(self, alter: Callable[[Membership], Membership], done: Decision) -> Decision:
        def change() -> Decision:
            begun = time.monotonic()
            try:
                with self.nginx.lock():
                    result = _nginx_membership.revise(self.nginx, lambda membership, _site: alter(membership))
            except _members.Refused as refused:
                return refused.decision
            except (NginxError, OSError) as error:
                return Decision(500, str(error))
            late = "" if result["running"] else "; nginx is not running, so it takes effect when it starts"
            return Decision(200, f"{done.words} ({time.monotonic() - begun:.3f} s{late})")

        return await asyncio.get_running_loop().run_in_executor(self.changes, change)

    def _said(self, name: str, act: str, by: str, decision: Decision, why: str) -> Decision:
        """One line for each act, and for each that was refused."""
        outcome = {200: act, 202: "not needed", 409: "refused", 422: "not admitted"}.get(decision.status, "failed")
        self.acts[name, outcome.replace(" ", "_"), by] += 1
        say(f"{name} {act}: {outcome}, {decision.words}; asked by {by}: {why or 'no reason given'}")
        return decision

    async def withdraw(self, name: str, reason: str) -> Decision:
        """Its host asks."""

        def alter(membership: Membership) -> Membership:
            decision = _members.on_withdrawn(membership, name, self.paused(), name in self.proofs)
            if not decision.act:
                raise _members.Refused(decision)
            return _members.taken_out(membership, name, _members.HOST, reason, time.time())

        decision = await self._change(alter, Decision(200, "it is withdrawn"))
        return self._said(name, "withdrawn", _members.HOST, decision, reason)

    async def expel(self, name: str, reason: str) -> Decision:
        """It cuts its streams."""

        def alter(membership: Membership) -> Membership:
            decision = _members.on_cuts(membership, name, self.paused())
            if not decision.act:
                raise _members.Refused(decision)
            now = time.time()
            return _members.taken_out(membership, name, _members.STREAMS, reason, now, self.cuts.withdrawn(name, now))

        decision = await self._change(alter, Decision(200, "it is withdrawn"))
        return self._said(name, "withdrawn", _members.STREAMS, decision, reason)

    async def ready(self, name: str, by: str, reason: str) -> Decision:
        """Prove it and put it back. Whoever asks while its gate runs gets the same answer."""
        if name not in self.proofs:
            self.proofs[name] = asyncio.create_task(self._ready(name, by, reason))
            self.proofs[name].add_done_callback(lambda _task: self.proofs.pop(name, None))
        return await asyncio.shield(self.proofs[name])

    async def _ready(self, name: str, by: str, reason: str) -> Decision:
        membership = self.membership()
        decision = _members.on_ready(membership, name, self.paused(), time.time())
        if not decision.act:
            return self._said(name, "admitted", by, decision, reason)
        record = membership.withdrawn[name]
        failed = await asyncio.get_running_loop().run_in_executor(self.gates, self._prove, name, record)
        if failed:
            return self._said(name, "admitted", by, Decision(422, failed), reason)

        def alter(membership: Membership) -> Membership:
            paused = self.paused()
            if paused:
                raise _members.Refused(Decision(409, f"paused: {paused}"))
            return _members.put_back(membership, name, record)

        decision = await self._change(alter, Decision(200, "it has passed its gate and is admitted"))
        return self._said(name, "admitted", by, decision, reason)

    def _prove(self, name: str, record: Any) -> str:
        """Empty, or why the copy did not pass."""
        copy = next(copy for copy in self.copies if copy.name == name)
        try:
            keys = _host.read_json(self.config.keys_file) or {}
            questions = _gate_memory.recall(self.config.conf_dir, name, copy.gate)
        except (_host.HostError, OSError) as error:
            return str(error)
        if not questions.get("model"):
            return "which model it has to serve is not known here: admit it once with a rollout, or set vllm_served_model_name"
        healthy, seconds = self.config.gate_healthy_seconds, self.config.gate_seconds
        series = {"successes": 2, "minimum_healthy_seconds": healthy, "deadline_seconds": seconds}
        options = {**questions, **series, "api_key": keys.get(name, "")}
        options["completion_seconds"] = min(options["completion_seconds"], seconds)
        # It may still be at work for clients from before: then a full queue is no fault.
        verdict, state, _at = _gate_probe.wait(
            f"http://{record['entry']['server']}", options, loaded=True, busy_is_bad=False
        )
        could = "could not be proven" if verdict == _gate.ERROR else "did not pass the gate"
        return "" if verdict == _gate.PASS else f"it {could}: {state.reason}"

    async def reconcile(self) -> None:
        """A change that was killed between its file and nginx's reload is made good."""

        def catch_up() -> bool:
            with self.nginx.lock():
                master = self.nginx.master()
                workers = self.nginx.workers(master).live if master else frozenset()
                if not workers:
                    return False
                newest = max(map(_nginx_process.started, workers))
                if (self.nginx.conf_dir / SERVERS).stat().st_mtime < newest + SAME_MOMENT_SECONDS:
                    return False
                self.nginx.reload()
                return True

        try:
            if await asyncio.get_running_loop().run_in_executor(self.changes, catch_up):
                say("nginx reloaded: its workers were older than the list of servers")
        except (NginxError, OSError) as error:
            say(f"nginx could not be brought up to date with the list of servers: {error}")


class Watch:
    """Looks at the logs every second, takes out who cuts, and tries later whether he is well again."""

    def __init__(self, members: Members) -> None:
        self.members, self.config = members, members.config
        self.errors, self.access = Tail(self.config.error_log), Tail(self.config.access_log)
        self.next_try: dict[str, float] = {}
        self.tries: set[asyncio.Task[None]] = set()
        self.metrics_at = 0.0

    async def run(self) -> None:
        trouble = ""
        while True:
            try:
                await self.look(time.time())
                trouble = ""
            except (NginxError, _host.HostError, OSError) as error:
                if str(error) != trouble:
                    trouble = str(error)
                    say(f"cannot look after the copies: {trouble}")
            await asyncio.sleep(self.config.watch_seconds)

    async def look(self, now: float) -> None:
        for line in self.access.lines():
            self.members.cuts.access_line(line, now)
        for line in self.errors.lines():
            self.members.cuts.error_line(line, now)
        membership, paused = self.members.membership(), self.members.paused()
        # Who is taken out on purpose, or stopped by a rollout, may cut what it had left.
        admitted = [] if paused else [entry.name for entry in membership.servers]
        self.members.cuts.forget(admitted)
        if not paused:
            for name in self.members.cuts.suspects(admitted, now)[:1]:
                cut, answered = self.members.cuts.counts(name, now)
                await self.members.expel(name, f"it cut {cut} of its last {answered} answers in the middle")
            for name, record in membership.withdrawn.items():
                due = max(_members.due(record, self.config.host_silent_seconds), self.next_try.get(name, 0))
                if due <= now and name not in self.members.proofs:
                    task = asyncio.create_task(self.try_again(name, record["by"]))
                    self.tries.add(task)
                    task.add_done_callback(self.tries.discard)
        # A slow disk must not keep a host waiting that asks.
        await asyncio.to_thread(self.report, membership, paused, now)

    async def try_again(self, name: str, by: str) -> None:
        why = "its pause is over" if by == _members.STREAMS else "its host has said nothing more for long"
        with contextlib.suppress(NginxError):
            decision = await self.members.ready(
                name, _members.STREAMS if by == _members.STREAMS else _members.PROXY, why
            )
            if decision.status not in (200, 202):
                self.next_try[name] = self.members.cuts.withdrawn(name, time.time())

    def report(self, membership: Membership, paused: str, now: float) -> None:
        copies = {}
        for copy in self.members.copies:
            cut, answered = self.members.cuts.counts(copy.name, now)
            copies[copy.name] = {**_members.status(membership, copy.name), "cut": cut, "answered": answered}
        state = {"time": round(now, 3), "paused": paused, "copies": copies}
        Path(self.config.state_file).parent.mkdir(exist_ok=True)
        Path(f"{self.config.state_file}.new").write_text(json.dumps(state, indent=2) + "\n")
        os.replace(f"{self.config.state_file}.new", self.config.state_file)
        # For readers; what counts is in the list of servers itself.
        record = {
            name: {"since": told["since"], "reason": told["reason"], "by": told["by"]}
            for name, told in membership.withdrawn.items()
        }
        if (_host.read_json(self.config.record_file) or {}) != record:
            _host.write_atomically(self.config.record_file, json.dumps(record, indent=2) + "\n")
        if now - self.metrics_at >= METRICS_SECONDS:
            self.metrics_at = now
            _host.write_atomically(self.config.metrics_file, metrics(state, self.members.acts))


def metrics(state: dict[str, Any], acts: Counter[tuple[str, str, str]]) -> str:
    """For the node exporter's textfile collector."""
    told = state["copies"].values()
    lines = ["# TYPE gb10_vllm_members_withdrawn gauge"]
    lines += [
        f'gb10_vllm_members_withdrawn{{copy="{copy["name"]}"}} {int(copy["withdrawn_since"] is not None)}'
        for copy in told
    ]
    lines += ["# TYPE gb10_vllm_members_cut_answers gauge"]
    lines += [f'gb10_vllm_members_cut_answers{{copy="{copy["name"]}"}} {copy["cut"]}' for copy in told]
    lines += ["# TYPE gb10_vllm_members_acts_total counter"]
    lines += [
        f'gb10_vllm_members_acts_total{{copy="{name}",act="{act}",by="{by}"}} {count}'
        for (name, act, by), count in sorted(acts.items())
    ]
    lines += ["# TYPE gb10_vllm_members_time_seconds gauge", f"gb10_vllm_members_time_seconds {state['time']}"]
    return "\n".join(lines) + "\n"


class Server:
    """The questions of the engine hosts."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self.open = Counter[bool]()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Without a name the other side is gone already.
        peer = (writer.get_extra_info("peername") or ("",))[0]
        caller = _members.caller(self.members.copies, peer, self.members.local)
        known = isinstance(caller, Copy)
        self.open[known] += 1
        try:
            if self.open[known] <= (MOST_QUESTIONS if known else MOST_STRANGERS):
                with contextlib.suppress(
                    OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError
                ):
                    status, content = await self._answer(reader, caller)
                    text = json.dumps(content).encode() + b"\n"
                    head = f"HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n"
                    writer.write(f"{head}Connection: close\r\n\r\n".encode() + text)
                    async with asyncio.timeout(READ_SECONDS):
                        await writer.drain()
        finally:
            self.open[known] -= 1
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, caller: Copy | Decision) -> tuple[int, dict[str, Any]]:
        async with asyncio.timeout(READ_SECONDS):
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines if line)
            headers = {name.strip().lower(): value.strip() for name, _colon, value in pairs}
            length = int(headers.get("content-length", 0))
            if not 0 <= length <= BIGGEST_BODY:
                return 413, {"reason": f"a body has at most {BIGGEST_BODY} bytes"}
            body = await reader.readexactly(length)
        if isinstance(caller, Decision):
            return caller.status, {"reason": caller.words}
        method, path = (first.split(" ") + [""])[:2]
        name = caller.name
        try:
            state, reason = _members.request(method, path, body)
            if state == "withdrawn":
                decision = await self.members.withdraw(name, reason)
            elif state == "ready":
                decision = await self.members.ready(name, _members.HOST, reason)
            else:
                return 200, _members.status(self.members.membership(), name)
            return decision.status, {**_members.status(self.members.membership(), name), "reason": decision.words}
        except _members.Unfit as unfit:
            return unfit.status, {"reason": str(unfit)}
        except NginxError as error:
            return 500, {"reason": str(error)}


def listener(port: int) -> socket.socket:
    """The socket that systemd opened, or one of our own (for a try by hand)."""
    if os.environ.get("LISTEN_PID") == str(os.getpid()):
        return socket.socket(fileno=3)
    return socket.create_server(("", port))


async def serve(config: Config) -> None:
    """Until the process is told to end; a change that has begun is finished."""
    members = Members(config)
    await members.reconcile()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    # asyncio sets the backlog anew, also that of systemd's socket.
    server = await asyncio.start_server(
        Server(members).answer, sock=listener(config.port), limit=BIGGEST_HEAD, backlog=BACKLOG
    )
    watch = asyncio.create_task(Watch(members).run())
    ended = asyncio.create_task(over.wait())
    await asyncio.wait({watch, ended}, return_when=asyncio.FIRST_COMPLETED)
    server.close()
    members.changes.shutdown(wait=True)
    if watch.done():
        watch.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--config", required=True, help="the configuration that the role has written")
    path = parser.parse_args().config
    try:
        config = Config(**(_host.read_json(path) or {}))
    except (_host.HostError, TypeError) as error:
        sys.stderr.write(f"{path}: {error}\n")
        return 1
    asyncio.run(serve(config))
    # Gates that still run change nothing any more, and are not waited for.
    os._exit(0)
