# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the pair's service: what it reads of a host, the commands it gives, the questions it asks, and two of them on this machine."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _pair, _pair_host
from ansible_collections.gb10.vllm.plugins.module_utils._programs import pair as program

BUDGETS = {"gate_deadline": 20, "unit_stop": 5}
UNIT = "LoadState=loaded\nActiveState={}\nSubState={}\nUnitFileState={}\nInvocationID=abc\n"


def put_release(base: Path, topology: str = "split", rank: int = 0, stable: bool = True) -> None:
    identity = f"{topology}-1"
    record = {
        "id": identity,
        "topology": topology,
        "rank": rank,
        "port": 8000,
        "served_model_name": "tiny",
        "max_model_len": 10,
        "budgets": BUDGETS,
        "command": [["serve", "/models/tiny"], ["--nnodes", "2"], ["--master-port", "29501"]],
    }
    (base / "current").mkdir(parents=True, exist_ok=True)
    (base / "current/release.json").write_text(json.dumps(record))
    entries = [{"rollout": "r1", "release": identity if stable else "other", "at": 1}]
    (base / "stable.json").write_text(json.dumps({"stable": entries}))


@pytest.fixture
def host(commands: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A rank of a stable pair that runs."""
    put_release(tmp_path)
    commands.base, commands.open = str(tmp_path), set()
    commands.answers = {
        "systemctl show": (0, UNIT.format("active", "running", "enabled"), ""),
        "docker inspect": (1, "[]", "No such container"),
        "docker rm": (0, "", ""),
        "systemctl stop": (0, "", ""),
        "systemctl reset-failed": (0, "", ""),
        "systemctl start": (0, "", ""),
    }
    monkeypatch.setattr(_host, "is_listening", lambda port: port in commands.open)
    monkeypatch.setattr(_host, "memory_available_bytes", lambda: 1)
    return commands


def look(host: Any) -> _pair.Rank:
    return _pair_host.look("a", host.base, f"{host.base}/pause")[0]


def unit(host: Any, active: str, sub: str = "dead", enabled: str = "enabled") -> None:
    host.answers["systemctl show"] = (0, UNIT.format(active, sub, enabled), "")


def test_a_rank_that_runs(host: Any) -> None:
    rank = look(host)
    assert (rank.hindrance, rank.running, rank.invocation, rank.gone, rank.rollouts) == (
        "",
        True,
        "abc",
        False,
        ("r1",),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda host: Path(host.base, "current/release.json").unlink(), "no release is in use"),
        (lambda host: put_release(Path(host.base), topology="replicated"), "(replicated-1) is no pair"),
        (lambda host: put_release(Path(host.base), stable=False), "(split-1) never became stable"),
        (lambda host: unit(host, "active", enabled="disabled"), "vllm.service is disabled"),
        (lambda host: (Path(host.base, "pause").mkdir(), Path(host.base, "pause/me").touch()), "paused: me"),
    ],
)
def test_what_keeps_it_from_acting(host: Any, change: Callable[[Any], Any], words: str) -> None:
    change(host)
    assert words in look(host).hindrance


@pytest.mark.parametrize(
    ("active", "sub", "container", "ports", "running", "gone"),
    [
        ("inactive", "dead", "", set(), False, True),
        ("failed", "failed", "", set(), False, True),
        ("activating", "auto-restart", "", set(), False, False),
        ("activating", "start-pre", "", set(), True, False),
        ("deactivating", "stop-sigterm", "", set(), True, False),
        ("inactive", "dead", "running", set(), False, False),
        ("inactive", "dead", "", {8000}, False, False),
        ("inactive", "dead", "", {29501}, False, False),
        ("inactive", "dead", "no docker", set(), False, False),
    ],
)
def test_gone_is_proven(
    host: Any, active: str, sub: str, container: str, ports: set[int], running: bool, gone: bool
) -> None:
    unit(host, active, sub)
    host.open = ports
    if container == "no docker":
        host.answers["docker inspect"] = (1, "", "Cannot connect to the Docker daemon")
    elif container:
        state = {"Status": container, "Pid": 1, "StartedAt": ""}
        found = [{"Id": "1", "Config": {"Image": "i"}, "State": state}]
        host.answers["docker inspect"] = (0, json.dumps(found), "")
    rank = look(host)
    assert (rank.running, rank.gone) == (running, gone)


def test_a_container_that_its_unit_has_left_is_removed(host: Any) -> None:
    found = _pair_host.release(host.base)
    assert found is not None
    unit(host, "inactive")
    state = {"Status": "running", "Pid": 1, "StartedAt": ""}
    there = (0, json.dumps([{"Id": "1", "Config": {"Image": "i"}, "State": state}]), "")
    gone = host.answers["docker inspect"]
    host.answers["docker inspect"] = lambda: gone if host.begins("docker rm --force vllm") else there
    assert _pair_host.stop(found) == ""
    assert len(host.begins("docker rm --force vllm")) == 1


def test_ports_belong_to_the_head(host: Any) -> None:
    """Something else may listen there on another rank."""
    put_release(Path(host.base), rank=1)
    unit(host, "inactive")
    host.open = {8000, 29501}
    assert look(host).gone


def test_stop_and_start(host: Any) -> None:
    found = _pair_host.release(host.base)
    assert found is not None
    unit(host, "inactive")
    assert _pair_host.stop(found) == ""
    assert _pair_host.start() == ""
    told = [line for line in host.asked if "show" not in line and "inspect" not in line]
    stop, start = "systemctl stop vllm.service", "systemctl start vllm.service"
    assert told == [stop, "systemctl reset-failed vllm.service", start]
    host.answers["systemctl start"] = (1, "", "no such unit")
    assert "no such unit" in _pair_host.start()


# --- Questions to the engine -----------------------------------------------------------------------------------------


class Engine(BaseHTTPRequestHandler):
    """Answers as its server says."""

    server: Any

    def do_GET(self) -> None:
        self.reply(
            200, f'vllm:prompt_tokens_total{{a="b"}} {next(self.server.counter)}\n' if "metrics" in self.path else ""
        )

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": self.server.words}
        self.reply(self.server.status, json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}))

    def reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words: object) -> None:
        """Quiet."""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Engine) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made: Any = server
        made.status, made.words, made.counter = 200, "It is Paris.", iter([5, 5, 5, 5])
        put_release(tmp_path)
        found = _pair_host.release(str(tmp_path))
        assert found is not None
        made.found = _pair_host.Release(**{**vars(found), "port": server.server_address[1]})
        made.prover = _pair_host.Prover({"completion_seconds": 5}, str(tmp_path / "engine.secrets"))
        yield made
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "words", "counter", "serves", "outcome"),
    [
        (200, "It is Paris.", (5, 5), False, _pair.GOOD),
        (200, "stone river stone", (5, 5), False, _pair.BAD),
        (200, "stone", (5, 5), True, _pair.GOOD),
        (500, "", (5, 5), True, _pair.BAD),
        (503, "", (5, 5), True, _pair.BAD),
        (503, "", (5, 6), True, _pair.BUSY),
        (401, "", (5, 5), True, _pair.BUSY),
    ],
)
def test_proof(engine: Any, status: int, words: str, counter: tuple[int, int], serves: bool, outcome: str) -> None:
    engine.status, engine.words, engine.counter = 500, "", iter(counter)
    engine.prover.prove(engine.found, "x", True)
    engine.status, engine.words = status, words
    proof = engine.prover.prove(engine.found, "abc", serves)
    assert (proof.outcome, proof.invocation) == (outcome, "abc")


def test_nobody_listens(engine: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = _pair_host.Release(**{**vars(engine.found), "port": port})
    assert engine.prover.prove(found, "abc", False).outcome == _pair.CLOSED


def test_the_key_is_read_where_the_engine_has_it(tmp_path: Path) -> None:
    (tmp_path / "engine.secrets").write_text("# words\nHF_TOKEN=x\nVLLM_API_KEY=a=b\n")
    assert _pair_host.api_key(str(tmp_path / "engine.secrets")) == "a=b"
    assert _pair_host.api_key(str(tmp_path / "none")) == ""


# --- Two services ----------------------------------------------------------------------------------------------------


class Machine:
    """What the service of one host does to its engine, instead of systemd."""

    def __init__(self, name: str, base: Path) -> None:
        self.name, self.base, self.running, self.starts = name, base, True, 1

    def rank(self) -> _pair.Rank:
        return _pair.Rank(
            self.name,
            running=self.running,
            invocation=f"{self.name}{self.starts}",
            gone=not self.running,
            rollouts=("r1",),
            is_split=True,
        )

    def start(self) -> None:
        self.running, self.starts = True, self.starts + 1


def test_two_services_form_a_new_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """Over real sockets on two loopback addresses, each with files of its own; the engines are make-believe."""
    machines, services, order = {}, {}, []
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = [{"name": "a", "address": "127.0.0.1"}, {"name": "b", "address": "127.0.0.2"}]
    for rank, name in enumerate("ab"):
        base = tmp_path / name
        put_release(base, rank=rank)
        machines[name] = Machine(name, base)
    config = {
        **{
            "ranks": ranks,
            "port": port,
            "most_restarts": 3,
            "pause_seconds": 0,
            "probe_seconds": 0,
            "alone_seconds": 9,
        },
        "pause_dir": str(tmp_path / "pause"),
    }

    def turn(name: str) -> None:
        machine = machines[name]
        found = _pair_host.release(str(machine.base))

        def stop(found: Any) -> str:
            order.append(f"stop {name}")
            machine.running = False
            return ""

        def start() -> str:
            order.append(f"start {name}")
            machine.start()
            return ""

        monkeypatch.setattr(_pair_host, "look", lambda *words: (machine.rank(), found))
        monkeypatch.setattr(_pair_host, "stop", stop)
        monkeypatch.setattr(_pair_host, "start", start)
        monkeypatch.setattr(program, "STATE", str(machine.base / "run/pair.json"))
        monkeypatch.setattr(program, "REQUEST", str(machine.base / "run/pair-restart"))
        if name not in services:
            own = {"name": name, "base_dir": str(machine.base), "metrics": str(machine.base / "pair.prom")}
            services[name] = program.Pair({**config, **own})
            services[name].prover.prove = lambda found, invocation, serves: _pair.Proof(_pair.GOOD, "", invocation)
        services[name].tick()

    def until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end, (services["a"].state, services["b"].state, order)
            turn("b")
            turn("a")

    turn("a")
    turn("b")
    until(lambda: services["a"].state.phase == _pair.FORMED)
    assert order == [], "what answers is adopted"
    (tmp_path / "b/run").mkdir(exist_ok=True)
    (tmp_path / "b/run/pair-restart").write_text('{"reason": "stalled"}')
    until(lambda: bool(order))
    until(lambda: services["a"].state.phase == _pair.FORMED)
    assert (sorted(order[:2]), order[2:]) == (["stop a", "stop b"], ["start b", "start a"])
    assert not (tmp_path / "b/run/pair-restart").exists()
    assert "asked for: stalled" in capsys.readouterr().err
    # After a restart of the program itself it goes on with what it knew.
    known = services["a"].state
    monkeypatch.setattr(program, "STATE", str(tmp_path / "a/run/pair.json"))
    assert program.restored(_pair.Leader) == known
    assert "gb10_vllm_pair_formed 1" in (tmp_path / "a/pair.prom").read_text()
    # The page is for the hosts of the pair.
    connection = http.client.HTTPConnection("127.0.0.1", port, source_address=("127.0.0.9", 0))
    connection.request("GET", "/pair")
    assert connection.getresponse().status == 403
