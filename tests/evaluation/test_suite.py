# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real suite against a stand-in that calls tools in every wrong way there is, through the module, on this machine's loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_run, _evaluation_suite
from ansible_collections.gb10.vllm.tests.standin.server import Server, wait_until

Start = Callable[..., Server]
Test = Callable[..., dict[str, Any]]
# Some of the core set, so that a story takes seconds; calls, an answer without one, and two turns are among them.
FEW = ["TC-01", "TC-02", "TC-03", "TC-10", "TC-13"]


def test_right_calls(start: Start, test: Test) -> None:
    # Answers that take a while run beside each other on a busy machine too.
    found = test(start(token_seconds="0.03"))
    record = found["record"]
    assert (found["verdict"], record["accepted"]) == ("pass", True), found["reason"]
    assert found["reason"].endswith("there is no accepted one before it, so it becomes the first")
    assert record["score"] > 0
    assert [(entry["streamed"], len(entry["points"])) for entry in record["passes"]] == [(True, 15), (False, 15)]
    assert (record["how"]["suite"], record["how"]["version"]) == ("tool-eval-bench", _evaluation_suite.VERSION)
    assert record["wire"]["faults"] == {}
    assert record["wire"]["most_at_once"] == 4, "the concurrency that was asked for"
    assert [(entry["score"], entry["verdict"]) for entry in found["scores"]] == [(record["score"], "accepted")]
    assert found["lines"][1].split() == ["answers", "trial", "score", "safety", "failures", "seconds"]


@pytest.mark.parametrize(
    ("switches", "words"),
    [
        ({"tool_calls": "text"}, "had a tool call as text, for example <tool_call>"),
        ({"tool_calls": "json"}, "had arguments that are no JSON object, for example "),
        ({"tool_calls": "schema"}, "had a call that does not fit the tools offered, for example "),
        (
            {"tool_calls": "parts"},
            "came as a stream with missing parts, for example a piece of a call without its index",
        ),
        ({"tool_calls": "length"}, "ended at the limit of tokens, for example "),
        ({"error_beside": "1", "token_seconds": "0.05"}, "only while others ran beside them, up to "),
        ({"error_event": "1"}, "ended in a server error (the first one 200: an error event"),
    ],
)
def test_wrong_in_form_fails_whatever_the_score(start: Start, test: Test, switches: dict[str, str], words: str) -> None:
    # A parser that loses pieces does so in streams; the rest is the same in both, as the tables of the wire show.
    found = test(start(**switches), only=FEW, modes=["streamed"])
    assert (found["verdict"], found["record"]["accepted"]) == ("fail", False)
    assert words in found["reason"]


def test_errors_that_come_only_in_company_do_not_come_alone(start: Start, test: Test) -> None:
    assert test(start(error_beside="1"), only=FEW, concurrency=1, modes=["whole"])["verdict"] == "pass"


def test_a_model_that_calls_nothing_any_more_scores_too_low(start: Start, test: Test) -> None:
    few = {"only": FEW, "modes": ["whole"]}
    first = test(start(), **few)
    found = test(start(tool_calls="never"), **few, records=[first["record"]])
    assert found["verdict"] == "fail"
    assert "below the last accepted" in found["reason"]
    assert found["record"]["compared_with"] == first["record"]["id"]
    forced = test(start(tool_calls="never"), **few, request={"max_tokens": 60, "tool_choice": "required"})
    assert "had no call although one was demanded" in forced["reason"]


def test_an_engine_that_ends_is_gone(start: Start, test: Test) -> None:
    found = test(start(exit_after="1.5", token_seconds="0.05"))
    assert found["verdict"] == "gone"
    assert "connections in a row were not answered" in found["reason"]


def test_requests_that_the_engine_refuses_are_no_score(start: Start, test: Test) -> None:
    found = test(start(), only=FEW, modes=["whole"], request={"max_tokens": 99999})
    assert found["verdict"] == "error"
    assert "5 scenarios could not be graded, because the engine refused them, first with 400: " in found["reason"]
    assert "max_tokens=99999 cannot be greater than max_model_len=40000" in found["reason"]


def test_a_budget_that_is_over_is_no_verdict_and_the_next_one_goes_on(
    start: Start, test: Test, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Slow answers, until it is cut: the suite goes on for a few seconds with what it has begun.
    faults = tmp_path / "faults.json"
    faults.write_text(json.dumps({"token_seconds": 0.3}))
    server = start(faults_file=str(faults))

    def answered() -> float:
        return server.total("vllm:request_success_total")

    # The budget is over in the middle, however slow this machine is: 24 requests are one pass.
    with monkeypatch.context() as patch:
        patch.setattr(_evaluation_run, "monotonic", lambda: 100.0 if answered() > 3 else 0.0)
        cut = test(server, seconds=8)
    assert cut["verdict"] == "error"
    assert "the budget of 8 s was over with " in cut["reason"]
    assert 3 < answered() < 24
    faults.unlink()
    found = test(server)
    assert (found["verdict"], found["record"]["resumed"]) == ("pass", True), found["reason"]
    assert [len(entry["points"]) for entry in found["record"]["passes"]] == [15, 15]
    # What was running when the budget was over is asked again, what was done is not.
    assert answered() <= 2 * 24 + 8
    assert list((tmp_path / "work").iterdir()) == [], "nothing is left when it is complete"


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation_run, _evaluation_suite
plan = _evaluation_suite.Plan("tiny", thinking=False, request={"max_tokens": 60}, concurrency=4)
program = sys.argv[4]
found = _evaluation_run.Evaluation(plan, program, sys.argv[3], sys.argv[2], "", 60, lambda words: print(words, flush=True)).measure(["streamed"], 1)
print(found["resumed"], len(found["passes"][0]["points"]), found["problem"], flush=True)
"""


def test_a_controller_that_is_killed_takes_the_suite_along_and_the_next_one_goes_on(
    start: Start, tmp_path: Path
) -> None:
    server, folder = start(token_seconds="0.1"), tmp_path / "work"
    tree = str(Path(__file__).resolve().parents[2] / ".collections")
    command = [
        sys.executable,
        "-c",
        KILLED,
        tree,
        f"http://127.0.0.1:{server.port}",
        str(folder),
        f"{sys.prefix}/bin/tool-eval-bench",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = [process.stdout.readline() for _line in range(3)]
        process.kill()
    assert said[2].startswith("streamed-1: 3 of 15 scenarios"), said
    wait_until(lambda: not running(folder / "streamed-1"), 30, lambda: "the end of the suite")
    again = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    assert again[-1] == "True 15 "
    # Three were told before the kill; what had ended by then is not asked again, what was running is.
    assert 1 <= len(again) - 1 <= 15 - 3


def running(place: Path) -> list[int]:
    """The processes that work in a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "cwd") == str(place):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_an_owners_command(start: Start, test: Test, tmp_path: Path) -> None:
    script = tmp_path / "score.sh"
    ask = (
        """curl -sf -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models" | grep -q '"tiny"' || exit 7"""
    )
    script.write_text(f"#!/bin/sh\n{ask}\necho asking\necho 84\n")
    script.chmod(0o755)
    server = start()
    found = test(server, command=[str(script)], modes=["streamed"])
    assert (found["verdict"], found["record"]["score"], found["record"]["how"]["suite"]) == ("pass", 84, str(script))
    script.write_text("#!/bin/sh\necho sorry >&2\nexit 3\n")
    found = test(server, command=[str(script)])
    assert (found["verdict"], found["reason"]) == ("error", "score.sh ended with 3: sorry")
    found = test(server, command=["/no/such/command"])
    assert found["msg"] == "vllm_evaluation_command names /no/such/command, which is no program on the controller"


def test_nobody_else_gets_through_the_relay(start: Start, test: Test, tmp_path: Path) -> None:
    script = tmp_path / "stranger.sh"
    script.write_text('#!/bin/sh\ncurl -s -o /dev/null -w "%{http_code}\\n" "$OPENAI_BASE_URL/models"\n')
    script.chmod(0o755)
    found = test(start(), command=[str(script)], modes=["streamed"])
    assert found["record"]["score"] == 401


def test_what_is_missing_is_named_before_anything_starts(start: Start, test: Test, tmp_path: Path) -> None:
    server = start()
    for state in ("ready", "evaluated"):
        found = test(server, state=state, venv=str(tmp_path / "venv"))
        assert (found["failed"], found["verdict"]) == (True, "error")
        assert f"the suite tool-eval-bench 3.0.0 is not in {tmp_path}/venv on the controller" in found["msg"]
        assert "-e vllm_evaluation_install=true" in found["msg"]
        assert found["msg"].endswith("Nothing was started")
    assert "which is no folder" in test(server, packs=[str(tmp_path / "none")])["msg"]
    assert "vllm_evaluation_packs names none" in test(server, scenarios="packs")["msg"]
    for ready in (test(server, state="ready"), test(server, check_mode=True)):
        assert (ready.get("failed", False), ready["record"]) == (False, {})
    assert server.total("vllm:request_success_total") == 0, "nobody was asked"


def test_another_version_than_the_last_one_is_refused_before_anything_starts(start: Start, test: Test) -> None:
    server = start()
    few = {"only": FEW, "modes": ["whole"]}
    first = test(server, **few)["record"]
    old = {**first, "how": {**first["how"], "version": "2.9.1"}}
    asked = server.total("vllm:request_success_total")
    found = test(server, **few, records=[old])
    assert found["verdict"] == "error"
    assert "the suite's version (2.9.1 then, 3.0.0 now) differ. Measure what serves now in the new way" in found["msg"]
    assert server.total("vllm:request_success_total") == asked
    found = test(server, **few, records=[old], accept_incomparable=True)
    assert (found["verdict"], found["record"]["accepted"]) == ("pass", True)


def test_a_release_that_was_accepted_is_known(start: Start, test: Test) -> None:
    server = start()
    record = test(server, only=FEW, kind="gate", modes=["whole"])["record"]
    found = test(server, only=FEW, kind="gate", skip_known=True, records=[record], against="spark2")
    assert (found["verdict"], found["skipped_for"], found["record"]) == ("pass", record["id"], {})


def test_the_record_of_a_spare_host_is_judged_here_and_spares_the_gate_its_test(
    start: Start, test: Test, tmp_path: Path
) -> None:
    file = tmp_path / "evaluation-x.record.json"
    server, few = start(), {"only": FEW, "modes": ["whole"]}
    spare = test(server, **few, against="spark3")["record"]
    file.write_text(json.dumps(spare))
    asked = server.total("vllm:request_success_total")
    # The site has measured better ones, elsewhere and in another way.
    better = {**spare, "id": "before", "passes": [{**entry, "score": 99} for entry in spare["passes"]]}
    better["what"] = {**spare["what"], "fingerprint": "another release"}
    found = test(server, take=str(file), records=[better])
    assert (found["verdict"], found["record"]["accepted"], found["changed"]) == ("fail", False, True)
    assert "points below the last accepted 99" in found["reason"]
    found = test(server, take=str(file), records=[{**better, "how": {**better["how"], "trials": 3}}])
    assert found["msg"].startswith(f"vllm_evaluation_take is {file} on the controller: a score of ")
    assert "the number of trials (3 then, 1 now) differ" in found["msg"]
    assert found["msg"].endswith("Nothing was kept")

    kept = test(server, take=str(file))["record"]
    assert (kept["verdict"], kept["kind"], kept["against"], kept["id"]) == ("pass", "taken", "spark3", spare["id"])
    gate = test(server, kind="gate", skip_known=True, records=[kept])
    assert (gate["verdict"], gate["skipped_for"]) == ("pass", spare["id"])
    assert server.total("vllm:request_success_total") == asked, "nobody was asked again"
    assert f"record {spare['id']} is here already" in test(server, take=str(file), records=[kept])["msg"]
    file.write_text("[]")
    assert "it is no record of an evaluation" in test(server, take=str(file))["msg"]
    assert "it cannot be read: " in test(server, take=str(tmp_path / "none.json"))["msg"]


def test_another_program_of_that_name_is_not_taken_for_the_suite(tmp_path: Path) -> None:
    script = tmp_path / "tool-eval-bench"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    assert _evaluation_run.version_of(str(script)) == ""
    assert _evaluation_run.version_of(f"{sys.prefix}/bin/tool-eval-bench") == _evaluation_suite.VERSION
