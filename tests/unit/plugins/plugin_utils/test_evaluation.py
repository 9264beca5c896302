# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an evaluation comes to: each way of being bad with its reason, and what may be compared with what."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation as evaluation

HOW = {
    "suite": "tool-eval-bench",
    "version": "3.0.0",
    "scenarios": "short",
    "digest": "d5215efbd363",
    "trials": 1,
    "thinking": True,
    "temperature": 0.0,
    "request": {},
    "modes": ["streamed", "whole"],
    "concurrency": 12,
}


def record(score: float | None = 86, whole: float | None = None, **more: Any) -> dict[str, Any]:
    """A record of a good measurement; `how` and `wire` are put on top of the usual ones."""
    how = {**HOW, **more.pop("how", {})}
    wire = {"requests": 100, "answers": 60, "most_at_once": 12, **more.pop("wire", {})}
    safety = more.pop("safety", [])
    passes = [
        {"streamed": True, "score": score, "safety": safety, "lost": []},
        {"streamed": False, "score": score if whole is None else whole, "safety": safety, "lost": []},
    ]
    told = {"schema": 1, "id": "new", "time": 2.0, "how": how, "what": {}, "passes": passes, "wire": wire}
    return {**told, **more}


def accepted(score: float = 86, name: str = "old", **more: Any) -> dict[str, Any]:
    return record(score, **{"id": name, "time": 1.0, "accepted": True, **more})


def judged(new: dict[str, Any], *before: dict[str, Any], **rules: Any) -> tuple[str, str]:
    verdict = evaluation.judge(new, evaluation.reference(new, before), evaluation.Rules(**rules))
    return verdict.name, verdict.reason


def test_a_file_of_another_site_is_looked_at_before_it_is_believed() -> None:
    passes = [{"streamed": True, "trial": 1, "score": 86, "safety": [], "seconds": 9.0, "lost": []}]
    good = record(what={"fingerprint": "f00"}, against="spark3", passes=passes)
    assert evaluation.malformed(good) == ""
    for bad, words in (
        ([], "it is no record of an evaluation"),
        ({**good, "id": 7}, "it is no record of an evaluation"),
        ({key: value for key, value in good.items() if key != "wire"}, "it is no record of an evaluation"),
        ({**good, "schema": 2}, "it is a record of schema 2, and this version knows 1"),
        ({**good, "what": {}}, "it does not say what was evaluated"),
        ({**good, "passes": [{"streamed": True}]}, "what was found is not complete"),
        ({**good, "passes": ["86"]}, "what was found is not complete"),
    ):
        assert evaluation.malformed(bad).startswith(words)


@pytest.mark.parametrize(
    ("new", "name", "reason"),
    [
        (record(86), "pass", "a score of 86, the same as the last accepted 86"),
        (record(84), "pass", "a score of 84, 2 points below the last accepted 86"),
        (record(83), "pass", "a score of 83, 3 points below the last accepted 86"),
        (record(80), "fail", "a score of 80, 6 points below the last accepted 86; at most 3 points lower are allowed"),
        (record(91), "pass", "a score of 91, 5 points above the last accepted 86"),
        (
            record(86, whole=80),
            "fail",
            "a score of 80, 6 points below the last accepted 86; at most 3 points lower are allowed",
        ),
        (
            record(90, whole=40),
            "fail",
            "streamed answers and whole ones differ: 90 streamed and 40 whole, and 10 points may lie between",
        ),
        (record(86, safety=["TC-34"]), "fail", "1 safety failures, and 0 in the last accepted record: new are TC-34"),
        (
            record(86, wire={"server_errors": 1, "server_errors_alone": 1, "first_error": "500: boom"}),
            "fail",
            "1 of 100 requests ended in a server error (the first one 500: boom)",
        ),
        (
            record(86, wire={"server_errors": 7, "first_error": "500: boom"}),
            "fail",
            "7 of 100 requests ended in a server error (the first one 500: boom), and only while others ran beside them, up to 12 at once",
        ),
        (
            record(86, wire={"faults": {"text": 18}, "examples": {"text": "<tool_call>"}}),
            "fail",
            "18 of 60 answers had a tool call as text, for example <tool_call>",
        ),
        (
            record(
                86,
                wire={
                    "faults": {"json": 4, "stream": 30},
                    "examples": {"json": "f with '{'", "stream": "no [DONE] at its end"},
                },
            ),
            "fail",
            "4 of 60 answers had arguments that are no JSON object, for example f with '{'; 30 of 60 answers came as a stream with missing "
            "parts, for example no [DONE] at its end",
        ),
        (record(86, wire={"faults": {"schema": 3}}), "pass", "a score of 86, the same as the last accepted 86"),
        (
            record(86, wire={"faults": {"length": 60}, "examples": {"length": "silver stone"}}),
            "fail",
            "60 of 60 answers ended at the limit of tokens, for example silver stone",
        ),
        (record(86, problem="the budget of 60 s is over"), "error", "the budget of 60 s is over"),
        (record(None), "error", "the suite printed no score"),
        (record(86, gone="3 connections"), "gone", "the engine ended while it was tested: 3 connections"),
    ],
)
def test_verdicts_beside_an_accepted_86(new: dict[str, Any], name: str, reason: str) -> None:
    assert judged(new, accepted()) == (name, reason)


def test_a_fault_is_the_copys_own_however_far_the_measurement_came() -> None:
    new = record(86, problem="the budget is over", wire={"server_errors": 1, "first_error": "500: boom"})
    assert judged(new, accepted())[0] == "fail"


def test_faults_and_safety_failures_that_were_accepted_before_are_no_news() -> None:
    seen = {"faults": {"schema": 12}, "examples": {"schema": "x"}}
    assert judged(record(86, wire=seen, safety=["TC-34"]), accepted(wire=seen, safety=["TC-34"]))[0] == "pass"
    assert judged(record(86, wire=seen, safety=["TC-35"]), accepted(wire=seen, safety=["TC-34"]))[0] == "pass"


def test_the_first_one_has_only_the_floor() -> None:
    assert judged(record(17)) == ("pass", "a score of 17; there is no accepted one before it, so it becomes the first")
    assert judged(record(17), minimum=50) == ("fail", "a score of 17, and the lowest one allowed is 50")


def test_trials_count_by_their_mean() -> None:
    new = record(86)
    new["passes"] = [{"streamed": True, "score": score, "safety": []} for score in (80, 90)]
    assert evaluation.score(new) == 85


@pytest.mark.parametrize(
    ("how", "difference"),
    [
        ({"version": "2.9.1"}, "the suite's version (2.9.1 then, 3.0.0 now)"),
        ({"suite": "score.sh"}, "the suite (score.sh then, tool-eval-bench now)"),
        ({"digest": "0"}, "the scenarios (0 then, d5215efbd363 now)"),
        ({"trials": 3}, "the number of trials (3 then, 1 now)"),
        ({"thinking": False}, "thinking (off then, on now)"),
        ({"temperature": 0.6}, "the temperature (0.6 then, 0.0 now)"),
        ({"request": {"max_tokens": 9}}, "what is added to the requests ({'max_tokens': 9} then, none now)"),
        ({"modes": ["whole"]}, "whether answers are streamed (whole then, streamed and whole now)"),
        ({"concurrency": 8}, "the requests at once (8 then, 12 now)"),
    ],
)
def test_measured_in_another_way(how: dict[str, Any], difference: str) -> None:
    assert evaluation.comparable(record(), accepted(how=how)) == [difference]
    name, reason = judged(record(86), accepted(how=how))
    assert name == "error"
    assert reason.startswith(
        f"a score of 86 that cannot be judged: not comparable with the last accepted record old: {difference} differ. "
    )
    assert "-e vllm_evaluation_accept_incomparable=true" in reason, "the way out"
    assert judged(record(86), accepted(how=how), accept_incomparable=True) == (
        "pass",
        "a score of 86; accepted as a new beginning, because vllm_evaluation_accept_incomparable is true",
    )


def test_what_is_judged_may_differ() -> None:
    before = accepted(what={"image": "a", "model": "m", "revision": "1", "drafting": "mtp"})
    assert (
        evaluation.comparable(record(what={"image": "b", "model": "m", "revision": "2", "drafting": ""}), before) == []
    )


def test_about_as_many_at_once() -> None:
    assert [evaluation.concurrency_class(n) for n in (1, 2, 3, 4, 5, 8, 9, 12, 16, 17)] == [
        *("1", "2", "3-4", "3-4", "5-8", "5-8", "9-16", "9-16", "9-16", "17-32"),
    ]


def test_the_measure_is_the_newest_accepted_one_of_its_kind() -> None:
    full = accepted(70, "full", time=9.0, how={"scenarios": "full"})
    bad = {**accepted(40, "bad", time=8.0), "accepted": False}
    older, newer = accepted(86, "older", time=1.0), accepted(90, "newer", time=2.0)
    other = accepted(99, "other", time=3.0, how={"version": "2.9.1"})
    found = evaluation.reference(record(), [older, full, other, newer, bad])
    assert found is newer
    assert evaluation.reference(record(), [full]) is None, "another set of scenarios says nothing about this one"


def test_before_anything_is_measured_the_scenarios_are_not_known_yet() -> None:
    how = {key: value for key, value in HOW.items() if key != "digest"}
    assert evaluation.wanted({"how": how}, [accepted()]) == ("old", [])
    assert evaluation.wanted({"how": {**how, "trials": 2}}, [accepted()]) == (
        "old",
        ["the number of trials (1 then, 2 now)"],
    )
    assert evaluation.wanted({"how": how}, []) == ("", [])
