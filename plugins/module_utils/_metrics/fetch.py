# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics page of one copy on this host, whole or refused.

Private to this collection: may change at any time. Host-side, standard library only; the only file here that does I/O.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import reading
from .text import MetricsError

# A page of a busy engine has some 200 kB.
MOST_BYTES = 16 * 2**20
_CHUNK = 64 * 2**10
# A clock that is set between two readings of one run must not make rates.
_EPOCH = time.time() - time.monotonic()
_PROXIES = ("nginx", "openresty", "haproxy", "envoy", "caddy", "traefik")


class ProxyError(ValueError):
    """A proxy answers where an engine should; the message says by what one knows."""


class NoAnswerError(OSError):
    """Nothing answers, or not in time."""


def get(address: str, port: int, path: str, seconds: float) -> tuple[int, dict[str, str], bytes]:
    """Status, headers (names in lower case) and the whole body. No single read takes longer than so many seconds, nor do all.

    Raises:
        NoAnswerError: nobody listens, or the answer did not end in time.
        MetricsError: the answer was cut off, has no marked end, or is too large.
    """
    end = time.monotonic() + seconds
    connection = http.client.HTTPConnection(address, port, timeout=seconds)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = bytearray()
        while chunk := response.read1(_CHUNK):
            body += chunk
            if time.monotonic() > end:
                raise NoAnswerError(f"the answer did not end within {seconds:g} s")
            if len(body) > MOST_BYTES:
                raise MetricsError(f"the answer has more than {MOST_BYTES // 2**20} MiB")
        missing = response.length or 0
    except http.client.IncompleteRead as error:
        raise MetricsError("the answer was cut off") from error
    except http.client.HTTPException as error:
        raise MetricsError(f"the answer is no HTTP: {type(error).__name__}") from error
    except TimeoutError as error:
        raise NoAnswerError(f"no answer within {seconds:g} s") from error
    finally:
        connection.close()
    if missing:
        raise MetricsError(f"the answer was cut off: {missing} bytes are missing")
    if "content-length" not in headers and headers.get("transfer-encoding", "").lower() != "chunked":
        raise MetricsError("the answer does not say where it ends, so nobody can tell whether it is whole")
    return response.status, headers, bytes(body)


def proxy_in(status: int, headers: Mapping[str, str], body: bytes, copy_header: str) -> str:
    """By what one knows that a proxy answered; empty when nothing says so."""
    server = headers.get("server", "")
    if copy_header and copy_header.lower() in headers:
        return f"the answer has the proxy's header {copy_header}"
    if "via" in headers:
        return f"the answer came via {headers['via']}"
    if server.lower().startswith(_PROXIES):
        return f"the server calls itself {server}"
    if status != 200 and isinstance(_json(body).get("error"), dict):
        return f"it answered {status} with an error that only a proxy gives for this path"
    return ""


def look(address: str, port: int, seconds: float, copy_header: str) -> dict[str, Any]:
    """One reading of the copy. ``state`` is read, off (runs without metrics), absent or unreadable, with the ``reason``.

    Raises:
        ProxyError: the address is a proxy's.
    """
    try:
        status, headers, body = get(address, port, "/metrics", seconds)
        at = _EPOCH + time.monotonic()
        if sign := proxy_in(status, headers, body, copy_header):
            raise ProxyError(sign)
        version = _version(address, port, seconds)
        if status != 200:
            return _without("unreadable", f"/metrics was answered {status}")
        found = reading.read(body.decode())
    except NoAnswerError as error:
        return _without("absent", str(error))
    except UnicodeDecodeError as error:
        return _without("unreadable", f"the page is no text: {error.reason} at byte {error.start}")
    except MetricsError as error:
        return _without("unreadable", str(error))
    except OSError as error:
        return _without("absent", f"no answer: {error.strerror or error}")
    if found is None and version:
        return _without("off", f"vLLM {version} runs without metrics (--disable-log-stats)")
    if found is None:
        return _without("unreadable", "the page has no figure of vLLM, and /version does not name one")
    return {
        "state": "read",
        "reason": "",
        "reading": {"at": at, "version": version, **found, **process(port)},
    }


def process(port: int) -> dict[str, str | None]:
    """``instance`` is where it listens in all the world, ``listener`` changes with each process that listens there."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        network = os.stat("/proc/self/ns/net").st_ino
        sockets = sorted(set(_inodes(port)))
    except OSError:
        return {"instance": None, "listener": None}
    place = f"{boot}/{network}"
    return {
        "instance": f"{place}/{port}",
        "listener": f"{place}/{'+'.join(map(str, sockets))}" if sockets else None,
    }


def is_own_address(address: str) -> bool:
    """Whether this host has the address: only then do the process table and the page speak of the same engine."""
    try:
        kind, _type, _proto, _name, place = socket.getaddrinfo(address, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as probe:
            probe.bind(place)
    except OSError:
        return False
    return True


def _inodes(port: int) -> list[int]:
    """The sockets that listen on the port, from the kernel's tables."""
    found = []
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = Path(name).read_text().splitlines() if os.path.exists(name) else []
        for fields in (line.split() for line in lines):
            if len(fields) > 9 and fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.append(int(fields[9]))
    return found


def _version(address: str, port: int, seconds: float) -> str | None:
    try:
        status, _headers, body = get(address, port, "/version", seconds)
    except (OSError, MetricsError):
        return None
    version = _json(body).get("version")
    return version if status == 200 and isinstance(version, str) else None


def _json(body: bytes) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _without(state: str, reason: str) -> dict[str, Any]:
    return {"state": state, "reason": reason, "reading": None}
