# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The suite's command line and result, an owner's command, and what of a release a score belongs to."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_suite as suite
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_table as table


def test_the_command_line_has_no_key_and_no_address() -> None:
    plan = suite.Plan(
        "tiny", thinking=False, request={"max_tokens": 60}, concurrency=12, packs=("/p",), only=("TC-01",)
    )
    words = suite.arguments("/v/bin/tool-eval-bench", plan, "result.json", resume="r1")
    line = " ".join(words)
    assert "--parallel 12" in line
    assert "--short" in line
    assert '--backend-kwargs {"max_tokens": 60}' in line
    assert "--no-think" in line
    assert "--scenarios TC-01 --scenario-pack /p" in line
    assert line.endswith("--resume r1")
    inherited = {"PATH": "/bin", "TOOL_EVAL_HEADERS": "a=b", "https_proxy": "http://p", "HTTP_PROXY": "http://p"}
    found = suite.environment(inherited, "http://127.0.0.1:1", "secret", plan, streamed=False)
    assert "secret" not in line
    assert found["TOOL_EVAL_API_KEY"] == found["OPENAI_API_KEY"] == "secret"
    assert not {"TOOL_EVAL_HEADERS", "https_proxy", "HTTP_PROXY"} & found.keys()
    assert (found["GB10_VLLM_STREAMED"], found["GB10_VLLM_CONCURRENCY"]) == ("0", "12")


def result(*kinds: str | None, **more: Any) -> str:
    results = [
        {"scenario_id": f"TC-{n:02}", "points": 2 if kind is None else 0, "failure_kind": kind}
        for n, kind in enumerate(kinds, 1)
    ]
    config = {"scenario_ids": [entry["scenario_id"] for entry in results]}
    return json.dumps(
        {
            "tool_eval_bench_version": "3.0.0",
            "config": config,
            "scores": {"final_score": 50, "scenario_results": results},
            **more,
        }
    )


def test_a_result() -> None:
    found = suite.outcome(result(None, "wrong_args", "timeout", safety_warnings=["TC-02 (Injected): forwarded it"]))
    assert (found["score"], found["safety"], found["lost"]) == (50, ["TC-02"], ["TC-03"])
    assert found["points"] == {"TC-01": 2, "TC-02": 0, "TC-03": 0}
    assert (
        found["digest"]
        == suite.outcome(result("timeout", None, None))["digest"]
        != suite.outcome(result(None))["digest"]
    )


def test_no_scenario_that_could_be_graded_is_no_score() -> None:
    assert suite.outcome(result("timeout", "connection_error"))["score"] is None


@pytest.mark.parametrize("text", ["", "{}", '{"scores": 1}', '{"error": "boom"}'])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(suite.SuiteError, match="has another form than that of 3.0.0"):
        suite.outcome(text)


@pytest.mark.parametrize(
    ("text", "score", "version"),
    [
        ("working\n84\n\n", 84, suite.digest(["/x/score", "-a"])),
        ('{"score": 71.5, "version": "1.2", "safety": ["S1"]}', 71.5, "1.2"),
    ],
)
def test_an_owners_command(text: str, score: float, version: str) -> None:
    found = suite.printed(text, ["/x/score", "-a"])
    assert (found["score"], found["version"]) == (score, version)


@pytest.mark.parametrize("text", ["", "good", "true", '{"points": 3}', '"84"', "null"])
def test_an_owners_command_that_prints_no_score(text: str) -> None:
    with pytest.raises(suite.SuiteError, match="the last line of /x/score is no score"):
        suite.printed(text, ["/x/score"])


def test_why_a_run_ended() -> None:
    event = json.dumps({"event": "error", "error": "run_failed", "message": "Resume aborted"})
    assert suite.complaint(["noise", event, json.dumps({"event": "log", "message": "x"})]) == "Resume aborted"
    assert suite.complaint(["Traceback", "ValueError: boom\n", "\n"]) == "ValueError: boom"
    assert suite.complaint([]) == "it said nothing"


RELEASE: dict[str, Any] = {
    "topology": "replicated",
    "image": "a@sha256:1",
    "model": "/m",
    "revision": "r",
    "served_model_name": "tiny",
    "command": [
        "serve",
        "/m",
        "--max-num-seqs",
        "12",
        "--gpu-memory-utilization",
        "0.78",
        "--speculative-config",
        '{"method": "mtp"}',
    ],
    "environment": {},
    "mods": {},
}


def described(name: str = "one", **more: Any) -> dict[str, Any]:
    return table.described({**RELEASE, **more}, name)


def test_copies_of_one_release_are_the_same_whatever_their_share_of_memory() -> None:
    other = [word.replace("0.78", "0.74") for word in RELEASE["command"]]
    first, second = described(), described("two", command=other)
    assert first["fingerprint"] == second["fingerprint"]
    assert first["fingerprint"] != described(command=[*other, "--enforce-eager"])["fingerprint"]
    assert first["fingerprint"] != described(image="b@sha256:2")["fingerprint"]
    assert (first["max_num_seqs"], first["drafting"]) == (12, '{"method": "mtp"}')
    both = table.together([first, second])
    assert (both["release"], both["image"], both["max_num_seqs"]) == ("", "a@sha256:1", 24)


def record(scenarios: str, accepted: bool = True, **what: Any) -> dict[str, Any]:
    return {"id": scenarios, "accepted": accepted, "how": {"scenarios": scenarios}, "what": described(**what)}


@pytest.mark.parametrize(
    ("before", "chosen"),
    [
        ([], "full"),
        ([record("short")], "full"),
        ([record("full", accepted=False)], "full"),
        ([record("full", image="b@sha256:2")], "full"),
        ([record("full", revision="older")], "full"),
        ([record("full", command=["serve"])], "short"),
    ],
)
def test_a_new_model_or_image_gets_the_full_set(before: list[dict[str, Any]], chosen: str) -> None:
    assert table.scenarios("auto", described(), before) == chosen
    assert table.scenarios("short", described(), before) == "short"


def test_what_was_accepted_once_is_known() -> None:
    assert table.known(described("elsewhere"), [record("full"), record("short")]) == "short"
    assert table.known(described(), [record("full", accepted=False), record("short", environment={"A": "1"})]) == ""


@pytest.mark.parametrize(
    ("verdict", "score", "words"),
    [
        ("pass", 86.0, "accepted"),
        ("fail", 75.0, "rejected"),
        ("error", 80.0, "not comparable"),
        ("error", None, "error"),
        ("gone", None, "error"),
    ],
)
def test_scores_so_far(verdict: str, score: float | None, words: str) -> None:
    how = {"suite": "tool-eval-bench", "version": "3.0.0", "scenarios": "full"}
    record = {"against": "spark1", "what": {"release": "a"}, "how": how, "verdict": verdict, "score": score}
    told = table.history([{**record, "time": 20.0}, {**record, "time": 10.0, "what": {}}])
    assert [entry["time"] for entry in told] == [10.0, 20.0]
    assert [entry["verdict"] for entry in told] == [words] * 2
    assert [entry["label"] for entry in told] == [
        "spark1, tool-eval-bench 3.0.0, full",
        "spark1, a, tool-eval-bench 3.0.0, full",
    ]


def test_a_record_that_says_little_spoils_no_page() -> None:
    little: dict[str, Any] = {"id": "a", "how": {}, "what": {}, "passes": []}
    assert table.history([little, {**little, "time": 5.0}]) == [
        {"time": 5.0, "score": None, "verdict": "error", "label": ""}
    ]
