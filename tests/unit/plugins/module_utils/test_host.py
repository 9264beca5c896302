# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at a host and writing to it; commands are run for real, with programs every system has."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host


def test_run() -> None:
    assert _host.run(["sh", "-c", "echo a; echo b >&2"]).stdout == "a\n"
    assert _host.run(["sh", "-c", "exit 3"], check=False).returncode == 3


def test_run_survives_what_is_no_text() -> None:
    """A log line may be cut within a character."""
    assert _host.run(["printf", r"caf\xc3\xa9 \xe2\x96"]).stdout == "café �"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-program"], "no-such-program is not installed on this host"),
        (["sh", "-c", "echo first; echo why >&2; exit 3"], "failed (3): why"),
        (["sh", "-c", "echo why; exit 3"], "failed (3): why"),
        (["false"], "`false` failed (1): no output"),
        (["sleep", "5"], "`sleep 5` did not end within 0 s"),
    ],
)
def test_run_explains(command: list[str], message: str) -> None:
    with pytest.raises(_host.HostError) as error:
        _host.run(command, timeout=0.2)
    assert message in str(error.value)


def answer(monkeypatch: pytest.MonkeyPatch, returncode: int, stdout: str = "", stderr: str = "") -> None:
    """Let every command give this answer."""
    done = subprocess.CompletedProcess([], returncode, stdout, stderr)
    monkeypatch.setattr(_host, "run", lambda command, timeout=60, check=True: done)


def test_unit_state(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 0, "LoadState=loaded\nActiveState=active\nResult=\n\nX=a=b\n")
    assert _host.unit_state() == {"LoadState": "loaded", "ActiveState": "active", "Result": "", "X": "a=b"}


def test_container_state(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(
        monkeypatch, 0,
        '[{"Id": "i", "Config": {"Image": "m"}, "State": {"Status": "running", "Pid": 7, "StartedAt": "s"}, "Name": "/vllm"}]',
    )  # fmt: skip
    assert _host.container_state("vllm") == {"id": "i", "image": "m", "status": "running", "pid": 7, "started": "s"}


def test_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 1, "[]", "Error response from daemon: No such container: vllm")
    assert _host.container_state("vllm") is None


def test_a_silent_docker_is_not_no_container(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, 1, "", "Cannot connect to the Docker daemon")
    with pytest.raises(_host.HostError, match="cannot be asked for the container vllm: Cannot connect"):
        _host.container_state("vllm")


def test_listening_ports() -> None:
    lines = [
        "  sl  local_address rem_address   st tx_queue",
        "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000",
        "   1: 0100007F:1F41 0100007F:1F40 01 00000000:00000000",
        "   2: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0",
        "",
    ]
    assert _host.listening_ports(lines) == {8000, 80}


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_is_listening(family: socket.AddressFamily, address: str) -> None:
    try:
        server = socket.create_server((address, 0), family=family)
    except OSError:
        assert family == socket.AF_INET6  # a machine without IPv6 has nothing to see
        return
    port = server.getsockname()[1]
    with server:
        assert _host.is_listening(port)
    assert not _host.is_listening(port)


def test_memory() -> None:
    assert 0 < _host.memory_available_bytes() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_last_log_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], timeout: float = 60, check: bool = True) -> Any:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0, "a  \n\n  \nb\n", "")

    monkeypatch.setattr(_host, "run", run)
    assert _host.last_log_lines(5) == ["a", "b"]
    assert _host.last_log_lines(5, since_seconds=12.4, unit="x") == ["a", "b"]
    assert {"--unit=vllm.service", "--lines=5"} < set(asked[0])
    assert {"--unit=x", "--since=@12"} < set(asked[1])


def test_read_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    assert _host.read_json(str(path)) is None
    path.write_text('{"a": 1}')
    assert _host.read_json(str(path)) == {"a": 1}
    for text, message in (("{", "is not JSON"), ("", "is not JSON"), ("[1]", "does not hold a JSON object")):
        path.write_text(text)
        with pytest.raises(_host.HostError, match=message):
            _host.read_json(str(path))


def test_write_atomically(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    os.link(path, tmp_path / "old")
    _host.write_atomically(str(path), "new", 0o600)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "old").read_text() == "old", "the old file was written over, not replaced"
    assert sorted(os.listdir(tmp_path)) == ["a", "old"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        _host.write_atomically(str(path), "new \ud800")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_link_atomically(tmp_path: Path) -> None:
    link = tmp_path / "current"
    # as a process of the same number left it when it was killed
    os.symlink("x", f"{link}.{os.getpid()}.new")
    for target in ("releases/a", "releases/b"):
        _host.link_atomically(target, str(link))
        assert os.readlink(link) == target
        assert _host.linked_release(str(tmp_path), "current") == os.path.basename(target)
    assert os.listdir(tmp_path) == ["current"]
    assert _host.linked_release(str(tmp_path), "previous") is None


def test_deadline() -> None:
    budget = _host.Deadline(0.05)
    assert 0 < budget.left <= 0.05
    started = time.monotonic()
    budget.pause(60)
    assert 0.04 <= time.monotonic() - started < 5
    assert budget.elapsed >= 0.04
    budget.pause(60)
    assert budget.left <= 0
