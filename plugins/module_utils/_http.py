# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small HTTP question, answered or explained; never an exception for what the other side does.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

# An operator's HTTP proxy must not stand between a host and its own engine.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Answer:
    """`status` is the HTTP status, 0 when there was no answer; `problem` then says why. Names of `headers` are in lower case."""

    status: int
    body: str
    problem: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def refused(self) -> bool:
        """Nobody listens there; other than silence, this is what an ended process looks like."""
        return "ConnectionRefusedError" in self.problem

    def json(self) -> Any:
        """The body as JSON, None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


def get(url: str, timeout: float, token: str = "") -> Answer:
    return _ask(urllib.request.Request(url), timeout, token)


def post(url: str, content: dict[str, Any], timeout: float, token: str = "") -> Answer:
    request = urllib.request.Request(
        url, data=json.dumps(content).encode(), headers={"Content-Type": "application/json"}
    )
    return _ask(request, timeout, token)


def _ask(request: urllib.request.Request, timeout: float, token: str) -> Answer:
    """`timeout` in seconds bounds connecting, every single read, and, but for one read, the whole."""
    end = time.monotonic() + timeout
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        try:
            response = _OPENER.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, _read(response, end).decode(errors="replace"), headers=headers)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        return Answer(0, "", f"{type(reason).__name__}: {reason}" if not isinstance(reason, str) else reason)


def _read(response: Any, end: float) -> bytes:
    """The whole body; a server that sends a byte now and then for ever must not hold its client."""
    parts = []
    while part := response.read1(65536):
        parts.append(part)
        if time.monotonic() > end:
            raise TimeoutError("timed out: the answer began but did not end in time")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(parts)
