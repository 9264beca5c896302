# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner's own tasks at the named moments, and the webhook."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20})
FOLDER = Path(__file__).resolve().parent / "moments"
NOTE, REFUSE = str(FOLDER / "note.yml"), str(FOLDER / "refuse.yml")
MOMENTS = {
    f"vllm_{moment}_tasks": NOTE
    for moment in ("before_stop", "before_start", "after_admit", "after_rollback", "failed")
}
ONE = {"vllm_restart_hosts": "spark2"}
TOKEN = "a-token-that-nobody-may-see"

pytestmark = pytest.mark.rotating


@pytest.fixture
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address on this machine and what it was told, with the token of each post."""
    told: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.append({**body, "token": self.headers["X-Token"]})
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/news", told
        server.shutdown()


def newest() -> str:
    return observe.journals()[-1].removesuffix(".jsonl")


def noted(host: str) -> list[str]:
    """The moments that came since the last look, in order, as long as all are of the newest rollout."""
    lines = [line.split() for line in lab.on(host, "cat /run/moments 2>/dev/null; rm -f /run/moments").splitlines()]
    assert {rollout for _moment, rollout in lines} <= {newest()}
    return [moment for moment, _rollout in lines]


def test_tasks_run_at_their_moments_and_the_webhook_is_told(
    records: Path, webhook: tuple[str, list[dict[str, Any]]]
) -> None:
    for host in observe.HOSTS:
        lab.on(host, "rm -f /run/moments")
    url, told = webhook
    hook = {"vllm_notify_url": url, "vllm_notify_headers": {"X-Token": TOKEN}}
    sent = len(observe.read(records))
    with observe.untouched("spark1"):
        output = SITE.must_play("restart", "-vvv", variables={**MOMENTS, **ONE, **hook})
    assert noted("spark2") == ["before_stop", "before_start", "after_admit"]
    assert noted("spark1") == ["after_admit"], "it was only proven and admitted once more"
    assert [(news["event"], news["result"]) for news in told] == [("begin", "ok"), ("end", "ok")]
    assert {(news["rollout"], news["verb"], news["token"]) for news in told} == {(newest(), "restart", TOKEN)}
    assert told[1]["serving"] == ["spark1", "spark2"]
    assert TOKEN not in output, "headers are never shown"
    assert observe.failures(records, sent) == []


def test_tasks_that_say_no_before_a_stop_stop_nothing(records: Path, webhook: tuple[str, list[dict[str, Any]]]) -> None:
    url, told = webhook
    sent = len(observe.read(records))
    with observe.untouched("spark1", "spark2"):
        done = SITE.play(
            "restart", variables={**MOMENTS, **ONE, "vllm_before_stop_tasks": REFUSE, "vllm_notify_url": url}
        )
    assert done.returncode != 0
    assert "vllm_before_stop_tasks failed: the nightly batch still runs" in observe.in_words(done)
    assert (noted("spark2"), noted("spark1")) == (["failed"], ["after_admit"])
    assert [(news["event"], news["result"]) for news in told] == [("begin", "ok"), ("failed", "failed")]
    assert "the nightly batch still runs" in told[1]["failed"]["spark2"]
    assert observe.lock() is None
    assert observe.failures(records, sent) == []
    observe.must_serve(observe.HOSTS)


def test_tasks_that_say_no_before_a_start_take_the_host_back(records: Path) -> None:
    sent, good = len(observe.read(records)), observe.currents()
    more = {"vllm_replicated_overrides": {"max-num-seqs": 9}, "vllm_notify_url": "http://127.0.0.1:9/nobody"}
    with observe.untouched("spark2"):
        done = SITE.play("cutover", variables={**MOMENTS, **more, "vllm_before_start_tasks": REFUSE})
    assert done.returncode != 0
    words = observe.in_words(done)
    assert (
        "vllm_before_start_tasks failed: the nightly batch still runs (it serves its previous release again)" in words
    )
    assert "vllm_notify_url could not be told of the begin" in words
    assert observe.currents() == good
    assert noted("spark1") == ["before_stop", "after_admit", "failed", "after_rollback"]
    assert noted("spark2") == ["failed"]
    assert observe.failures(records, sent) == []
    observe.must_serve(observe.HOSTS)


def test_a_file_of_tasks_that_is_not_there_is_refused_before_anything_begins() -> None:
    with observe.nothing_stopped():
        done = SITE.play("restart", variables={"vllm_failed_tasks": "/nowhere/tasks.yml"})
    assert done.returncode != 0
    assert "vllm_failed_tasks is /nowhere/tasks.yml, which is no file on the controller" in observe.in_words(done)
