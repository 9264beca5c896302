# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stories of the watchdog do to engines, and what they read of it."""

from __future__ import annotations

import contextlib
import itertools
import json
import shlex
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import site_of_lab as lab

# In a folder that the engine's container has from its host anyway.
FAULTS_INSIDE = "/root/.cache/vllm/faults.json"


def fault(host: str, switches: dict[str, Any]) -> None:
    """Set the stand-in's switches; the running engine obeys at once."""
    text = shlex.quote(json.dumps(switches))
    lab.on(
        host,
        f"for d in /var/lib/gb10-vllm/cache/*-replicated/vllm; do echo {text} > $d/faults.new && mv $d/faults.new $d/faults.json; done",
    )


def state(host: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(lab.on(host, "cat /run/gb10-vllm/watchdog.json"))
    return found


def acts(host: str, since: float) -> list[tuple[str, str]]:
    """Each act since then and its words, from the watchdog's own log."""
    lines = [json.loads(line) for line in lab.on(host, "cat /var/lib/gb10-vllm/watchdog.jsonl").splitlines()]
    return [(line["act"], line["words"]) for line in lines if line["time"] >= since]


@contextlib.contextmanager
def load(
    host: str, seconds: float, requests: int, tokens: int, prompt: str = "Tell me a long story."
) -> Iterator[None]:
    """So many requests at once to one engine, past the proxy, for the block and at least for so long. No two prompts begin alike."""
    ends = threading.Event()
    refused: list[str] = []
    base = f"http://{lab.describe()['hosts'][host]['address']}:8000"

    def send(sender: int) -> None:
        for number in itertools.count():
            if ends.is_set():
                return
            content = f"{sender}/{number}: {prompt}"
            messages = [{"role": "user", "content": content}]
            body = {"model": "tiny", "max_tokens": tokens, "ignore_eos": True, "messages": messages}
            request = urllib.request.Request(
                f"{base}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            try:
                urllib.request.urlopen(request, timeout=600).read()
            except urllib.error.HTTPError as error:
                if error.code == 400:
                    refused.append(error.read().decode())
                    return
            except OSError:
                # Its engine was ended, which is what some of the stories are about.
                continue

    threads = [threading.Thread(target=send, args=(number,), daemon=True) for number in range(requests)]
    for thread in threads:
        thread.start()
    timer = threading.Event()
    threading.Timer(seconds, timer.set).start()
    try:
        yield
        timer.wait()
        assert not refused, f"{len(refused)} requests were no load at all: {refused[0]}"
    finally:
        ends.set()
