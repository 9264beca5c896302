# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that keeps the ranks of a pair together. One on each host; what it decides is in _pair.py and _pair_rank.py.

Private to this collection: may change at any time. Host-side, standard library only.
Reads: the current release, the unit, the container, the other hosts' pages. Changes: the host's own unit and container.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import (
    _gate_probe,
    _host,
    _http,
    _pair,
    _pair_host,
    _pair_rank,
)

STATE = "/run/gb10-vllm/pair.json"
REQUEST = "/run/gb10-vllm/pair-restart"
# Seconds between two looks: nothing may act, all is well, something is under way
ASLEEP, QUIET, BUSY = 3.0, 1.0, 0.5
CALM = (_pair.WATCH, _pair.FORMED, _pair.GAVE_UP, _pair.IDLE, _pair.STARTED, _pair.ALONE)
# Phases in which somebody may ask for a new generation
LISTENS = (_pair.WATCH, _pair.FORMED, _pair.IDLE, _pair.STARTED)
# The pages of the other hosts are small and near.
PAGE_SECONDS = 3.0
LONGEST_PAGE = 65536


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


class Page(BaseHTTPRequestHandler):
    """What this host publishes, for the hosts of the pair only."""

    server: Server
    timeout = 10

    def do_GET(self) -> None:
        stranger = self.client_address[0] not in self.server.peers
        status = 403 if stranger else 200 if self.path == "/pair" else 404
        body = self.server.content if status == 200 else b"{}"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """The hosts ask all the time."""


class Server(ThreadingHTTPServer):
    """Listens on this host's address of the link, also while the link is down."""

    daemon_threads = True
    content = b"{}"

    def __init__(self, address: str, port: int, peers: frozenset[str]) -> None:
        self.peers = peers
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), Page)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self) -> None:
        # The number is Linux's IP_FREEBIND, which the socket module does not name; it is good for both families.
        self.socket.setsockopt(socket.IPPROTO_IP, 15, 1)
        super().server_bind()


class Pair:
    """One host's part: looks, asks the pure core what to do, publishes that, and does it."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.name: str = config["name"]
        self.addresses: dict[str, str] = {rank["name"]: rank["address"] for rank in config["ranks"]}
        self.head = next(iter(self.addresses))
        self.prover = _pair_host.Prover(config.get("gate") or {}, f"{config['base_dir']}/engine.secrets")
        self.pool = ThreadPoolExecutor(max_workers=len(self.addresses) + 1)
        self.proving: Future[_pair.Proof] | None = None
        self.generations = 0
        self.state: _pair.Leader | _pair_rank.Follower = (
            restored(_pair.Leader) if self.name == self.head else restored(_pair_rank.Follower)
        )
        self.page: dict[str, Any] = {}
        self.server = Server(self.addresses[self.name], config["port"], frozenset(self.addresses.values()))
        self.trouble = ""

    def rules(self, budgets: Mapping[str, float]) -> _pair.Rules:
        most, pause, load = self.config["most_restarts"], self.config["pause_seconds"], budgets["gate_deadline"]
        # Long enough that tries which fail late still count; see _budgets.py for the same thought about the unit.
        window = most * (load + budgets["unit_stop"] + _pair_host.PROOF_SECONDS) + pause * 2**most
        return _pair.Rules(
            load=load,
            most=most,
            window=window,
            pause=pause,
            probe=self.config["probe_seconds"],
            alone=self.config["alone_seconds"],
        )

    def tick(self) -> float:
        """One look and what follows from it; the seconds until the next one."""
        own, found = _pair_host.look(self.name, self.config["base_dir"], self.config["pause_dir"])
        if found and found.is_split and not own.hindrance and self.order(found.rank):
            own = _changed(own, hindrance=self.order(found.rank))
        if self.state.phase not in LISTENS:
            # What was asked for before the newest start, or while nothing may act, is settled or void.
            forget_wish()
        own = _changed(own, wish=wish(), generation=self.state.generation, phase=self.state.phase)
        rules = self.rules(found.budgets) if found else _pair.Rules(load=0)
        now = time.monotonic()
        after: _pair.Leader | _pair_rank.Follower
        acts: list[_pair.Act]
        if isinstance(self.state, _pair.Leader):
            peers = self.ask([name for name in self.addresses if name != self.name]) if not own.hindrance else {}
            stamp = max(time.time_ns() // 1_000_000, self.state.generation + 1)
            after, acts = _pair.lead(self.state, own, peers, self.proof(), now, stamp, rules)
            self.generations += after.generation != self.state.generation
        else:
            head = self.ask([self.head])[self.head] if not own.hindrance else None
            answers = head is None and found is not None and self.head_answers(found.port)
            after, acts = _pair_rank.follow(self.state, own, head, answers, now, rules)
        self.publish(after, own, found)
        for act in acts:
            self.do(act, found, own)
        if after.phase == _pair.OFF:
            return ASLEEP
        return QUIET if after.phase in CALM else BUSY

    def order(self, rank: int) -> str:
        names = list(self.addresses)
        if rank < len(names) and names[rank] == self.name:
            return ""
        return f"the release has this host as rank {rank}, and the order of the hosts is {', '.join(names)}: run the playbook site.yml"

    def ask(self, names: list[str]) -> dict[str, _pair.Rank | None]:
        return dict(zip(names, self.pool.map(self.look_at, names), strict=True))

    def look_at(self, name: str) -> _pair.Rank | None:
        url = f"{_gate_probe.base_url(self.addresses[name], self.config['port'])}/pair"
        answer = _http.get(url, timeout=PAGE_SECONDS)
        content: Any = answer.json() if answer.status == 200 and len(answer.body) < LONGEST_PAGE else None
        with contextlib.suppress(TypeError, KeyError, AttributeError):
            known = {entry.name: content[entry.name] for entry in fields(_pair.Rank)}
            return _pair.Rank(**{**known, "rollouts": tuple(known["rollouts"]), "name": name})
        return None

    def head_answers(self, port: int) -> bool:
        """Whether the head's engine is there although its page is not."""
        return (
            _http.get(f"{_gate_probe.base_url(self.addresses[self.head], port)}/health", timeout=PAGE_SECONDS).status
            != 0
        )

    def proof(self) -> _pair.Proof | None:
        """The outcome of the last question, once."""
        if self.proving is None or not self.proving.done():
            return None
        done, self.proving = self.proving, None
        if error := done.exception():
            say(f"the proof itself failed: {error!r}")
            return None
        return done.result()

    def publish(
        self, after: _pair.Leader | _pair_rank.Follower, own: _pair.Rank, found: _pair_host.Release | None
    ) -> None:
        """Before anything is done: what the others read, and what this program knows after a restart of its own."""
        self.state = after
        shown = asdict(_changed(own, generation=after.generation, phase=after.phase))
        self.server.content = json.dumps(shown).encode()
        release = found.identity if found else ""
        state = {
            "time": round(time.time(), 3),
            "head": self.head,
            **shown,
            "release": release,
            "reason": after.reason,
            "state": asdict(after),
        }
        if state | {"time": 0} != self.page | {"time": 0} or state["time"] - self.page["time"] > 10:
            self.page = state
            _pair_host.replace_file(STATE, json.dumps(state, indent=1) + "\n")
            # A full disk is no reason to leave the pair alone.
            with contextlib.suppress(OSError):
                _pair_host.replace_file(self.config["metrics"], metrics(state, self.generations))

    def do(self, act: _pair.Act, found: _pair_host.Release | None, own: _pair.Rank) -> None:
        if act.kind == _pair.SAY:
            say(act.words)
        elif found is None:
            return
        elif act.kind == _pair.DO_PROVE and self.proving is None:
            serves = self.state.phase == _pair.FORMED
            self.proving = self.pool.submit(self.prover.prove, found, own.invocation, serves)
        elif act.kind in (_pair.DO_STOP, _pair.DO_START):
            # A rollout may have begun since the look.
            if _pair_host.look(self.name, self.config["base_dir"], self.config["pause_dir"])[0].hindrance:
                return
            forget_wish()
            self.tell(_pair_host.stop(found) if act.kind == _pair.DO_STOP else _pair_host.start())

    def tell(self, trouble: str) -> None:
        """The same trouble once, not at every look."""
        if trouble and trouble != self.trouble:
            say(f"tries again: {trouble}")
        self.trouble = trouble


def wish() -> str:
    """Why somebody asks for a new generation; a file that cannot be understood is a wish too."""
    try:
        content = json.loads(Path(REQUEST).read_text())
        return str(content["reason"])[:300]
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError):
        return f"{REQUEST} is there"


def forget_wish() -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(REQUEST)


def _changed(rank: _pair.Rank, **values: Any) -> _pair.Rank:
    return _pair.Rank(**{**{entry.name: getattr(rank, entry.name) for entry in fields(rank)}, **values})


def restored(kind: Any) -> Any:
    """What this program knew before it was restarted; /run is empty after a boot, as it should be."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        known = json.loads(Path(STATE).read_text())["state"]
        if known.keys() == {entry.name for entry in fields(kind)}:
            return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in known.items()})
    return kind()


def metrics(state: Mapping[str, Any], generations: int) -> str:
    """For the node exporter's textfile collector."""
    rows = {
        "formed": (
            "gauge",
            "Whether the pair is formed and watched, on its head.",
            int(state["phase"] == _pair.FORMED),
        ),
        "gave_up": (
            "gauge",
            "Whether the pair was given up after too many tries.",
            int(state["phase"] == _pair.GAVE_UP),
        ),
        "acts": ("gauge", "Whether anything may act for the pair on this host.", int(state["phase"] != _pair.OFF)),
        "generations_total": ("counter", "Restarts of the whole pair since this service started.", generations),
        "time_seconds": ("gauge", "When this was written, in seconds since the epoch.", state["time"]),
    }
    return "".join(
        f"# HELP gb10_vllm_pair_{name} {words}\n# TYPE gb10_vllm_pair_{name} {kind}\ngb10_vllm_pair_{name} {value}\n"
        for name, (kind, words, value) in rows.items()
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Keeps the ranks of a pair together.")
    parser.add_argument("--config", required=True)
    config = json.loads(Path(parser.parse_args().config).read_text())
    pair = Pair(config)
    say(f"watches the pair of {', '.join(pair.addresses)}; this is {pair.name}")
    while True:
        try:
            pause = pair.tick()
        except (_host.HostError, OSError) as error:
            # systemd or docker is being restarted, or the disk is full: the next look may do better.
            pair.tell(str(error))
            pause = QUIET
        time.sleep(pause)
