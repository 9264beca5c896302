# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the proxy itself answer, whatever its copies do? `proxy_answers.py URL SECONDS`: exit status 0, or 1 after two tries. Needs no rights."""

from __future__ import annotations

import http.client
import sys
import time
import urllib.parse


def connect(url: str, seconds: float) -> http.client.HTTPConnection:
    """A connection to the proxy; its certificate is for another name than this host's."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "http":
        return http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=seconds)
    import ssl  # takes longer to load than all the rest

    context = ssl._create_unverified_context()
    return http.client.HTTPSConnection(str(parts.hostname), parts.port, timeout=seconds, context=context)


def answers(url: str, seconds: float) -> bool:
    """The answer to this path is nginx's own; no other server gives it."""
    try:
        connection = connect(url, seconds)
        connection.request("GET", "/metrics")
        return b"each copy has its own" in connection.getresponse().read(4096)
    except (OSError, http.client.HTTPException):
        return False


def main(url: str, seconds: float) -> int:
    """One bad answer is none: nginx may just be starting again."""
    if answers(url, seconds):
        return 0
    time.sleep(0.3)
    return 0 if answers(url, seconds) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
