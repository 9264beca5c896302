# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cutover costs clients beside the engine's own start, from the journal of a run on the lab; and the same by hand.

`bench_rollout.py --engine real|stand-in` goes from a split to copies twice under the same load, clients without retries:

ours      the playbook cutover.yml
by hand   stop both, start both, the proxy untouched: both servers stand in nginx all the while, max_fails=3 fail_timeout=30s,
          and everything else is nginx's default

The last line is one JSON object with the figures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import observe
import site_of_lab as lab
from traffic import compare, summary

Event = Mapping[str, Any]
GOALS = {"ours_seconds": 5.0, "gate_to_first_200_seconds": 0.5}
WORDS = {
    "window_seconds": "seconds without a copy that may answer",
    "engine_start_seconds": "  of which the engine's own start",
    "ours_seconds": "  of which everything else (goal: under 5)",
    "gate_to_first_200_seconds": "seconds from ready to the first 200 through the proxy (goal: under 0.5)",
    "requests": "requests from the stop to both copies answering",
    "failed": "  of them failed",
    "failed_after_ready": "  of them failed although a copy was ready",
    "how": "  how",
}
SERVERS, PROXY = "/etc/nginx/gb10-vllm/servers.conf", "/etc/nginx/conf.d/gb10-vllm.conf"
BY_HAND = (
    f"cp {SERVERS} {PROXY} /root/ && sed -i 's/proxy_next_upstream.*//; s/zone vllm_copies .*//; s/least_conn;//; "
    f"s/proxy_connect_timeout.*//' {PROXY} && printf '%s\\n' {{servers}} > {SERVERS} && nginx -t -q && nginx -s reload"
)
OWN = f"cp /root/servers.conf {SERVERS} && cp /root/gb10-vllm.conf {PROXY} && nginx -t -q && nginx -s reload"
HEALTH = "curl --silent --max-time 2 --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000/health || true"


def from_journal(events: Sequence[Event]) -> dict[str, float]:
    """The window of a switch and what the engine itself needed of it, for the host that was in front of clients first."""
    withdrawn = min(event["time"] for event in events if event["step"] == "withdrawn")
    admitted = min((event for event in events if event["step"] == "admitted"), key=lambda event: event["time"])
    (loaded,) = (e["seconds"] for e in events if e["step"] == "loaded" and e["host"] == admitted["host"])
    (passed,) = (e["time"] for e in events if e["step"] == "passed" and e["host"] == admitted["host"])
    window = admitted["time"] - withdrawn
    return {
        "window_seconds": window,
        "engine_start_seconds": loaded,
        "ours_seconds": window - loaded,
        "began": withdrawn,
        "ready": passed,
    }


def figures(times: Mapping[str, float], records: Iterable[summary.Record]) -> dict[str, Any]:
    """The journal's times and what clients saw from the moment in which the first copy was taken away."""
    seen = [record for record in records if record["end"] >= times["began"]]
    kinds = compare.failed(seen)
    first = summary.first_success_after(seen, times["ready"])
    if first is None:
        raise ValueError("no request was answered after a copy was ready")
    return {
        **{name: round(value, 2) for name, value in times.items() if name in WORDS},
        "gate_to_first_200_seconds": round(first, 3),
        "requests": len(seen),
        "failed": kinds.total(),
        "failed_after_ready": sum(not r["complete"] for r in seen if r["start"] > times["ready"]),
        "how": ", ".join(f"{kind}: {number}" for kind, number in sorted(kinds.items())) or "-",
    }


def goals_met(ours: Mapping[str, Any]) -> dict[str, bool]:
    return {name: ours[name] < goal for name, goal in GOALS.items()}


def both_answer(records: Path) -> None:
    """Until both copies have answered a client since now."""
    since = time.time()
    lab.wait_for(
        lambda: (
            {r["copy"] for r in observe.read(records) if r["complete"] and r["start"] > since} >= set(observe.HOSTS)
        ),
        600,
        "both copies answer through the proxy",
    )


def by_hand(releases: Mapping[str, str]) -> dict[str, float]:
    """Stop both engines, point them at the other releases and start both; the proxy hears nothing of it."""
    addresses = lab.describe()["hosts"]
    servers = [f"server {addresses[host]['address']}:8000 max_fails=3 fail_timeout=30s;" for host in observe.HOSTS]
    lab.on("proxy1", BY_HAND.replace("{servers}", " ".join(f"'{server}'" for server in servers)))
    began = time.time()
    for host in observe.HOSTS:
        lab.on(host, "systemctl stop vllm", timeout=180)
    for host in observe.HOSTS:
        lab.on(host, f"ln -sfn releases/{releases[host]} /etc/gb10-vllm/current; systemctl daemon-reload")
    started = time.time()
    for host in observe.HOSTS:
        lab.on(host, "systemctl start --no-block vllm")
    lab.wait_for(lambda: any(lab.on(host, HEALTH) == "200" for host in observe.HOSTS), 600, "a copy is healthy")
    ready = time.time()
    return {
        "window_seconds": ready - began,
        "engine_start_seconds": ready - started,
        "ours_seconds": started - began,
        "began": began,
        "ready": ready,
    }


def measured(records: Path, change: Callable[[], dict[str, float]]) -> dict[str, Any]:
    """One change under load in figures."""
    observe.answered_more(records, 50)
    sent = len(observe.read(records))
    times = change()
    both_answer(records)
    return figures(times, observe.read(records)[sent:])


def run(engine: str) -> dict[str, Any]:
    site = lab.Site(engine)
    split, copies = {"vllm_topology": "split"}, {"vllm_topology": "replicated"}

    def ours() -> dict[str, float]:
        site.must_play("cutover", variables=copies)
        return from_journal(lab.journal())

    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "requests.jsonl"
        site.must_play("cutover", variables=split)
        with lab.clients(records, "--retries", "0"):
            result = {"ours": measured(records, ours)}
            releases = observe.currents()
            site.must_play("rollback")
            try:
                result["by hand"] = measured(records, lambda: by_hand(releases))
            finally:
                lab.on("proxy1", OWN)
    return {"engine": engine, "goals_met": goals_met(result["ours"]), **result}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["real", "stand-in"], default="real")
    options = parser.parse_args()
    subprocess.run([sys.executable, str(lab.ROOT / "tests" / "lab"), "up", "--engine", options.engine], check=True)
    result = run(options.engine)
    shown = compare.table({way: result[way] for way in ("ours", "by hand")}, WORDS)
    print(f"\nFrom a split to copies, {options.engine} engine on the lab\n\n{shown}\n")
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
