# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rolling restart under load loses nothing; the same without withdrawing, draining and proving does, side by side."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import observe
import pytest
import site_of_lab as lab
from traffic import compare

# Ten tokens a second: an answer of 250 is a stream of 25 s, and one copy has room for all of them at once.
SITE = lab.Site(
    "stand-in",
    {
        "vllm_topology": "replicated",
        "vllm_environment_overrides": {"STANDIN_TOKEN_SECONDS": "0.1"},
        "vllm_replicated_overrides": {"max-num-seqs": 64},
        "vllm_gate_deadline_seconds": 20,
    },
)
CLIENTS = ("--rate", "25")
LONG = ("--rate", "0.5", "--streamed", "all", "--max-tokens", "250", "--prompt", "Tell me a long story.")
REQUESTS, STREAMS = 2000, 20
SERVERS, PROXY = "/etc/nginx/gb10-vllm/servers.conf", "/etc/nginx/conf.d/gb10-vllm.conf"
PLAIN_NGINX = (
    f"cp {SERVERS} {PROXY} /root/ && sed -i 's/ max_fails=[0-9]* fail_timeout=[0-9]*s//' {SERVERS} && "
    f"sed -i 's/proxy_next_upstream .*/proxy_next_upstream off;/' {PROXY} && nginx -t -q && nginx -s reload"
)
OWN_NGINX = f"cp /root/servers.conf {SERVERS} && cp /root/gb10-vllm.conf {PROXY} && nginx -t -q && nginx -s reload"
PAUSE = "/var/lib/gb10-vllm/pause"
HEALTH = "curl --silent --max-time 2 --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000/health || true"


@dataclass
class Load:
    """What was sent while something happened; complete once its block is over."""

    requests: list[compare.Record]
    streams: list[compare.Record]
    seconds: float = 0.0


@contextlib.contextmanager
def load(records: Path, folder: Path, at_least: int) -> Iterator[Load]:
    """The steady requests, and long streams that begin before, during and after what happens in the block."""
    long, sent, seen = folder / "streams.jsonl", len(observe.read(records)), Load([], [])
    with lab.clients(long, "--retries", "0", "--timeout", "300", "--grace", "90", *LONG):
        # Until the first one has ended there are as many at once as there will ever be.
        observe.answered_more(long, 1)
        began = time.time()
        yield seen
        ended = time.time()
        observe.answered_more(records, max(0, at_least - (len(observe.read(records)) - sent)), 300)
    seen.seconds = ended - began
    seen.requests = [entry for entry in observe.read(records)[sent:] if entry["end"] >= began]
    seen.streams = [entry for entry in observe.read(long) if entry["start"] < ended and entry["end"] > began]


@pytest.fixture(scope="module")
def rows() -> Iterator[dict[str, Load]]:
    found: dict[str, Load] = {}
    yield found
    told = {name: compare.row(seen.requests, seen.streams, seen.seconds) for name, seen in found.items()}
    print(f"\nA restart of two copies under load\n{compare.table(told)}")


def test_restart_of_both_copies_loses_nothing(records: Path, rows: dict[str, Load], tmp_path: Path) -> None:
    before, releases = observe.starts(), (observe.currents(), observe.previous("spark1"))
    with load(records, tmp_path, REQUESTS) as seen:
        SITE.must_play("restart")
    rows["restart.yml"] = seen
    after = observe.starts()
    assert all(after[host] != before[host] for host in observe.HOSTS), "both were restarted"
    assert (observe.currents(), observe.previous("spark1")) == releases
    assert len(seen.requests) >= REQUESTS
    assert len(seen.streams) >= STREAMS
    assert [entry for entry in seen.requests if not entry["complete"]] == []
    assert [entry for entry in seen.streams if not entry["complete"]] == []
    steps = [(event["step"], event["host"]) for event in lab.journal()]
    assert steps.index(("admitted", "spark1")) < steps.index(("withdrawn", "spark2")), "never both away"
    observe.must_serve(observe.HOSTS)


def test_one_named_host_is_restarted_and_no_other(records: Path) -> None:
    sent, before = len(observe.read(records)), observe.start_of("spark2")
    with observe.untouched("spark1"):
        SITE.must_play("restart", variables={"vllm_restart_hosts": "spark2"})
    assert observe.start_of("spark2") != before
    assert observe.failures(records, sent) == []
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


@pytest.mark.rotating
def test_the_same_by_hand_fails_requests(records: Path, rows: dict[str, Load], tmp_path: Path) -> None:
    """One host after the other and only when the first is healthy again: what is missing is withdraw, drain and retry."""
    lab.on("proxy1", PLAIN_NGINX)
    # The watchdog would withdraw what somebody restarts, and the proxy what cuts its answers.
    for host in (*observe.HOSTS, "proxy1"):
        lab.on(host, f"mkdir -p {PAUSE} && touch {PAUSE}/by-hand")
    try:
        with load(records, tmp_path, 0) as seen:
            for host in observe.HOSTS:
                lab.on(host, "systemctl restart vllm", timeout=120)
                lab.wait_for(lambda host=host: lab.on(host, HEALTH) == "200", 60, f"{host} is healthy again")
            # nginx's default leaves a server out for 10 s; what comes after that is not the restart's.
            observe.answered_more(records, 300)
    finally:
        lab.on("proxy1", OWN_NGINX)
        for host in (*observe.HOSTS, "proxy1"):
            lab.on(host, f"rm -f {PAUSE}/by-hand")
    rows["systemctl restart"] = seen
    lost = [entry for entry in seen.requests + seen.streams if not entry["complete"]]
    assert len(lost) > 0, "a restart by hand loses requests, or this comparison shows nothing"
    observe.must_serve(observe.HOSTS)
