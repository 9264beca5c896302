# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of one copy: right or refused, in every version, and never wrong."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.reading import read
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError, parse
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.metrics.pages import VERSIONS, Engine, Process, one

RECORDED = Path(__file__).resolve().parents[3] / "fixtures" / "metrics"


def busy(version: str) -> Process:
    process = one(version, running=3, waiting=2, kv_use=0.44, prefix=(200, 50), drafted=(100, 400, 300))
    for _request in range(6):
        process.engines[0].serve(prompt=100, tokens=11)
    process.engines[0].serve(prompt=5, tokens=1, reason="length")
    return process


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_says_the_same(version: str) -> None:
    found = read(busy(version).page())
    assert found is not None
    assert found["counters"] == {
        "prompt_tokens": 605,
        "generation_tokens": 67,
        "preemptions": 0,
        "prefix_queries": 200,
        "prefix_hits": 50,
        "drafts": 100,
        "draft_tokens": 400,
        "accepted_tokens": 300,
    }
    assert {reason: count for reason, count in found["requests"].items() if count} == {"stop": 6, "length": 1}
    assert found["gauges"] == {"running": 3, "waiting": 2}
    assert found["kv_use"] == [0.44]
    assert found["engines"] == 1
    assert found["started"] == 1_780_000_000.25
    assert found["born"] == pytest.approx(1_780_000_020.373456)
    assert {key: histogram["count"] for key, histogram in found["histograms"].items()} == {
        "ttft": 7,
        "inter_token": 60,
        "e2e": 7,
        "queue": 7,
    }
    assert found["histograms"]["inter_token"]["sum"] == pytest.approx(1.2)
    assert found["problems"] == []


def test_recorded_page_of_two_api_servers() -> None:
    """What vLLM 0.32.0 printed, started with --api-server-count 2, after 20 requests with 290 tokens in and 157 out."""
    found = read((RECORDED / "vllm-0.32.0-two-api-servers.txt").read_text())
    assert found is not None
    assert (found["counters"]["prompt_tokens"], found["counters"]["generation_tokens"]) == (290, 157)
    assert found["requests"] == {"stop": 0, "length": 20, "abort": 0, "error": 0, "repetition": 0}
    assert (found["gauges"], found["kv_use"]) == ({"running": 0, "waiting": 0}, [0.0])
    assert [found["histograms"][key]["count"] for key in ("ttft", "inter_token", "e2e", "queue")] == [20, 137, 20, 20]
    assert (found["started"], found["born"], found["problems"]) == (None, None, [])


def test_several_engines_and_api_servers_of_one_process() -> None:
    engines = [Engine(running=1, kv_use=0.4, prompt=100), Engine(running=2, kv_use=0.9, prompt=30)]
    engines[0].serve(1, 3)
    engines[1].serve(2, 5, reason="length")
    found = read(Process(engines=engines, apis=2).page())
    assert found is not None
    assert (found["engines"], found["gauges"]["running"], found["counters"]["prompt_tokens"]) == (2, 3, 133)
    assert found["kv_use"] == [0.4, 0.9]
    assert (found["requests"]["stop"], found["requests"]["length"]) == (1, 1)
    assert found["histograms"]["ttft"]["count"] == 2
    assert (found["started"], found["born"]) == (None, None)


def test_gauge_that_each_api_server_prints_is_taken_from_its_other_name_or_not_at_all() -> None:
    line = 'vllm:kv_cache_usage_perc{{engine="0",pid="{}"}} {}\n'
    twice = line.format(7, 0.0) + line.format(8, 0.5)
    found = read('vllm:gpu_cache_usage_perc{engine="0"} 0.5\n' + twice)
    assert found is not None
    assert (found["kv_use"], found["problems"]) == ([0.5], [])
    found = read(twice)
    assert found is not None
    assert found["kv_use"] is None
    assert found["problems"] == ["vllm:kv_cache_usage_perc is there several times for one engine"]


@pytest.mark.parametrize(
    ("shares", "kept"),
    [((0.4, 1.2), None), ((0.4, 1.0), [0.4, 1.0]), ((1.0000005, 0.1), [1.0, 0.1]), ((0.4, math.nan), None)],
)
def test_kv_use_of_all_engines_is_known_or_none(shares: tuple[float, float], kept: list[float] | None) -> None:
    found = read(Process(engines=[Engine(kv_use=share) for share in shares]).page())
    assert found is not None
    assert found["kv_use"] == kept


@pytest.mark.parametrize(("printed", "started"), [("NaN", None), ("0.0", None), ("+Inf", None), ("1.78e+09", 1.78e9)])
def test_time_of_the_start_is_known_or_none(printed: str, started: float | None) -> None:
    found = read(f"vllm:num_requests_running 1.0\nprocess_start_time_seconds {printed}\n")
    assert found is not None
    assert found["started"] == started


def test_process_is_as_old_as_its_first_series() -> None:
    found = read(Process(engines=[Engine(), Engine()]).page())
    assert found is not None
    assert found["born"] == pytest.approx(1_780_000_020.373456)


def test_missing_is_unknown_and_not_zero() -> None:
    found = read("vllm:num_requests_running 1.0\n")
    assert found is not None
    assert set(found["counters"].values()) == {None}
    assert set(found["histograms"].values()) == {None}
    assert (found["kv_use"], found["requests"], found["gauges"]["waiting"]) == (None, None, None)
    assert found["problems"] == []


@pytest.mark.parametrize("page", ["# nothing\n", "python_info 1.0\nprocess_start_time_seconds 1.78e+09\n"])
def test_page_without_metrics_of_an_engine(page: str) -> None:
    assert read(page) is None


@pytest.mark.parametrize(
    ("printed", "value", "problem"),
    [
        ("9007199254740992.0", 2**53, ""),
        ("1.2e+09", 1_200_000_000, ""),
        ("9.1e+18", None, "vllm:prompt_tokens_total is 9.1e+18, too large to be exact"),
        ("NaN", None, "vllm:prompt_tokens_total is nan, which no counter can be"),
        ("+Inf", None, "vllm:prompt_tokens_total is inf, which no counter can be"),
        ("-1.0", None, "vllm:prompt_tokens_total is -1.0, which no counter can be"),
        ("1.5", None, "vllm:prompt_tokens_total is 1.5, which no counter can be"),
    ],
)
def test_counter_is_exact_or_unknown(printed: str, value: int | None, problem: str) -> None:
    page = busy("0.33.0").page().replace("} 605.0", f"}} {printed}")
    found = read(page)
    assert found is not None
    assert found["counters"]["prompt_tokens"] == value
    assert found["problems"] == ([problem] if problem else [])
    assert found["counters"]["generation_tokens"] == 67


@pytest.mark.parametrize(
    ("share", "kept"), [("NaN", None), ("1.2", None), ("-0.1", None), ("1.0", [1.0]), ("0.0", [0.0])]
)
def test_kv_use_is_a_share_or_unknown(share: str, kept: list[float] | None) -> None:
    found = read(f"vllm:kv_cache_usage_perc {share}\n")
    assert found is not None
    assert found["kv_use"] == kept
    assert bool(found["problems"]) == (kept is None)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('le="+Inf"} 7.0', 'le="+Inf"} 6.0'),
        ('le="+Inf"} 7.0', 'le="9999.0"} 7.0'),
        ('le="0.25"} 7.0', 'le="0.25"} NaN'),
        ('le="0.25"} 7.0', 'le="0.25"} 3.0'),
        ('le="0.25"} 7.0', 'le="0.25"} 8.0'),
        ('le="0.25"} 7.0', 'le="?"} 7.0'),
        ('le="0.25"} 7.0', 'le="NaN"} 7.0'),
        ("first_token_seconds_count", "first_token_seconds_other"),
        ("first_token_seconds_sum", "first_token_seconds_other"),
    ],
)
def test_histogram_adds_up_or_is_unknown(old: str, new: str) -> None:
    page = busy("0.33.0").page()
    before, name, rest = page.partition("# TYPE vllm:time_to_first_token_seconds")
    assert old in rest
    # at 0.25 the bucket before it has 0, so that 3 is lower than the next, and 8 more than all
    place = rest.replace(old, new, 1)
    if new.endswith("3.0"):
        place = place.replace('le="0.1"} 0.0', 'le="0.1"} 5.0', 1)
    found = read(before + name + place)
    assert found is not None
    assert found["histograms"]["ttft"] is None
    assert len(found["problems"]) == 1
    assert "time_to_first_token_seconds" in found["problems"][0]
    assert found["histograms"]["e2e"]["count"] == 7


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("", "the page is empty"),
        ("vllm:num_requests_running 1.0", "ends within a line"),
        ('vllm:num_requests_running{engine="0', "ends within a line"),
        ("<html>\n", "line 1 is not of a metrics page: '<html>'"),
        ('{"error": {}}\n', "line 1 is not of a metrics page"),
        ("vllm:num_requests_running\n", "line 1 cannot be read"),
        ("vllm:num_requests_running one\n", "line 1 cannot be read"),
        ("vllm:num_requests_running 1_000\n", "line 1 cannot be read"),
        ('vllm:num_requests_running{engine="0} 1.0\n', "line 1 cannot be read"),
        ('vllm:num_requests_running{engine="0",engine="1"} 1.0\n', "line 1 cannot be read"),
        ("vllm:num_requests_running{engine=0} 1.0\n", "line 1 cannot be read"),
        ("vllm:num_requests_running 1.0\n# x\nvllm:num_requests_running 2.0\n", "line 3 says .* a second time"),
    ],
)
def test_page_that_is_refused(page: str, why: str) -> None:
    with pytest.raises(MetricsError, match=why):
        read(page)


def test_page_that_is_cut_anywhere_is_refused_or_says_less_and_nothing_else() -> None:
    page = busy("0.10.2").page()
    whole = read(page)
    assert whole is not None
    for place in range(0, len(page), 7):
        try:
            found = read(page[:place])
        except MetricsError:
            continue
        for kind in ("counters", "gauges", "histograms"):
            for key, value in (found or {}).get(kind, {}).items():
                assert value in (None, whole[kind][key])


def test_labels_are_read_as_they_are_meant() -> None:
    (sample,) = parse('a{x="1 \\"} 2",y="back\\\\slash\\nline",} 3 1700000000000\n', {"a"})["a"]
    assert sample.labels == {"x": '1 "} 2', "y": "back\\slash\nline"}
    assert sample.value == 3
    assert math.isnan(parse("a NaN\n", {"a"})["a"][0].value)


def test_five_megabytes() -> None:
    filler = "".join(
        f'http_requests_total{{handler="/v1/{n}",method="POST",status="2xx"}} {n}.0\n' for n in range(80_000)
    )
    page = filler + busy("0.33.0").page()
    assert len(page) > 5_000_000
    begun = time.process_time()
    found = read(page)
    assert found is not None
    assert found["counters"]["prompt_tokens"] == 605
    assert time.process_time() - begun < 5
