# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prometheus measures the site during a cutover there and back, under load: no false alarm, right sums, no empty dashboard."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "4"}, "vllm_soak_seconds": 1})
INVENTORY = ("--inventory", str(lab.ROOT / "extensions" / "molecule" / "monitoring" / "inventory" / "monitors.yml"))
DASHBOARDS = lab.ROOT / "roles" / "monitoring" / "files" / "dashboards"
UNITS = "prometheus prometheus-alertmanager prometheus-node-exporter 'gb10-vllm-*-exporter'"
# The clients' answers have one token each, so there is no time between two.
LONGER = (
    "for n in $(seq 16); do curl --silent --fail --output /dev/null --header 'Content-Type: application/json' "
    """--data '{"model": "tiny", "prompt": "Say '$n'", "max_tokens": 12}' http://127.0.0.1:8080/v1/completions; done"""
)
# Without speculative decoding there are no drafts.
NOT_IN_THE_LAB = {"Accepted drafts"}
ASKING = """import json, sys, urllib.parse, urllib.request
for path, words in json.loads(sys.stdin.read()):
    with urllib.request.urlopen(f"http://127.0.0.1:9090/api/v1/{path}?" + urllib.parse.urlencode(words)) as answer:
        print(json.dumps(json.load(answer)["data"]["result"]))
"""

pytestmark = pytest.mark.rotating


def ask(questions: list[tuple[str, dict[str, Any]]]) -> list[list[dict[str, Any]]]:
    """What Prometheus answers to each of these."""
    asked = json.dumps(questions).replace("'", "'\\''")
    script = ASKING.replace("'", "'\\''")
    return [json.loads(line) for line in lab.on("proxy1", f"printf %s '{asked}' | python3 -c '{script}'").splitlines()]


def now(query: str) -> list[dict[str, Any]]:
    return ask([("query", {"query": query})])[0]


def values(query: str, label: str) -> dict[str, float]:
    return {series["metric"][label]: float(series["value"][1]) for series in now(query)}


def summed(seconds: int) -> dict[str, Any]:
    """What the module copy_metrics and the filter metrics_sum say."""
    done = SITE.must_play("../tests/e2e/metrics_sum", variables={"seconds": seconds})
    found = re.search(r"SUM(\{.*\})", re.sub(r"\n\s+", " ", done))
    assert found, done[-2000:]
    return dict(json.loads(found[1].replace("''", "'")))


@pytest.fixture(scope="module")
def began(copies: None) -> Iterator[float]:
    """From when on Prometheus measures."""
    SITE.must_play("monitoring", *INVENTORY)
    lab.wait_for(lambda: len(now("up == 1")) == 5, 60, "all targets are measured")
    yield time.time()
    lab.on("proxy1", f"systemctl disable --now {UNITS} 2>&1 || true")


def test_a_cutover_there_and_back_alarms_nobody(began: float, tmp_path: Path) -> None:
    records = tmp_path / "requests.jsonl"
    with lab.clients(records):
        for topology, serving in (("split", 1), ("replicated", 2)):
            observe.answered_more(records, 25)
            SITE.must_play("cutover", variables={"vllm_topology": topology})
            lab.wait_for(lambda: now(f"gb10_vllm:site_serving == {serving}"), 20, f"{serving} serve")  # noqa: B023
        lab.on("proxy1", LONGER)
        observe.answered_more(records, 100)
        module = summed(10)["sum"]["window"]["per_second"]["generation_tokens"]
        (measured,) = now("sum(rate(vllm:generation_tokens_total[10s]))")
    assert float(measured["value"][1]) == pytest.approx(module, rel=0.3)
    span = f"{int(time.time() - began) + 1}s"
    alarms = f'max_over_time(ALERTS{{alertstate="firing"}}[{span}])'
    # One look in ten may come too late on a machine that is busy with other things.
    gaps = f'avg_over_time(up{{job="gb10_vllm_hosts"}}[{span}]) < 0.9'
    assert [now(alarms), now(gaps)] == [[], []]
    rollouts = now(f'count_over_time(gb10_vllm_rollout_info{{state="open"}}[{span}])')
    assert {series["metric"]["topology"] for series in rollouts} == {"split", "replicated"}, "both were seen at work"
    # Both engines were begun anew; a rate is no negative and no huge number because of that.
    (most,) = now(f"max_over_time(gb10_vllm:site_generation_tokens:rate1m[{span}])")
    (least,) = now(f"min_over_time(gb10_vllm:site_generation_tokens:rate1m[{span}])")
    assert 0 <= float(least["value"][1]) < float(most["value"][1]) < 3 * module


def test_at_rest_every_counter_is_the_modules_to_the_last_token(began: float) -> None:
    read = summed(0)["read"]
    for name in ("generation_tokens", "prompt_tokens"):
        module = {copy: result["reading"]["counters"][name] for copy, result in read.items()}
        assert values(f"sum by (copy) (vllm:{name}_total)", "copy") == module
        assert sum(module.values()) > 0
        assert [float(series["value"][1]) for series in now(f"sum(vllm:{name}_total)")] == [sum(module.values())]


def test_a_copy_that_ends_is_seen_and_no_panel_is_empty(began: float) -> None:
    lab.on("spark1", "systemctl stop vllm")
    try:
        lab.wait_for(lambda: now('ALERTS{alertname="Gb10VllmCopyDown",copy="spark1"}'), 30, "the alert is pending")
        asked = []
        for path in sorted(DASHBOARDS.glob("*.json")):
            content = json.loads(path.read_text())
            queries = [(panel["title"], target["expr"]) for panel in content["panels"] for target in panel["targets"]]
            queries += [(each["name"], each["expr"]) for each in content["annotations"]["list"]]
            asked += [(path.stem, title, query) for title, query in queries if title not in NOT_IN_THE_LAB]
        span = {"start": began, "end": time.time(), "step": 2}
        filled = [query.replace("$site", "lab").replace("$copy", "spark2") for _file, _title, query in asked]
        answers = ask([("query_range", {"query": query, **span}) for query in filled])
        assert [asked[place] for place, answer in enumerate(answers) if not answer] == []
        assert len(answers) == len(asked) > 50
    finally:
        lab.on("spark1", "systemctl start vllm")
