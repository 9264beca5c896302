# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells the proxies that this host's copy is to be withdrawn, or that it is ready again.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _http

# Seconds for the answer. A withdrawal must not keep a restart waiting for a proxy that is lost; before it says yes to a copy that
# is ready, a proxy asks it the gate's questions itself.
PATIENCE = {"withdrawn": 10.0, "ready": 75.0}


@dataclass(frozen=True)
class Reply:
    """`done`: there is no need to tell it again."""

    done: bool
    words: str


def read(answer: _http.Answer) -> Reply:
    """What an answer of a proxy means."""
    content = answer.json()
    said = (
        next((str(content[key]) for key in ("message", "reason", "error") if content.get(key)), "")
        if isinstance(content, dict)
        else ""
    )
    if answer.status == 200:
        return Reply(True, said or "done")
    if answer.status == 202:
        return Reply(True, said or "not needed")
    if answer.status == 403:
        return Reply(True, f"it does not know this host: {said or 'the address is no engine of its site'}")
    return Reply(
        False, f"{answer.status or 'no answer'}: {said or answer.problem or answer.body.strip()[:200]}".rstrip(": ")
    )


def tell(server: str, state: str, reason: str) -> Reply:
    """Tell one proxy, `address:port`."""
    content: dict[str, Any] = {"state": state, "reason": reason}
    return read(_http.post(f"http://{server}/copy", content, timeout=PATIENCE[state]))


def tell_all(servers: Iterable[str], state: str, reason: str) -> dict[str, Reply]:
    """Tell all of them at once, so that the slowest decides how long it takes, and no two."""
    replies: dict[str, Reply] = {}

    def one(server: str) -> None:
        replies[server] = tell(server, state, reason)

    threads = [threading.Thread(target=one, args=(server,), daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies
