# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A vLLM server, real or stand-in, as a plain process of a test: start it, talk to it, end it."""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1

STAND_IN = (sys.executable, str(Path(__file__).with_name("vllm_standin.py")))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], seconds: float, what: Callable[[], str]) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"Not within {seconds} s: {what()}")
        time.sleep(0.02)


def _end_with_parent() -> None:
    """A test that is killed, or forked as ansible-test does it, has no time to end what it started."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """One process, with {port} in its command replaced; its output goes to a file, as it would to a journal."""

    def __init__(
        self, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None, port_taken: bool = False
    ) -> None:
        self.taken = socket.create_server(("127.0.0.1", 0)) if port_taken else None
        self.port = int(self.taken.getsockname()[1]) if self.taken else free_port()
        self.log_file = log
        argv = [word.replace("{port}", str(self.port)) for word in command]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                argv,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process of it at once, in the session that was made for it; a graceful end is a test's own act."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self.taken:
            self.taken.close()

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join(["the last lines of its log are:", *self.log.splitlines()[-25:]])

    def wait_log(self, text: str, seconds: float = 10) -> None:
        wait_until(lambda: self.ended() or text in self.log, seconds, lambda: f"{text!r} in the log; {self.tail()}")
        assert text in self.log, f"ended with {self.process.poll()} before {text!r}; {self.tail()}"

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait_ready(self, seconds: float = 10) -> Server:
        self.wait_log("Application startup complete.", seconds)
        return self

    def wait_end(self, seconds: float = 10) -> int:
        wait_until(self.ended, seconds, lambda: f"the end of the process; {self.tail()}")
        return self.process.wait()

    def listening(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2):
                return True
        except ConnectionRefusedError:
            return False

    def open(self, method: str, path: str, data: Any, key: str | None, seconds: float) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        headers = {"Content-Type": "application/json", "Connection": "close"}
        headers |= {"Authorization": f"Bearer {key}"} if key else {}
        connection.request(method, path, None if data is None else json.dumps(data), headers)
        return connection.getresponse()

    def get(self, path: str, key: str | None = None, seconds: float = 10) -> Reply:
        with self.open("GET", path, None, key, seconds) as response:
            return Reply(response.status, response.read())

    def post(self, path: str, data: Any, key: str | None = None, seconds: float = 60) -> Reply:
        with self.open("POST", path, data, key, seconds) as response:
            return Reply(response.status, response.read())

    def stream(self, path: str, data: dict[str, Any], key: str | None = None, seconds: float = 60) -> Iterator[str]:
        """The contents of the events of a streamed answer, as they come."""
        with self.open("POST", path, {**data, "stream": True}, key, seconds) as response:
            assert response.status == 200, response.read()
            assert str(response.headers["Content-Type"]).startswith("text/event-stream")
            for line in response:
                if line.startswith(b"data: "):
                    yield line.removeprefix(b"data: ").decode().strip()

    def metrics(self) -> dict[str, float]:
        """Series (name with labels, as printed) and values."""
        lines = self.get("/metrics").body.decode().splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {series: float(value) for series, value in rows}

    def total(self, name: str, label: str = "") -> float:
        """The sum of a metric over its series; `label` narrows it to the series that have that text."""
        found = [v for k, v in self.metrics().items() if k.split("{")[0] == name and label in k]
        assert found, f"no series of {name} with {label!r} in /metrics"
        return sum(found)
