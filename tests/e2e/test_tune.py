# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One copy is measured with vLLM's own bench client while the other one serves: missing pieces, a killed controller, the way back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab
import sweeping

pytestmark = pytest.mark.rotating

SITE = lab.Site(
    "stand-in",
    {
        "vllm_topology": "replicated",
        "vllm_gate_deadline_seconds": 20,
        "vllm_soak_seconds": 1,
        "vllm_replicated_overrides": {"max-num-seqs": 8},
    },
)
# Two runs, each of which takes as long as the client takes to start.
WISH = {
    "vllm_tune_concurrency": [2, 4, 16],
    "vllm_tune_shapes": {"short": {"input": 16, "output": 8}},
    "vllm_tune_repeats": 1,
    "vllm_tune_least_prompts": 8,
    "vllm_tune_prompts_per_slot": 3,
}


def wish(**more: Any) -> dict[str, Any]:
    return {**WISH, **sweeping.client_for_the_stand_in(), **more}


def test_a_missing_client_is_named_and_nothing_is_withdrawn(records: Path) -> None:
    since, starts = lab.on("proxy1", "nginx -T 2>/dev/null | md5sum"), observe.starts()
    done = SITE.play("tune", variables=wish(vllm_tune_image="registry.example/none@sha256:" + "1" * 64))
    assert done.returncode
    assert "is not on this host, and nothing is fetched from a network" in observe.in_words(done)
    assert lab.on("proxy1", "nginx -T 2>/dev/null | md5sum") == since
    assert (observe.starts(), observe.lock()) == (starts, None)
    assert sweeping.runs("spark2") == {}
    observe.must_serve(observe.HOSTS)


def test_the_only_copy_is_not_withdrawn(records: Path) -> None:
    sent = len(observe.read(records))
    done = SITE.play("tune", variables=wish(vllm_tune_host="spark9"))
    assert "vllm_tune_host is spark9, which is not in the group engines" in observe.in_words(done)
    assert observe.failures(records, sent) == []


def test_a_killed_controller_leaves_the_other_copy_serving(records: Path) -> None:
    sweeping.have_the_client("spark2")
    sent = len(observe.read(records))
    sweeping.killed(SITE, "tune", wish(), lambda: len(sweeping.runs("spark2")) == 1, 240)
    assert observe.admitted() == {"spark1"}
    assert "-tune" in str(observe.lock())
    observe.must_serve(["spark1"])
    assert observe.failures(records, sent) == []


def test_unlock_brings_it_back_through_the_gate(records: Path) -> None:
    sent = len(observe.read(records))
    words = SITE.must_play("unlock")
    assert "Released the lock of rollout" in words
    assert observe.lock() is None
    assert lab.on("spark2", "ls /var/lib/gb10-vllm/pause/rollout.json 2>/dev/null || true") == ""
    assert lab.on("proxy1", f"ls {sweeping.NOTE} 2>/dev/null || true") == ""
    observe.must_serve(observe.HOSTS)
    assert observe.failures(records, sent) == []


def test_the_next_run_goes_on_and_repeats_nothing(records: Path, tmp_path: Path) -> None:
    sent, before = len(observe.read(records)), sweeping.runs("spark2")
    report = {"vllm_report_enabled": True, "vllm_report_dir": str(tmp_path)}
    words = SITE.must_play("tune", variables=wish(**report))
    print(words[words.index("say | Show the table") :].split("TASK")[0])
    after = sweeping.runs("spark2")
    assert len(before) >= 1
    assert {name: after[name] for name in before} == before, "what was measured stays"
    assert sorted(run["concurrency"] for run in after.values()) == [2, 4]
    assert {run["failed"] for run in after.values()} == {0}
    assert "so 16 is left out" in " ".join(words.split())
    assert observe.failures(records, sent) == []
    assert observe.lock() is None
    observe.must_serve(observe.HOSTS)
    (page,) = tmp_path.glob("tune-spark2-*.html")
    (data,) = tmp_path.glob("tune-spark2-*.json")
    assert "still rising" in page.read_text()
    assert json.loads(data.read_text())["sweeps"][0]["complete"]
    assert len(list(tmp_path.glob("*.svg"))) == 3


def test_a_complete_sweep_is_only_read(records: Path) -> None:
    before, workers = sweeping.runs("spark2"), observe.nginx_workers()
    words = SITE.must_play("tune", variables=wish())
    assert "0 runs are to be measured and 2 are there" in " ".join(words.split())
    assert (sweeping.runs("spark2"), observe.nginx_workers()) == (before, workers), "nobody was withdrawn"


def test_the_proposal_is_written_and_brought_when_asked(records: Path, tmp_path: Path) -> None:
    inventory = tmp_path / "site"
    shutil.copytree(lab.ROOT / "inventories/lab", inventory)
    site = lab.Site("stand-in", SITE.variables, str(inventory))
    spark1 = observe.start_of("spark1")
    site.must_play("tune", variables=wish(vllm_tune_write=True))
    assert (inventory / "host_vars/spark2.yml").read_text() == "---\nvllm_replicated_max_num_seqs: 4\n"
    command = [word for line in observe.record("spark2")["command"] for word in line]
    assert command[command.index("--max-num-seqs") + 1] == "4"
    assert observe.start_of("spark1") == spark1, "only the host that was measured was restarted"
    observe.must_serve(observe.HOSTS)
