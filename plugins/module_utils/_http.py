# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One small HTTP question, answered or explained; never an exception for what the other side does.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import http.client
import json
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
    """`timeout` in seconds bounds connecting and every single read."""
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        try:
            response = _OPENER.open(request, timeout=timeout)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, response.read().decode(errors="replace"), headers=headers)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        return Answer(0, "", f"{type(reason).__name__}: {reason}" if not isinstance(reason, str) else reason)
