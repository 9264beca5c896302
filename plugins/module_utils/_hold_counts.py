# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the helper counts that lets requests wait at the proxy.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import json
import socket
from typing import Any


def ask(path: str) -> dict[str, Any] | None:
    """The helper's counts, None when it does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(5)
            connection.connect(path)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b""))
        answer = json.loads(text.partition(b"\r\n\r\n")[2])
        # Whether requests may wait is what the file says; the helper only follows.
        return {k: v for k, v in answer.items() if k != "armed"} if isinstance(answer, dict) else None
    except (OSError, ValueError):
        return None
