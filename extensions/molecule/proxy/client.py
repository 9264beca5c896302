# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that measures: `client.py URL posts N` or `client.py URL stream PIECES GAP`; prints one JSON object."""

from __future__ import annotations

import collections
import http.client
import json
import sys
import time
import urllib.parse


def connect(url: str) -> http.client.HTTPConnection:
    """A connection of its own per request, so that no request depends on an earlier one."""
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)


def posts(url: str, number: int) -> dict[str, object]:
    """How many answers came with which status, and from which copy."""
    statuses: collections.Counter[str] = collections.Counter()
    copies: collections.Counter[str] = collections.Counter()
    for _ in range(number):
        connection = connect(url)
        connection.request("POST", "/v1/chat/completions", b"{}")
        response = connection.getresponse()
        response.read()
        connection.close()
        statuses[str(response.status)] += 1
        copies[response.headers.get("X-Vllm-Copy", "none")] += 1
    return {"statuses": statuses, "copies": copies}


def stream(url: str, pieces: int, gap: float) -> dict[str, object]:
    """When each piece of a stream came, counted from the first one."""
    connection = connect(url)
    connection.request("POST", "/v1/stream", json.dumps({"pieces": pieces, "gap": gap}))
    response = connection.getresponse()
    times = []
    for line in response:
        if line.strip():
            times.append(time.monotonic())
    connection.close()
    return {
        "status": response.status,
        "copy": response.headers.get("X-Vllm-Copy"),
        "pieces": len(times),
        "gaps": [round(after - before, 3) for before, after in zip(times, times[1:], strict=False)],
    }


if __name__ == "__main__":
    _, target, kind, *numbers = sys.argv
    print(
        json.dumps(
            posts(target, int(numbers[0])) if kind == "posts" else stream(target, int(numbers[0]), float(numbers[1]))
        )
    )
