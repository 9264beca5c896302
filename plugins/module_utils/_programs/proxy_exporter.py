# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of a proxy: what its access log says of each copy, who is admitted, the hold, the certificate, nginx's connections.

Private to this collection: may change at any time. Host-side, standard library only. Reads only.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any, TextIO

from ansible_collections.gb10.vllm.plugins.module_utils import _certificate, _exporter, _http, _nginx, _proxy_counts
from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family, gauge

# The log may grow by more than this in one look only after a pause; then the rest follows in the next one.
MOST_BYTES = 64 * 2**20
CERTIFICATE_SECONDS = 300


class Tail:
    """The new whole lines of a log, through its rotation. What is there at the start is not new."""

    def __init__(self, path: str) -> None:
        self.path, self.rest = path, ""
        self.stream: TextIO | None = None
        self._open(at_end=True)

    def _open(self, at_end: bool = False) -> None:
        try:
            self.stream = open(self.path, encoding="utf-8", errors="replace")  # noqa: SIM115
        except FileNotFoundError:
            self.stream = None
            return
        if at_end:
            self.stream.seek(0, os.SEEK_END)

    def lines(self) -> list[str]:
        if self.stream is None:
            self._open()
        found = self._read()
        if self._rotated():
            # nginx goes on writing to the old file until it is told, which is right after.
            found += self._read()
            if self.stream:
                self.stream.close()
            self.rest = ""
            self._open()
            found += self._read()
        return found

    def _read(self) -> list[str]:
        if self.stream is None:
            return []
        whole, mark, self.rest = (self.rest + self.stream.read(MOST_BYTES)).rpartition("\n")
        return whole.split("\n") if mark else []

    def _rotated(self) -> bool:
        if self.stream is None:
            return False
        try:
            there, mine = os.stat(self.path), os.fstat(self.stream.fileno())
        except FileNotFoundError:
            return False
        return there.st_ino != mine.st_ino or there.st_size < self.stream.tell()


class Proxy:
    """Looks at one proxy."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.tail, self.counts = Tail(config["access_log"]), _proxy_counts.Counts()
        self.end: float | None = None
        self.looked = -float("inf")

    def families(self) -> list[Family]:
        for line in self.tail.lines():
            self.counts.add(line)
        return [*self.counts.families(), self._admitted(), self._hold(), self._certificate(), self._connections()]

    def _admitted(self) -> Family:
        path = self.config["servers_file"]
        family = Family("gb10_vllm_copy_admitted", "gauge", "Whether the proxy gives requests to the copy.")
        servers = {server.name for server in _nginx.parse(Path(path).read_text(encoding="utf-8"), path).servers}
        for copy in sorted({*self.config["copies"], *servers}):
            family.add(int(copy in servers), copy=copy)
        return family

    def _hold(self) -> Family:
        try:
            until = float(json.loads(Path(self.config["hold_file"]).read_text(encoding="utf-8"))["until"])
        except (OSError, ValueError, KeyError, TypeError):
            until = 0
        return gauge("gb10_vllm_hold_declared", "Whether requests that find no copy wait.", int(until > time.time()))

    def _certificate(self) -> Family:
        path, key, end = self.config["certificate"], self.config["certificate_key"], None
        if path and time.monotonic() - self.looked > CERTIFICATE_SECONDS:
            with contextlib.suppress(_certificate.CertificateError):
                end = _certificate.ends(path, key)
            self.looked, self.end = time.monotonic(), end
        return gauge("gb10_vllm_certificate_end_timestamp_seconds", "When the proxy's certificate ends.", self.end)

    def _connections(self) -> Family:
        """nginx's own few figures; none while it does not answer, which is what other figures are about."""
        family = Family("gb10_vllm_proxy_connections", "gauge", "Connections of nginx, by what it does with them.")
        answer = _http.get(self.config["status_url"], timeout=2)
        if answer.status == 200:
            found = re.findall(r"(Active connections|Reading|Writing|Waiting): (\d+)", answer.body)
            for name, count in found:
                family.add(int(count), state=name.split()[0].lower())
        return family


def main() -> int:
    """Entry point."""
    return _exporter.run("proxy", lambda config: Proxy(config).families)
