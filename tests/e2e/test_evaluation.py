# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new release is tested for how it calls tools before its first request; one that scores too low never gets one.

The suite is the real one, from the development tools; the engine is the stand-in, which can call tools badly on demand.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab
from callbacks import kill_after

pytestmark = pytest.mark.rotating

SITE = lab.Site(
    "stand-in",
    {
        "vllm_topology": "replicated",
        "vllm_gate_deadline_seconds": 20,
        "vllm_replicated_overrides": {"enable-auto-tool-choice": True, "tool-call-parser": "hermes"},
        "vllm_split_overrides": {"enable-auto-tool-choice": True, "tool-call-parser": "hermes"},
        "vllm_gate_tool_calls": True,
        "vllm_gate_tool_calls_scenarios": "short",
        "vllm_gate_tool_calls_seconds": 120,
        "vllm_evaluation_venv": sys.prefix,
        # Calls, an answer without one, and two turns; in seconds, because the story is about what follows from the score.
        "vllm_evaluation_only": ["TC-01", "TC-02", "TC-03", "TC-10", "TC-13"],
        "vllm_evaluation_thinking": False,
        "vllm_evaluation_request": {"max_tokens": 60},
        "vllm_evaluation_concurrency": 4,
    },
)
RECORDS = "/var/lib/gb10-vllm/evaluations"


def release(**environment: str) -> dict[str, Any]:
    """Variables of another release; the number makes one that behaves like the one before."""
    return {"vllm_environment_overrides": environment}


def kept() -> list[dict[str, Any]]:
    """The records on the first proxy, oldest first."""
    lines = lab.on(
        "proxy1", f"for record in $(ls {RECORDS}/*.json | sort); do tr -d '\\n' < $record; echo; done"
    ).splitlines()
    return [json.loads(line) for line in lines]


def evaluated() -> list[dict[str, Any]]:
    return [event for event in lab.journal() if event["step"] == "evaluated"]


def order(*steps: tuple[str, str]) -> list[int]:
    """The places of these steps of a host in the newest journal."""
    seen = [(event["step"], event["host"]) for event in lab.journal()]
    return [seen.index(step) for step in steps]


def test_the_first_copy_of_a_new_release_is_tested_before_it_is_admitted(records: Path) -> None:
    sent = len(observe.read(records))
    SITE.must_play("cutover", variables=release(STORY="1"))
    places = order(("started", "spark1"), ("evaluated", "spark1"), ("admitted", "spark1"), ("withdrawn", "spark2"))
    assert places == sorted(places)
    first, second = evaluated()
    assert (first["host"], first["result"], first["verdict"]) == ("spark1", "ok", "pass")
    assert first["seconds"] > 0
    assert (second["host"], second["seconds"], second["record"]) == ("spark2", 0, first["record"]), (
        "the same release is known"
    )
    newest = kept()[-1]
    assert (newest["id"], newest["kind"], newest["accepted"]) == (first["record"], "gate", True)
    assert newest["what"]["image"] == lab.describe()["images"]["stand-in"]
    assert observe.failures(records, sent) == []
    observe.must_serve(observe.HOSTS)


def test_a_release_that_scores_too_low_is_never_admitted(records: Path, tmp_path: Path) -> None:
    good, sent, accepted = observe.current("spark1"), len(observe.read(records)), [r for r in kept() if r["accepted"]]
    told = {"vllm_report_enabled": True, "vllm_report_dir": str(tmp_path)}
    with observe.untouched("spark2"):
        done = SITE.play("cutover", variables={**release(STORY="1", STANDIN_TOOL_CALLS="never"), **told})
    words = observe.in_words(done)
    assert done.returncode != 0
    why = f"below the last accepted {accepted[-1]['score']:g}; at most 3 points lower are allowed"
    assert "the tool-call test of spark1 ended with the verdict fail: a score of " in words
    assert why in words
    assert "(it serves its previous release again)" in words
    # Of this release nothing was ever in front of clients; what was admitted is the release before.
    admitted = [event["to"] for event in lab.journal() if event["step"] == "admitted"]
    assert admitted == [good]
    assert observe.current("spark1") == good
    assert observe.failures(records, sent) == []
    assert observe.lock() is None
    assert (kept()[-1]["verdict"], kept()[-1]["accepted"]) == ("fail", False)
    (path,) = tmp_path.glob("*.report.json")
    report = json.loads(path.read_text())
    (spark1,) = [host for host in report["hosts"] if host["name"] == "spark1"]
    assert why in report["reason"]
    assert ("test", "failed") in [(span["step"], span["result"]) for span in spark1["spans"]]
    observe.must_serve(observe.HOSTS)


def test_a_topology_that_scores_too_low_gives_way_to_the_one_before(records: Path) -> None:
    before = observe.currents()
    variables = {"vllm_topology": "split", **release(STORY="1", STANDIN_TOOL_CALLS="text")}
    done = SITE.play("cutover", variables=variables)
    words = observe.in_words(done)
    assert done.returncode != 0
    assert "had a tool call as text" in words
    assert "the release before was brought back and serves from spark1 and spark2" in words
    assert observe.currents() == before
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"vllm_evaluation_venv": "/nowhere"}, "the suite tool-eval-bench 3.0.0 is not in /nowhere on the controller"),
        ({"vllm_evaluation_trials": 2}, "the number of trials (1 then, 2 now) differ"),
    ],
    ids=["no suite", "measured in another way"],
)
def test_what_could_not_be_judged_is_refused_before_anything_stops(
    records: Path, variables: dict[str, Any], said: str
) -> None:
    with observe.nothing_stopped():
        done = SITE.play("cutover", variables={**release(STORY="2"), **variables})
    assert done.returncode != 0
    assert said in observe.in_words(done)


@pytest.mark.parametrize("against", ["spark2", "proxy"])
def test_what_serves_is_tested_beside_its_clients(records: Path, against: str) -> None:
    sent = len(observe.read(records))
    with observe.nothing_stopped():
        words = SITE.must_play("evaluate", variables={"vllm_evaluation_against": against})
    record = kept()[-1]
    assert (record["against"], record["kind"], record["verdict"]) == (against, "evaluate", "pass")
    assert f"{RECORDS}/{record['id']}.json on proxy1" in " ".join(words.split())
    assert record["what"]["image"] == lab.describe()["images"]["stand-in"]
    assert observe.failures(records, sent) == []


def processes(program: bytes) -> list[int]:
    """Those of this story that run it, the oldest ancestor first."""
    found = []
    for process in kill_after.descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if program in Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" "):
                found.append(process)
    return found


def killed_within_the_test(variables: dict[str, Any]) -> None:
    """A cutover whose controller dies while the suite tests spark1, which has started and is not admitted; spark2 serves on."""
    began = time.time()

    def tested() -> bool:
        return observe.happened("started", "spark1", began) and bool(processes(b"bin/tool-eval-bench"))

    with observe.untouched("spark2"):
        with lab.meanwhile(SITE.play, "cutover", variables=variables) as run:
            lab.wait_within(run, tested, "the suite runs")
            kill_after.power_off(processes(b"playbooks/cutover.yml")[0])
        assert run.result().returncode == -9
        observe.must_serve({"spark2"})
        assert evaluated() == []


def test_a_controller_that_is_killed_within_the_test_leaves_the_others_serving_and_resume_goes_on(
    records: Path,
) -> None:
    sent = len(observe.read(records))
    # Slow enough to be met in the middle.
    killed_within_the_test(release(STORY="3", STANDIN_TOKEN_SECONDS="0.1"))
    SITE.must_play("resume")
    assert [(event["host"], event["verdict"]) for event in evaluated()] == [("spark1", "pass"), ("spark2", "pass")]
    assert kept()[-1]["kind"] == "gate"
    assert observe.failures(records, sent) == []
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


def test_what_was_killed_within_the_test_of_a_bad_release_gives_way_to_the_one_before(records: Path) -> None:
    sent, good = len(observe.read(records)), observe.current("spark1")
    killed_within_the_test(release(STORY="4", STANDIN_TOKEN_SECONDS="0.1", STANDIN_TOOL_CALLS="text"))
    bad = observe.current("spark1")
    with observe.untouched("spark2"):
        done = SITE.play("resume")
    words = observe.in_words(done)
    assert done.returncode != 0
    assert "had a tool call as text" in words
    assert "(it serves its previous release again)" in words
    assert bad not in [event["to"] for event in lab.journal() if event["step"] == "admitted"]
    assert observe.current("spark1") == good != bad
    assert observe.failures(records, sent) == []
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)


def test_a_release_that_a_spare_host_has_tested_is_not_tested_in_the_rollout(records: Path, tmp_path: Path) -> None:
    told = {"vllm_report_enabled": True, "vllm_report_dir": str(tmp_path)}
    SITE.must_play("cutover", variables=release(STORY="1"))
    SITE.must_play("evaluate", variables={"vllm_evaluation_against": "spark1", **told})
    (file,) = tmp_path.glob("*.record.json")
    spare = json.loads(file.read_text())
    # The hosts of the lab are few: what this site knows of the release so far is another site's from here on.
    lab.on("proxy1", f"mv {RECORDS} {RECORDS}-of-the-spare-host")
    SITE.must_play("cutover", variables=release(STORY="2"))
    with observe.nothing_stopped():
        SITE.must_play("evaluate", variables={"vllm_evaluation_take": str(file)})
    (taken,) = (record for record in kept() if record["id"] == spare["id"])
    assert (taken["kind"], taken["accepted"]) == ("taken", True)
    SITE.must_play("cutover", variables=release(STORY="1"))
    assert [(event["record"], event["seconds"]) for event in evaluated()] == [(spare["id"], 0)] * 2
    again = SITE.play("evaluate", variables={"vllm_evaluation_take": str(file)})
    assert again.returncode != 0
    assert f"record {spare['id']} is here already. Nothing was kept" in observe.in_words(again)
