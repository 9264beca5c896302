# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook status.yml: on a site that is off it shows the table and fails nobody; on two engines it says what they do."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gb10.vllm.plugins.plugin_utils._status_lines import COLUMNS
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server, wait_until
from ansible_collections.gb10.vllm.tests.unit.playbooks import PROGRAMS, ROOT, TREE, connections, play

UNIT = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nNRestarts=3\n"
UNIT += "ActiveEnterTimestampMonotonic=1\nMainPID=1\nResult=success\nExecMainStatus=0\nInvocationID=0123\nNeedDaemonReload=no\n"
STARTED = "2026-11-29T20:41:33.123456789Z"
CONTAINER = {"Id": "0123", "Config": {"Image": "image"}, "State": {"Status": "running", "Pid": 1, "StartedAt": STARTED}}
LONG = {"model": "tiny", "prompt": "a", "max_tokens": 30000, "ignore_eos": True}


def test_site_that_is_off(tmp_path: Path) -> None:
    done = play(tmp_path, "playbooks/status.yml", "inventories/two-sparks")
    assert done.returncode == 0, done.stdout[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    for host in ("spark1", "spark2"):
        assert [host, *"??????????????", "could", "not", "be", "reached"] in lines
        assert f"{host}: could not be reached" in done.stdout
    assert ["0", "of", "2", *"?????", *"----"] in lines
    assert "proxy spark1: could not be reached" in done.stdout
    assert any("192.168.1.12" in call for call in connections(tmp_path))


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[dict[str, Server]]:
    """Two engines of this machine; one of them generates, slowly."""
    env = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.01"}
    command = [
        *STAND_IN,
        "serve",
        "/model",
        "--served-model-name",
        "tiny",
        "--max-model-len",
        "32768",
        "--port",
        "{port}",
    ]
    with Server(command, tmp_path / "log1", env) as first, Server(command, tmp_path / "log2", env) as second:
        both = {"spark1": first, "spark2": second}
        for server in both.values():
            server.wait_ready()
        threading.Thread(target=lambda: list(first.stream("/v1/completions", LONG)), daemon=True).start()
        wait_until(lambda: first.total("vllm:generation_tokens_total") > 0, 10, lambda: "generation")
        yield both


def site(folder: Path, ports: dict[str, int], **more: Any) -> Path:
    """An inventory of hosts that are this machine, with programs that tell of a unit and a container."""
    for name, text in {
        "systemctl": UNIT,
        "docker": json.dumps([CONTAINER]),
        "journalctl": "Application startup complete.\n",
    }.items():
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        (folder / f"{name}.txt").write_text(text)
        program.write_text(f"#!/bin/sh\ncat '{folder / name}.txt'\n")
        program.chmod(0o755)
    hosts: dict[str, Any] = {"off": {"ansible_host": "192.0.2.9"}}
    for name, port in ports.items():
        release = folder / name / "current"
        release.mkdir(parents=True)
        record = {"id": "replicated-1", "topology": "replicated", "rank": 0, "ranks": 1}
        (release / "release.json").write_text(json.dumps(record))
        hosts[name] = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        hosts[name] |= {"vllm_port": port, "vllm_base_dir": str(folder / name)}
    inventory = folder / "inventory.yml"
    groups = {"engines": {"hosts": hosts}, "proxies": {"hosts": {"off": {}}}}
    inventory.write_text(yaml.safe_dump({"all": {"children": groups, "vars": more}}))
    return inventory


def test_two_engines_and_a_host_that_is_off(tmp_path: Path, engines: dict[str, Server]) -> None:
    inventory = site(tmp_path, {name: server.port for name, server in engines.items()})
    done = play(tmp_path, "playbooks/status.yml", inventory, programs=tmp_path / "bin")
    assert done.returncode == 0, done.stdout[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    since = "replicated-1 (replicated, not stable, vLLM 0.32.0) since 2026-11-29 20:41Z on spark1, since 2026-11-29 20:41Z on spark2"
    assert since in done.stdout
    (head,) = [place for place, line in enumerate(lines) if line[:2] == list(COLUMNS[:2])]
    off, first, second, total = lines[head + 1 : head + 5]
    assert off[:5] == ["off", *"????"]
    assert first[:6] == ["spark1", "active", "-", "?", "1", "0"]
    assert 0 < float(first[8]) < 110
    assert second[:10] == ["spark2", "active", "-", "?", "0", "0", "0", "%", "0.0", "0.0"]
    assert total[:5] == ["2", "of", "3", "1", "0"]
    assert "the sum has all figures without off" in done.stdout


def test_json(tmp_path: Path, engines: dict[str, Server]) -> None:
    inventory = site(tmp_path, {name: server.port for name, server in engines.items()})
    done = play(
        tmp_path, "playbooks/status.yml", inventory, {"vllm_status_format": "json", "vllm_status_interval_seconds": 0.2},
        programs=tmp_path / "bin",
    )  # fmt: skip
    text = done.stdout[done.stdout.index("{\n") :]
    found, _end = json.JSONDecoder().raw_decode(text)
    assert found["engines"]["spark1"]["since"] == STARTED
    assert found["engines"]["off"]["trouble"] == "could not be reached"
    assert found["traffic"]["copies"]["spark1"]["running"] == 1
    assert found["traffic"]["copies"]["spark1"]["seconds"] >= 0.2
    assert found["traffic"]["copies"]["spark1"]["window"]["counters"]["generation_tokens"] > 0
    assert found["traffic"]["sum"]["read"] == 2


def test_several_looks_are_one_object_per_line(tmp_path: Path, engines: dict[str, Server]) -> None:
    inventory = site(tmp_path, {name: server.port for name, server in engines.items()})
    asked = {"watch": 0.1, "vllm_status_count": 3, "vllm_status_format": "json", "vllm_status_interval_seconds": 0.05}
    done = play(tmp_path, "playbooks/status.yml", inventory, asked, programs=tmp_path / "bin")
    assert done.returncode == 0, done.stdout[-3000:]
    looks = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [look["traffic"]["copies"]["spark1"]["running"] for look in looks] == [1, 1, 1]
    written = [look["traffic"]["copies"]["spark1"]["window"]["counters"]["generation_tokens"] for look in looks]
    assert all(tokens > 0 for tokens in written)
    assert "\033[" not in done.stdout


def test_ctrl_c_ends_the_looks_and_not_the_run(tmp_path: Path, engines: dict[str, Server]) -> None:
    inventory = site(tmp_path, {name: server.port for name, server in engines.items()})
    words = [
        "ansible-playbook",
        "--inventory",
        str(inventory),
        str(ROOT / "playbooks/status.yml"),
        "--extra-vars",
        "watch=30",
    ]
    places = {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(TREE)}
    places |= {"PATH": f"{tmp_path / 'bin'}:{PROGRAMS}", "HOME": str(tmp_path), "TERM": "xterm"}
    ssh = tmp_path / "bin" / "ssh"
    ssh.write_text("#!/bin/sh\nexit 255\n")
    ssh.chmod(0o755)
    program, terminal = pty.fork()
    if not program:
        os.execvpe(words[0], words, {**places, "ANSIBLE_SSH_EXECUTABLE": str(ssh)})
    seen, asked, end = b"", 0.0, time.monotonic() + 120
    try:
        while (chunk := read(terminal)) is not None:
            if time.monotonic() > end:
                os.kill(program, signal.SIGKILL)
            seen += chunk
            # The task listens for the key itself; in the moments in between Ctrl-C would end the whole run.
            if b"again every 30 s" in seen and not is_cooked(terminal) and time.monotonic() > asked + 2:
                os.write(terminal, b"\x03")
                asked = time.monotonic()
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        os.close(terminal)
    assert status == 0, seen.decode()
    assert b"\033[H\033[2J" in seen, "what was there before is gone"
    assert b"PLAY RECAP" in seen
    assert commands_with(str(inventory)) == []


def commands_with(word: str) -> list[str]:
    """The processes that have this word in their command."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [command for command in found if word in command]


def is_cooked(terminal: int) -> bool:
    return bool(termios.tcgetattr(terminal)[3] & termios.ICANON)


def read(terminal: int) -> bytes | None:
    """What has come within a moment; None once the program has ended."""
    ready, _writable, _failed = select.select([terminal], [], [], 0.1)
    try:
        return (os.read(terminal, 65536) or None) if ready else b""
    except OSError:
        return None


def test_two_names_for_one_engine(tmp_path: Path, engines: dict[str, Server]) -> None:
    port = engines["spark2"].port
    inventory = site(tmp_path, {"spark1": port, "spark2": port})
    done = play(
        tmp_path, "playbooks/status.yml", inventory, {"vllm_status_interval_seconds": 0}, programs=tmp_path / "bin"
    )
    assert done.returncode == 0
    assert "no sum: spark1 and spark2 are the same process" in done.stdout
