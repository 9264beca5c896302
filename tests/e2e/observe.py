# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the stories look at: from outside, on the hosts' disks and through the proxy, never through the collection itself."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import site_of_lab as lab
from traffic import summary

HOSTS = ("spark1", "spark2")
ROLLOUTS = "/var/lib/gb10-vllm/rollouts"


@dataclass(frozen=True)
class Answer:
    """One request through the proxy; status 0 when there was no HTTP answer at all."""

    status: int
    copy: str | None
    retry_after: str | None
    text: str

    @property
    def good(self) -> bool:
        return self.status == 200 and "Paris" in self.text


def ask(seconds: float = 15, proxy: str = "proxy1") -> Answer:
    question = {"role": "user", "content": "What is the capital of France? Answer with one word."}
    body = {"model": "tiny", "max_tokens": 16, "temperature": 0, "messages": [question]}
    request = urllib.request.Request(
        f"{lab.base_url(proxy)}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=seconds) as answer:
            text = answer.read().decode()
            return Answer(answer.status, answer.headers["X-Vllm-Copy"], None, text)
    except urllib.error.HTTPError as error:
        return Answer(error.code, None, error.headers["Retry-After"], error.read().decode(errors="replace"))
    except OSError as error:
        return Answer(0, None, None, str(error))


def must_serve(copies: Iterable[str], proxy: str = "proxy1") -> None:
    """Exactly these are in front of clients, and each answers a real completion through the proxy, none fails."""
    wanted = set(copies)
    found = admitted(proxy)
    assert found == wanted, f"{found or 'none'} are admitted, not {wanted}"
    seen: set[str | None] = set()
    # Several at once: one after the other may fall into step with the story's own clients, and then meets the same copy each time.
    with ThreadPoolExecutor(2 * len(wanted)) as pool:
        for _round in range(20):
            for answer in pool.map(lambda _number: ask(proxy=proxy), range(2 * len(wanted))):
                assert answer.good, answer
                seen.add(answer.copy)
            if seen == wanted:
                return
    raise AssertionError(f"{wanted} are admitted, but the answers came from {seen}")


def admitted(proxy: str = "proxy1") -> set[str]:
    """The copies in the proxy's upstream."""
    text = lab.on(proxy, "cat /etc/nginx/gb10-vllm/servers.conf")
    return set(re.findall(r"^server [^#\n]*;  # (\S+)$", text, re.M))


def waiting() -> int:
    """How many requests wait at the proxy."""
    answer = lab.on("proxy1", "curl --silent --unix-socket /run/gb10-vllm-hold.sock http://hold/")
    return int(json.loads(answer)["waiting"])


def acted_by_themselves() -> str:
    """The newest words of the services of this collection on each host, and whom the proxy turned away; never raises."""
    words = (
        "journalctl --unit='gb10-vllm-*' --since=-15min --output=short-iso --no-hostname --quiet | grep -v ' systemd' | tail -n 15; "
        "grep -hE '\"status\":(4|5)' /var/log/nginx/gb10-vllm.access.log 2>/dev/null | tail -n 5"
    )
    told = []
    for host in (*HOSTS, "proxy1"):
        try:
            told.append(f"{host}:\n{lab.on(host, words, timeout=30)}")
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            told.append(f"{host}: cannot be asked: {error}")
    return "\n".join(told)


def lock(keeper: str = "proxy1") -> dict[str, Any] | None:
    text = lab.on(keeper, f"cat {ROLLOUTS}/lock.json 2>/dev/null || true")
    return json.loads(text) if text.strip() else None


def journals() -> list[str]:
    return lab.on("proxy1", f"ls {ROLLOUTS} 2>/dev/null | grep jsonl || true").split()


def start_of(host: str) -> str:
    """The same as long as nobody stopped or started the engine."""
    return lab.on(host, "systemctl show vllm --property=InvocationID,MainPID")


def starts() -> dict[str, str]:
    return {host: start_of(host) for host in HOSTS}


def nginx_workers() -> str:
    """The processes that take requests; those of before a reload may still end what they have."""
    return lab.on(
        "proxy1", "cat /run/nginx.pid; ps -o pid=,args= --ppid $(cat /run/nginx.pid) | grep -v 'shutting down' | sort"
    )


def current(host: str) -> str:
    return lab.on(host, 'basename "$(readlink /etc/gb10-vllm/current)"').strip()


def previous(host: str) -> str:
    """Empty on a host that has run one release only."""
    return lab.on(host, 'basename "$(readlink /etc/gb10-vllm/previous)"').strip()


def currents() -> dict[str, str]:
    return {host: current(host) for host in HOSTS}


def record(host: str = "spark1") -> dict[str, Any]:
    """What release.json says of the release that is in use."""
    found: dict[str, Any] = json.loads(lab.on(host, "cat /etc/gb10-vllm/current/release.json"))
    return found


def in_words(done: subprocess.CompletedProcess[str]) -> str:
    """All that a playbook said, on one line, so that a sentence is found however it was wrapped."""
    return " ".join((done.stdout + done.stderr).split())


def happened(step: str, host: str, since: float, keeper: str = "proxy1") -> bool:
    """Whether the newest rollout has done this, and not the one before the story's own."""
    events = [event for event in lab.journal(keeper) if event["time"] > since]
    return any(event["step"] == step and host in event["host"].split(",") for event in events)


def read(records: Path) -> list[dict[str, Any]]:
    return summary.read(records.read_text().splitlines(keepends=True)) if records.exists() else []


def failures(records: Path, since: int = 0) -> list[dict[str, Any]]:
    return [entry for entry in read(records)[since:] if not entry["complete"]]


def answered_more(records: Path, number: int, seconds: float = 120) -> None:
    """Wait until so many more requests are over."""
    wanted = len(read(records)) + number
    lab.wait_for(lambda: len(read(records)) >= wanted, seconds, f"{wanted} answered requests")


@contextlib.contextmanager
def untouched(*hosts: str) -> Iterator[None]:
    """Whatever the block does, the engines of these hosts go on as the same processes and stay on their release."""
    before = {host: (start_of(host), current(host)) for host in hosts}
    yield
    assert {host: (start_of(host), current(host)) for host in hosts} == before


def standing() -> dict[str, Any]:
    """Everything that must be the same before and after a run that stops nothing."""
    return {"starts": starts(), "workers": nginx_workers(), "admitted": admitted(), "releases": currents()}


@contextlib.contextmanager
def nothing_stopped() -> Iterator[None]:
    """Whatever the block does: the same engines, the same nginx workers, the same copies in front, and nobody left a lock."""
    before = standing()
    yield
    after = standing()
    assert {name: (before[name], after[name]) for name in before if before[name] != after[name]} == {}
    assert lock() is None
    must_serve(HOSTS)
