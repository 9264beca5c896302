# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _report, _report_questions, _report_timeline
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import report_samples as samples

TRACES = {"spark1": samples.traces("spark1", 21, 118), "spark2": samples.traces("spark2", 18, 131)}


def build(events: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return _report.build(samples.history(events, **more), TRACES, {"proxy1": samples.counted()})


def steps(report: dict[str, Any], name: str) -> list[tuple[str, float, str]]:
    (host,) = [host for host in report["hosts"] if host["name"] == name]
    return [(span["step"], round(span["seconds"], 1), span["result"]) for span in host["spans"]]


def test_a_switch() -> None:
    report = build(samples.switch(), earlier=samples.earlier())
    assert (report["state"], report["path"], report["topology"]) == ("ok", "switch", "replicated")
    assert steps(report, "spark1") == [
        ("drain", 6.5, "ok"), ("stop", 4.2, "ok"), ("memory", 6.8, "ok"), ("load", 118.0, "ok"), ("gate", 1.9, "ok"), ("admit", 0.2, "ok"),
        ("soak", 60.0, "ok"),
    ]  # fmt: skip
    # Rank 1 of a pair was never in front of clients, so it was not drained.
    assert [name for name, _seconds, _result in steps(report, "spark2")][:3] == ["stop", "memory", "load"]
    # From the withdrawal of the pair to the admission of the first copy.
    assert report["windows"] == [
        {"from": samples.BEGAN + 3, "to": samples.BEGAN + 141.1, "seconds": 138.1, "open": False, "at_least": False}
    ]
    assert report["requests"] == {"held": 41, "turned_away": 0, "longest_seconds": 128.4}
    assert [(row["rollout"], row["state"], row["window_seconds"]) for row in report["earlier"]] == [
        ("20260501-100000-cutover", "failed", 168.5),
        ("20260510-090000-cutover", "ok", 138.1),
        ("20260520-150000-restart", "ok", 0),
    ]
    assert report["notes"] == []


def test_phases_of_a_load_fill_it() -> None:
    (host,) = [host for host in build(samples.switch())["hosts"] if host["name"] == "spark1"]
    assert sum(phase["seconds"] for phase in host["phases"]) == pytest.approx(118)
    assert host["phases"][0]["phase"] == "starting the container"
    assert "ready" not in [phase["phase"] for phase in host["phases"]]


def test_memory_planned_and_real_of_now_and_before() -> None:
    rows = build(samples.switch())["memory"]
    assert [(row["host"], row["when"], row["planned_requests"], row["concurrency"]) for row in rows] == [
        ("spark1", "before", 2.9, 2.95), ("spark1", "now", 4.1, 3.98), ("spark2", "before", 2.9, 2.95), ("spark2", "now", 4.1, 3.98)
    ]  # fmt: skip


def test_a_rolling_change_has_no_window() -> None:
    report = build(samples.rolling())
    assert report["windows"] == []
    assert [name for name, _seconds, _result in steps(report, "spark2")] == [
        "drain", "stop", "load", "gate", "admit", "soak"
    ]  # fmt: skip


def test_a_failed_switch_says_why_and_what_serves() -> None:
    report = build(samples.failed())
    assert (report["state"], report["serving"]) == ("failed", ["spark1"])
    assert samples.REASON in report["reason"]
    assert [host["reason"] for host in report["hosts"]] == [samples.REASON, samples.REASON]
    assert ("failed", 44.0, "failed") in steps(report, "spark1")
    # The way back is part of the story, and ends the window.
    assert steps(report, "spark1")[-3:] == [("load", 90.0, "ok"), ("gate", 1.0, "ok"), ("admit", 0.5, "ok")]
    assert report["window_seconds"] == 168.5


def test_a_killed_rollout() -> None:
    report = build(samples.killed())
    assert (report["state"], report["ended"], report["requests"], report["serving"]) == ("unfinished", None, None, [])
    assert report["windows"][0]["open"]
    assert [span["open"] for span in report["hosts"][1]["spans"]][-1]
    assert report["seconds"] == 21


def test_the_rollout_that_went_on_has_the_whole_window() -> None:
    before = [{"rollout": "20260528-202640-cutover", "events": samples.killed()}]
    report = build(samples.resumed(), rollout="20260528-203140-resume", earlier=before)
    assert report["resumes"] == "20260528-202640-cutover"
    # Withdrawn at 3 s by the one, admitted at 303.6 s by the other.
    assert report["window_seconds"] == 300.6
    alone = build(samples.resumed(), rollout="20260528-203140-resume")
    assert (alone["window_seconds"], alone["windows"][0]["at_least"]) == (3.6, True)


def test_a_copy_that_is_only_looked_at_has_no_load() -> None:
    # The line is written after the admission whose time it precedes.
    look = [
        samples.step(9, "loaded", "spark1", seconds=0.1),
        samples.step(5, "passed", "spark1"),
        samples.step(5.5, "admitted", "spark1"),
    ]
    report = build([samples.begin(), *look])
    assert [step for step, _seconds, _result in steps(report, "spark1")] == ["gate", "admit"]
    assert report["notes"] == []


def test_what_serves_when_nothing_does_and_when_one_was_not_touched() -> None:
    assert build([*samples.killed(), samples.ended(90, "failed", serving=[])])["serving"] == []
    assert build(samples.rolling()[:4])["serving"] == ["spark2"]


def test_requests_that_outlast_the_drain_end_the_window() -> None:
    events = samples.switch()[:2]
    events += [samples.step(303, "drained", "spark1", result="refuse", seconds=300)]
    events += [samples.ended(305, "failed", serving=["spark1"], reason="too long")]
    report = build(events)
    assert (report["window_seconds"], report["windows"][0]["open"]) == (300, False)
    assert steps(report, "spark1") == [("drain", 300.0, "refuse")]


def test_a_first_start_has_no_window() -> None:
    events = [
        samples.begin(serving=(), before={}),
        *samples.served("spark1", 2, 60),
        *samples.served("spark2", 2, 70),
        samples.ended(140),
    ]
    report = build(events)
    assert (report["windows"], report["changes"][0]["words"]) == ([], "The first release on this host.")
    assert (report["first_start"], build(samples.rolling())["first_start"]) == (True, False)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [{"step": "begin"}],
        [{"time": None, "step": "admitted", "host": None}, "no event", {"no": "step"}],
        [{"time": samples.BEGAN, "step": "begin", "host": "proxy1", "hosts": None, "targets": None, "before": None}],
        [
            samples.step(1, "loaded", "spark1", seconds="?"),
            samples.step(2, "end", "proxy1", result=None, requests=None),
        ],
        [samples.step(1, "drained", "spark1"), samples.step(0, "end", "proxy1", result="odd")],
    ],
)
def test_whatever_is_missing_is_no_failure(events: list[Any]) -> None:
    report = _report.build(samples.history(events), {}, {})
    assert report["state"] == "unfinished"
    assert _report_questions.questions(events, samples.BEGAN).keys() == {"hosts", "spans"}


@pytest.mark.parametrize("jump", [-3600.0, -5.0, 3600.0])
@pytest.mark.parametrize("place", range(1, 15))
def test_a_clock_that_jumps_makes_no_negative_time(place: int, jump: float) -> None:
    events = samples.switch()
    events = events[:place] + [{**event, "time": event["time"] + jump} for event in events[place:]]
    report = build(events)
    assert min(span["seconds"] for host in report["hosts"] for span in host["spans"]) >= 0
    assert all(window["seconds"] >= 0 for window in report["windows"])
    assert report["seconds"] >= 0


def test_a_clock_that_ran_backwards_is_named() -> None:
    events = samples.switch()
    (passed,) = [event for event in events if event["step"] == "passed" and event["host"] == "spark1"]
    passed["time"] -= 500
    assert "spark1: the step gate ends" in " ".join(build(events)["notes"])


def test_64_hosts() -> None:
    names = [f"spark{number}" for number in range(64)]
    report = _report.build(samples.history(samples.rolling(names)), {}, {})
    assert [host["name"] for host in report["hosts"]] == names
    assert [change["hosts"] for change in report["changes"]] == [names]
    assert "could not be read here" in report["changes"][0]["words"]


def test_what_the_hosts_forgot_is_taken_from_the_report_before() -> None:
    full = build(samples.switch())
    late = _report.build(samples.history(samples.switch(), kept=full), {}, {})
    for key in ("traffic", "memory", "changes"):
        assert late[key] == full[key]
    assert [host["phases"] for host in late["hosts"]] == [host["phases"] for host in full["hosts"]]
    other = _report.build(samples.history(samples.switch(), kept={**full, "rollout": "another"}), {}, {})
    assert other["memory"] == []


def test_questions_for_the_hosts() -> None:
    asked = _report_questions.questions(samples.switch(), samples.BEGAN + 10_000)
    spark1 = asked["hosts"]["spark1"]
    assert spark1["releases"] == [f"{samples.PAIR}-spark1", f"{samples.COPIES}-spark1", samples.PAIR]
    assert spark1["starts"] == [samples.BEGAN + 21]
    assert [round(stop["to"] - stop["from"], 1) for stop in spark1["stops"]] == [11.0]
    ends = {span["name"]: (span["from"] - samples.BEGAN, span["to"] - samples.BEGAN) for span in asked["spans"]}
    assert ends["before"] == pytest.approx((3 - 148.1, 3))
    assert ends["window"] == pytest.approx((3, 141.1))
    assert ends["during"] == pytest.approx((3, 151.1))
    assert ends["after"] == pytest.approx((151.1, 151.1 + 148.1))


def test_nothing_is_counted_where_clients_could_feel_nothing() -> None:
    assert _report_questions.questions([samples.begin()], samples.BEGAN)["spans"] == []


def test_traffic_is_summed_over_proxies_and_says_who_is_missing() -> None:
    proxies = {"proxy1": samples.counted(), "proxy2": samples.counted(), "proxy3": {"failed": True}}
    found = _report.build(samples.history(samples.switch()), {}, proxies)["traffic"]
    assert found["spans"]["before"]["requests"] == 4804
    assert found["spans"]["before"]["answered_per_second"] == 8.0
    assert found["spans"]["before"]["seconds_median"] == pytest.approx(2.14, rel=0.05)
    assert found["notes"] == ["proxy3: its access log could not be read, so its requests are missing"]


def test_hosts_that_no_plan_names() -> None:
    events = [samples.step(1, "started", "spark9"), samples.step(2, "end", "proxy1")]
    assert _report_timeline.hosts(_report_timeline.usable(events)) == ["spark9"]


def with_test(result: str) -> list[dict[str, Any]]:
    """One host whose copy was tested for 200 s, 30 s after its start, before it was admitted or was not."""
    at = 10
    reason = "a score of 80, 6 points below the last accepted 86"
    events = [
        samples.begin(["spark1"], path="rolling", serving=["spark1"]),
        samples.step(at, "started", "spark1", to=f"{samples.COPIES}-spark1"),
    ]
    events += [samples.step(at + 231, "evaluated", "spark1", result=result, seconds=200, reason=reason, score=80)]
    if result == "failed":
        return [
            *events,
            samples.step(at + 232, "failed", "spark1", result="failed", reason=f"the tool-call test: {reason}"),
        ]
    events += [samples.step(at + 233, "loaded", "spark1", seconds=30), samples.step(at + 232, "passed", "spark1")]
    return [*events, samples.step(at + 232.5, "admitted", "spark1")]


def test_a_test_of_tool_calls_stands_between_the_load_and_the_gate() -> None:
    report = build(with_test("ok"))
    assert steps(report, "spark1")[:4] == [
        ("load", 30, "ok"),
        ("test", 200, "ok"),
        ("gate", 1, "ok"),
        ("admit", 0.5, "ok"),
    ]


def test_a_copy_that_scores_too_low_says_so() -> None:
    report = build(with_test("failed"))
    assert steps(report, "spark1") == [("load", 31, "ok"), ("test", 200, "failed"), ("failed", 1, "failed")]
    assert report["hosts"][0]["reason"] == "the tool-call test: a score of 80, 6 points below the last accepted 86"
