# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A switch under load without a failed request: what comes while no copy serves waits at the proxy. Beside it the same without."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site(
    "stand-in",
    {
        "vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "4"},
        "vllm_gate_deadline_seconds": 20,
        "vllm_soak_seconds": 1,
        # Also on a machine so busy that the window is three times as long.
        "vllm_proxy_hold_requests": 1024,
    },
)
# vLLM's own bench client, on the proxy's host; it tells its requests by their id. It sends from the beginning of the rollout on, which
# the site's checks before it put off for as long as they take.
ID = "bench-hold-"
BENCH_PROGRAM = """
import os, time
from vllm.entrypoints.cli.main import main
while not os.path.exists("/var/lib/gb10-vllm-proxy/hold.json"):
    time.sleep(0.1)
main()
"""
BENCH = (
    "HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 PYTHONPATH=/opt/vllm/current/site-packages "
    f"python3 -c '{BENCH_PROGRAM}' bench serve --backend openai-chat "
    "--base-url http://127.0.0.1:8080 --endpoint /v1/chat/completions --model tiny --tokenizer /models/tiny "
    "--dataset-name random --random-input-len 16 --random-output-len 8 --request-rate 4 "
    f"--request-id-prefix {ID} --disable-tqdm --num-prompts "
)
PROMPTS = 320
LOG = "/var/log/nginx/gb10-vllm.access.log"
HELPER = "systemctl show gb10-vllm-hold.service --property=MainPID --value"


def sent_since(records: Path, since: int) -> list[dict[str, Any]]:
    """All that was sent, also what waits still: an answer to a later request is no proof of an answer to an earlier one."""
    observe.answered_more(records, 50)
    return observe.read(records)[since:]


@pytest.fixture(scope="module")
def records(hosts: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Clients as people have them: the OpenAI SDK with its own timeout and retries."""
    SITE.must_play("cutover", variables={"vllm_topology": "split"})
    out = tmp_path_factory.mktemp("traffic") / "requests.jsonl"
    with lab.clients(out):
        observe.answered_more(out, 25)
        yield out


def of_bench() -> list[dict[str, Any]]:
    """What the proxy's log says of the requests of the bench client."""
    lines = lab.on("proxy1", f"grep {ID} {LOG} || true").splitlines()
    return [json.loads(line) for line in lines]


def test_a_switch_fails_no_request_although_helper_and_nginx_are_disturbed(records: Path) -> None:
    began, before = time.time(), len(observe.read(records))
    with (
        lab.meanwhile(lab.on, "proxy1", f"{BENCH} {PROMPTS} 2>&1", timeout=600) as bench,
        lab.meanwhile(SITE.must_play, "cutover", variables={"vllm_topology": "replicated"}) as play,
    ):
        lab.wait_within(play, lambda: observe.happened("withdrawn", "spark1", began), "the window begins")
        killed, waited_then = lab.on("proxy1", HELPER).strip(), observe.waiting()
        moment = time.time()
        lab.on("proxy1", f"kill -9 {killed}; for n in 1 2 3; do nginx -s reload; done")
    sent = sent_since(records, before)
    end = lab.journal()[-1]
    waited = [entry for entry in of_bench() if entry["seconds"] > 1]
    figures = re.findall(r"^(?:Successful|Failed) requests: +\d+", bench.result(), re.M)
    print(
        f"\nOpenAI SDK over a switch with the hold: {Counter(str(entry['status']) for entry in sent)}, {end['requests']}"
    )
    print(f"vLLM's bench client: {', '.join(figures)}; {len(waited)} of them waited")
    assert [entry for entry in sent if not entry["complete"]] == []
    # The SDK did not even have to try again.
    again = [entry["attempts"] for entry in sent if entry["retries"]]
    assert again == [], f"the helper was killed at {moment:.1f} while {waited_then} waited"
    assert {entry["status"] for entry in of_bench()} == {200}
    assert re.search(rf"Successful requests: +{PROMPTS} *$", bench.result(), re.M)
    assert waited, "the bench client was there during the window"
    assert end["step"] == "end"
    assert end["requests"]["held"] > 20, "the helper that was killed had forgotten those before"
    assert end["requests"]["turned_away"] == 0
    assert lab.on("proxy1", HELPER).strip() not in ("0", killed), "systemd has started it again"
    assert "hold.json" not in lab.on("proxy1", "ls /var/lib/gb10-vllm-proxy"), "the hold is over with its rollout"


@pytest.mark.rotating
def test_the_same_without_the_hold_sends_clients_away(records: Path) -> None:
    before = len(observe.read(records))
    SITE.must_play("rollback", variables={"vllm_hold_requests": False})
    sent = sent_since(records, before)
    attempts = Counter(str(status) for entry in sent for _time, status in entry["attempts"])
    print(f"\nthe same without the hold, by HTTP attempt: {attempts}")
    assert attempts["503"] > 0
    assert set(attempts) == {"200", "503"}, "honest all the same"
