# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The traffic client against a stand-in engine: whatever happens to a request is in its record."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.e2e.traffic import summary
from ansible_collections.gb10.vllm.tests.standin.server import STAND_IN, Server, free_port, wait_until

CLIENT = Path(__file__).parents[2] / "e2e" / "traffic" / "client.py"


class Site:
    """A stand-in with a file of faults, and the client that talks to it."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.faults, self.out, self.server = folder / "faults.json", folder / "records", server

    def records(self) -> list[dict[str, Any]]:
        return summary.read(self.out.open()) if self.out.exists() else []

    def command(self, *options: str, port: int | None = None) -> list[str]:
        url = f"http://127.0.0.1:{port or self.server.port}/v1"
        base = ["--base-url", url, "--model", "tiny", "--out", str(self.out), "--rate", "20", "--seconds", "0.4"]
        return [sys.executable, str(CLIENT), *base, *options]

    def run(self, *options: str, port: int | None = None) -> list[dict[str, Any]]:
        subprocess.run(self.command(*options, port=port), check=True, timeout=60)
        records = self.records()
        assert records
        return records


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    env = {"STANDIN_LOAD_SECONDS": "0.1", "STANDIN_TOKEN_SECONDS": "0.01"}
    env["STANDIN_FAULTS_FILE"] = str(tmp_path / "faults.json")
    command = [*STAND_IN, "serve", "m", "--served-model-name", "tiny", "--host", "127.0.0.1", "--port", "{port}"]
    with Server(command, tmp_path / "log", env) as server:
        yield Site(tmp_path, server.wait_ready())


def test_good_answers_streamed_and_plain(site: Site) -> None:
    records = site.run()
    assert {r["streamed"] for r in records} == {True, False}
    for r in records:
        assert (r["status"], r["complete"], r["retries"], r["copy"]) == (200, True, 0, None)
        assert r["start"] <= r["attempts"][0][0] <= r["answered"] <= r["end"]


@pytest.mark.parametrize(
    ("faults", "options", "status", "attempts"),
    [
        ({"fast_503": True}, ["--retries", "1"], {503}, [503, 503]),
        ({"never_answer": True}, ["--retries", "0", "--timeout", "0.3"], {"timeout"}, [None]),
        ({"hang": True}, ["--retries", "0", "--timeout", "20", "--grace", "0.2"], {"cancelled"}, [None]),
    ],
)
def test_failures(
    site: Site, faults: dict[str, Any], options: list[str], status: set[Any], attempts: list[Any]
) -> None:
    site.faults.write_text(json.dumps(faults))
    records = site.run(*options)
    assert {r["status"] for r in records} == status
    for r in records:
        assert not r["complete"]
        assert [code for _, code in r["attempts"]] == attempts
        assert r["retries"] == len(attempts) - 1


def test_nobody_listens(site: Site) -> None:
    records = site.run("--retries", "0", port=free_port())
    assert {(r["status"], r["answered"]) for r in records} == {("connection", None)}


def test_cut_stream_is_broken(site: Site) -> None:
    site.faults.write_text('{"reset_stream": 3}')
    records = site.run("--prompt", "tell a story", "--max-tokens", "20", "--retries", "0")
    assert {(r["streamed"], r["status"], r["complete"]) for r in records} == {
        (False, 200, True),
        (True, "broken", False),
    }


def test_503_hidden_by_a_retry_is_seen(site: Site) -> None:
    site.faults.write_text('{"fast_503": true}')
    client = subprocess.Popen(site.command("--seconds", "30", "--rate", "1"))
    wait_until(lambda: "503" in site.server.log, 20, lambda: "the first refusal")
    site.faults.write_text("{}")
    wait_until(lambda: bool(site.records()), 20, lambda: "a record")
    client.send_signal(signal.SIGTERM)
    assert client.wait(20) == 0
    first = site.records()[0]
    assert (first["status"], first["complete"]) == (200, True)
    assert [code for _, code in first["attempts"]] == [503] * first["retries"] + [200]
    assert first["retries"] >= 1


def test_stop_file_and_concurrency(site: Site, tmp_path: Path) -> None:
    site.faults.write_text('{"hang": true}')
    stop = tmp_path / "stop"
    options = ["--seconds", "30", "--concurrency", "3", "--stop-file", str(stop), "--grace", "0"]
    client = subprocess.Popen(site.command(*options))
    wait_until(lambda: site.server.total("vllm:num_requests_running") == 3, 20, lambda: "three requests")
    stop.touch()
    assert client.wait(20) == 0
    assert len(site.records()) == 3


def test_all_requests_can_be_streams(site: Site) -> None:
    records = site.run("--streamed", "all", "--prompt", "Tell me a story.", "--max-tokens", "30")
    assert {(r["streamed"], r["complete"]) for r in records} == {(True, True)}
    assert all(r["end"] - r["answered"] > 0.2 for r in records), "they last as long as their tokens"
