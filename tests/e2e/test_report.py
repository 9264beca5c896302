# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rollout leaves a report that agrees with what its clients saw; a failed one too, and any of them can be made again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20})
TOLD = {"vllm_report_enabled": True}

pytestmark = pytest.mark.rotating


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("reports"))


def report(folder: str) -> dict[str, Any]:
    """The newest report, which is the same beside the journal and on this machine."""
    rollout = Path(lab.on("proxy1", f"ls {observe.ROLLOUTS}/*.jsonl | sort | tail -n 1").strip()).stem
    for end in ("html", "report.json"):
        assert (
            lab.on("proxy1", f"cat {observe.ROLLOUTS}/{rollout}.{end}") == Path(folder, f"{rollout}.{end}").read_text()
        )
    found: dict[str, Any] = json.loads(Path(folder, f"{rollout}.report.json").read_text())
    return found


def test_a_restart_under_load(records: Path, folder: str) -> None:
    sent = len(observe.read(records))
    words = SITE.must_play("restart", variables={**TOLD, "vllm_report_dir": folder, "vllm_restart_hosts": ["spark1"]})
    found = report(folder)
    assert f"The report: {folder}/{found['rollout']}.html" in " ".join(words.split())
    assert (found["state"], found["path"], found["windows"]) == ("ok", "rolling", [])
    (spark1,) = [host for host in found["hosts"] if host["name"] == "spark1"]
    steps = [span["step"] for span in spark1["spans"]]
    assert [step for step in steps if step != "memory"] == ["drain", "stop", "load", "gate", "admit", "soak"]
    load = sum(span["seconds"] for span in spark1["spans"] if span["step"] == "load")
    assert spark1["phases"], "the engine's log was read"
    # The log says when the engine was ready, the load ends when that was seen.
    assert 0 < sum(phase["seconds"] for phase in spark1["phases"]) <= load + 1
    assert found["changes"][0]["words"] == "The same release again: nothing of the engine was changed."
    during = found["traffic"]["spans"]["during"]
    # The log's times are whole seconds, and the rollout's own proofs are in it.
    clients = [entry for entry in observe.read(records)[sent:] if during["from"] <= entry["end"] <= during["to"]]
    assert set(during["statuses"]) == {"200"}
    assert during["requests"] == pytest.approx(len(clients), rel=0.2, abs=20)
    assert during["copies"]["spark2"] > during["copies"].get("spark1", 0)
    assert {row["host"] for row in found["memory"] if row["when"] == "now"} == {"spark1"}


def test_a_failed_rollout_says_why_and_ends_as_it_would_without(records: Path, folder: str) -> None:
    fault = {"vllm_environment_overrides": {"STANDIN_REFUSE_MEMORY": "1"}}
    done = SITE.play("cutover", variables={**TOLD, **fault, "vllm_report_dir": "/proc/nowhere"})
    words = observe.in_words(done)
    assert done.returncode != 0
    assert "The report could not be made, or not be put where it belongs" in words
    assert "(it serves its previous release again)" in words
    # What the controller could not keep is on the site.
    SITE.must_play("report", variables={"vllm_report_dir": folder})
    found = report(folder)
    assert (found["state"], sorted(found["serving"])) == ("failed", ["spark1", "spark2"])
    assert "memory" in found["reason"]
    (spark1,) = [host for host in found["hosts"] if host["name"] == "spark1"]
    assert [span["step"] for span in spark1["spans"]].count("failed") == 1
    items = [item for change in found["changes"] for item in change["items"]]
    assert {"what": "environment", "name": "STANDIN_REFUSE_MEMORY", "before": "", "after": "1"} in items
    assert found["earlier"], "the rollouts before stand beside it"
    observe.must_serve(observe.HOSTS)
