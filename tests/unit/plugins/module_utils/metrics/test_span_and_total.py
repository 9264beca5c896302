# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences before sums: what copies did, through restarts, gaps, two builds at once and a proxy in the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import span as spans
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.reading import read
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.total import per_second, total
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.metrics.pages import Engine, Process, one


def look(process: Process, at: float, **more: Any) -> dict[str, Any]:
    found = read(process.page())
    assert found is not None
    return {"at": at, "version": process.version, "instance": None, "listener": None, **found, **more}


def counting(prompts: Sequence[int | None], **who: Any) -> dict[str, Any]:
    """The state after looks, 30 s from one to the next, that found so many prompt tokens; None is a look in vain."""
    state: Any = None
    for number, count in enumerate(prompts):
        reading = None
        if count is not None:
            process = Process(engines=[Engine(prompt=count)], apis=2)
            reading = look(process, 30.0 * number, **{key: values[number] for key, values in who.items()})
        state = spans.advance(state, reading)
    return dict(state)


def test_two_copies_in_turn_give_jumps_and_each_alone_gives_the_rate() -> None:
    copies = {"a": counting([100, 160, 220]), "b": counting([1000, 1030, 1060])}
    assert total(copies)["span"]["per_second"]["prompt_tokens"] == pytest.approx(3.0)
    with pytest.raises(MetricsError, match="up and down by turns: more than one process answers"):
        counting([100, 1030, 160])
    with pytest.raises(MetricsError, match="a process that had been replaced answers again: more than one process"):
        counting([100, 1030, 160], started=[1.0, 2.0, 1.0])
    with pytest.raises(MetricsError, match="although the process did not end: more than one process"):
        counting([100, 1030, 160], listener=["x", "x", "x"])


@pytest.mark.parametrize(
    ("prompts", "who", "tokens", "restarts"),
    [
        ([100, 160, 220], {}, 120, 0),
        # by the falling counter alone
        ([100, 160, 20, 50], {}, 60 + 20 + 30, 1),
        ([100, 160, 20, 50, 5], {}, 60 + 20 + 30 + 5, 2),
        # a new process that has already counted more than the old one
        ([100, 400], {"started": [1.0, 2.0]}, 400, 1),
        ([100, 400], {"born": [1.0, 2.0]}, 400, 1),
        ([100, 400], {"listener": ["x", "y"]}, 400, 1),
        # the process is known by its start, whoever passes its connections on
        ([100, 400], {"started": [1.0, 1.0], "listener": ["x", "y"]}, 300, 0),
        ([100, 400], {"started": [1.0, 2.0], "listener": ["x", "x"]}, 400, 1),
        # what only one of two readings knows proves nothing
        ([100, 400], {"started": [None, 2.0], "listener": [None, "x"]}, 300, 0),
        # looks in vain lose nothing
        ([100, None, None, 160], {}, 60, 0),
        ([None, 100, 160], {}, 60, 0),
        ([100, None, 20], {}, 20, 1),
    ],
)
def test_one_copy_over_time(prompts: list[int | None], who: dict[str, Any], tokens: int, restarts: int) -> None:
    state = counting(prompts, **who)
    assert state["span"]["counters"]["prompt_tokens"] == tokens
    assert state["span"]["restarts"] == restarts
    assert state["missed"] == prompts.count(None)
    assert state["span"]["seconds"] == 30.0 * (len(prompts) - 1 - (prompts[0] is None))
    assert json.loads(json.dumps(state)) == state


def test_reset_belongs_to_one_copy() -> None:
    found = total({"a": counting([100, 160, 7]), "b": counting([1000, 1030, 1060])})
    assert found["span"]["counters"]["prompt_tokens"] == 60 + 7 + 60
    assert found["span"]["restarted"] == ["a"]


def test_figure_that_cannot_be_read_once_is_whole_again_later() -> None:
    process = one(prompt=100)
    state = spans.advance(None, look(process, 0.0))
    process.engines[0].prompt = float("nan")
    process.engines[0].serve(0, 5)
    state = spans.advance(state, look(process, 1.0))
    assert state["span"]["counters"]["prompt_tokens"] is None
    assert state["span"]["counters"]["generation_tokens"] == 5
    assert total({"a": state})["unknown"] == {}
    process.engines[0].prompt = 180
    state = spans.advance(state, look(process, 2.0))
    assert state["span"]["counters"]["prompt_tokens"] == 80
    assert state["span"]["partial"] == []


def test_figure_that_comes_up_in_one_process_is_not_whole() -> None:
    process = one()
    before = look(process, 0.0)
    process.engines[0].drafted = (10, 40, 30)
    between = spans.span(before, look(process, 1.0))
    assert between["counters"]["accepted_tokens"] is None
    assert between["partial"] == ["accepted_tokens", "draft_tokens", "drafts"]
    again = spans.joined(between, spans.span(look(process, 1.0), look(process, 2.0)))
    assert (again["counters"]["accepted_tokens"], again["partial"]) == (0, between["partial"])


def test_requests_that_cannot_be_read_once_are_whole_again_later() -> None:
    base = look(one(), 0.0)
    state = None
    for at, requests in enumerate([{"stop": 4}, None, {"stop": 7}, {"stop": 9}]):
        state = spans.advance(state, {**base, "at": float(at), "requests": requests})
    assert state is not None
    assert (state["span"]["requests"], state["span"]["partial"]) == ({"stop": 5}, [])


def test_fall_of_a_histogram_is_a_restart_too() -> None:
    before, after = (Process(apis=2, engines=[Engine(first=[0.2] * count)]) for count in (9, 4))
    unknown = dict.fromkeys(look(before, 0.0)["counters"])
    readings = [{**look(process, at), "counters": unknown} for process, at in ((before, 0.0), (after, 1.0))]
    found = spans.span(*readings)
    assert (found["restarts"], found["histograms"]["ttft"]["count"]) == (1, 4)


def test_new_process_is_not_taken_for_an_older_one_that_comes_back() -> None:
    state = None
    for at, (prompt, generation) in enumerate([(100, 50), (1030, 500), (160, 3)]):
        process = Process(apis=2, engines=[Engine(prompt=prompt, generation=generation)])
        state = spans.advance(state, look(process, float(at)))
    assert state is not None
    assert (state["span"]["restarts"], state["span"]["counters"]["generation_tokens"]) == (1, 450 + 3)


def test_clock_that_was_set_back_is_refused() -> None:
    with pytest.raises(MetricsError, match="clock was set back"):
        spans.span(look(one(), 5.0), look(one(), 5.0))


def test_what_ended_and_how_it_was_spread_is_a_difference_too() -> None:
    process = one()
    process.engines[0].serve(10, 5, first=9.0, reason="length")
    before = look(process, 0.0)
    process.engines[0].serve(10, 5, first=0.05)
    process.engines[0].serve(10, 5, first=0.05, reason="error")
    between = spans.span(before, look(process, 2.0))
    assert {reason: count for reason, count in between["requests"].items() if count} == {"stop": 1, "error": 1}
    assert between["histograms"]["ttft"]["count"] == 2
    assert between["histograms"]["ttft"]["sum"] == pytest.approx(0.1)
    assert between["histograms"]["ttft"]["counts"][-1] == 2
    assert per_second(between)["generation_tokens"] == 5.0


def test_reason_that_comes_up_was_at_zero_before() -> None:
    base = look(one(), 0.0)
    before, after = {**base, "requests": {"stop": 4}}, {**base, "at": 1.0, "requests": {"stop": 4, "abort": 2}}
    assert spans.span(before, after)["requests"] == {"stop": 0, "abort": 2}
    assert spans.span({**before, "requests": None}, after)["requests"] is None
    assert "requests" in spans.span({**before, "requests": None}, after)["partial"]


def test_restart_with_another_build_goes_on_under_the_new_names() -> None:
    old, new = one("0.8.5"), one("0.33.0")
    new.started += 600
    for process, count in ((old, 4), (new, 3)):
        for _request in range(count):
            process.engines[0].serve(10, 6, each=3.0)
    first = Process("0.8.5")
    state = None
    for at, process in enumerate([first, old, new]):
        state = spans.advance(state, look(process, float(at)))
    assert state is not None
    assert state["span"]["counters"]["generation_tokens"] == 42
    observed = state["span"]["histograms"]["inter_token"]
    assert observed["count"] == 35
    # the old build ends at 2.5: what both can say is kept, and it is exact
    assert observed["bounds"][-1] == 2.5
    assert observed["counts"][-1] == 0


def test_copies_with_two_builds_are_one_sum() -> None:
    copies = {}
    for name, version in (("spark1", "0.8.5"), ("spark2", "0.33.0")):
        process = one(version, running=2, waiting=1, kv_use=0.40 if name == "spark1" else 0.44)
        before = look(process, 0.0)
        for _request in range(3):
            process.engines[0].serve(100, 11, first=0.03)
        after = look(process, 2.0, instance=name, born=None)
        copies[name] = {"now": after, "span": spans.span(before, after)}
    found = total(copies)
    assert (found["copies"], found["read"], found["missing"]) == (2, 2, {})
    assert found["builds"] == ["0.33.0", "0.8.5"]
    assert found["gauges"] == {"running": 4, "waiting": 2}
    assert found["kv_use"] == {"max": 0.44, "mean": pytest.approx(0.42)}
    assert found["span"]["counters"]["prompt_tokens"] == 600
    assert found["span"]["per_second"]["generation_tokens"] == pytest.approx(33.0)
    assert found["span"]["histograms"]["ttft"]["count"] == 6
    assert found["span"]["requests"]["stop"] == 6
    assert found["unknown"] == {}


def test_missing_copy_is_missing_and_not_zero() -> None:
    here = {"now": look(one(running=3, kv_use=0.5), 0.0), "span": None}
    found = total(
        {"spark1": here, "spark2": {"now": None, "span": None, "reason": "could not be reached"}, "spark3": {}}
    )
    assert (found["copies"], found["read"]) == (3, 1)
    assert found["missing"] == {"spark2": "could not be reached", "spark3": "not read"}
    assert found["gauges"]["running"] == 3
    assert found["kv_use"] == {"max": 0.5, "mean": 0.5}
    assert found["span"]["counters"] == {}
    nobody = total({"spark1": {}})
    assert (nobody["gauges"], nobody["kv_use"]) == ({"running": None, "waiting": None}, None)


def test_figure_that_one_copy_does_not_have_is_named() -> None:
    drafting, plain = one(drafted=(10, 40, 30)), one()
    copies = {
        "spark1": {"now": look(drafting, 0.0, born=1.5), "span": None},
        "spark2": {"now": {**look(plain, 0.0, born=2.5), "kv_use": None}, "span": None},
    }
    found = total(copies)
    assert found["lives"]["counters"]["accepted_tokens"] == 30
    assert found["unknown"] == {key: ["spark2"] for key in ("accepted_tokens", "draft_tokens", "drafts", "kv_use")}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ({"instance": "boot/1/8000"}, {"instance": "boot/1/8000"}, "listens at the same place of the same machine"),
        (
            {"instance": "boot/1/8000", "born": 5.25},
            {"instance": "other/1/8000", "born": 5.25},
            "began in the same instant",
        ),
    ],
)
def test_two_names_for_one_process_are_refused(first: Any, second: Any, why: str) -> None:
    nobody = {"instance": None, "born": None}
    copies = {
        "spark1": {"now": look(one(), 0.0, **{**nobody, **first})},
        "spark2": {"now": look(one(), 0.0, **{**nobody, **second})},
    }
    with pytest.raises(MetricsError, match=f"^spark1 and spark2 are the same process .*{why}"):
        total(copies)
    copies["spark2"]["now"] |= {"instance": "boot/2/8000", "born": 6.25}
    assert total(copies)["read"] == 2
