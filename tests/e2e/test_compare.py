# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies and pair are measured with the same mix, with a cutover there and one back; the site ends as it began."""

from __future__ import annotations

import json
from pathlib import Path

import observe
import pytest
import site_of_lab as lab
import sweeping

pytestmark = pytest.mark.rotating

SITE = lab.Site("stand-in", {"vllm_gate_deadline_seconds": 20, "vllm_soak_seconds": 1})
WISH = {
    "vllm_tune_lengths": [{"input": 10, "output": 6, "weight": 3}, {"input": 40, "output": 12}],
    "vllm_compare_concurrency": [2],
    "vllm_tune_repeats": 1,
    "vllm_tune_least_prompts": 8,
    "vllm_tune_prompts_per_slot": 2,
    "vllm_report_enabled": True,
}
ROLLOUTS = "ls /var/lib/gb10-vllm/rollouts"


def test_what_cannot_be_measured_changes_no_topology(copies: None) -> None:
    sweeping.have_the_client(*observe.HOSTS)
    starts, rollouts = observe.starts(), lab.on("proxy1", ROLLOUTS)
    client = {**sweeping.client_for_the_stand_in(), "vllm_tune_image": "registry.example/none@sha256:" + "1" * 64}
    with observe.nothing_stopped():
        done = SITE.play("compare", variables={**WISH, **client})
    assert done.returncode
    assert "is not on this host, and nothing is fetched from a network" in observe.in_words(done)
    assert (observe.starts(), lab.on("proxy1", ROLLOUTS), observe.lock()) == (starts, rollouts, None)
    observe.must_serve(observe.HOSTS)


def test_both_are_measured_and_the_copies_are_back(copies: None, tmp_path: Path) -> None:
    sweeping.have_the_client(*observe.HOSTS)
    releases = observe.currents()
    folder = {"vllm_report_dir": str(tmp_path)}
    words = SITE.must_play("compare", variables={**WISH, **sweeping.client_for_the_stand_in(), **folder})
    print(words[words.rindex("compare | Show it") :].split("PLAY RECAP")[0])
    assert observe.currents() == releases, "byte for byte"
    observe.must_serve(observe.HOSTS)
    (data,) = tmp_path.glob("compare-*.json")
    found = json.loads(data.read_text())
    assert [(sweep["host"], sweep["engine"]["topology"]) for sweep in found["sweeps"]] == [
        ("spark1", "replicated"),
        ("spark1", "split"),
        ("spark2", "replicated"),
    ]
    (point,) = found["comparison"]["points"]
    assert (point["shape"], point["concurrency"]) == ("mix", 4)
    assert found["comparison"]["recommendation"] in ("replicated", "split")
    assert {len(sweep["lengths"]) for sweep in found["sweeps"]} == {2}
    assert (tmp_path / f"{data.stem}-versus-mix.svg").is_file()
