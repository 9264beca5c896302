# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _report_changes
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import report_samples as samples

BEFORE = samples.record("replicated", "spark1")


def changed(**more: Any) -> dict[str, Any]:
    """The same release with something else in it."""
    return {**BEFORE, "id": "replicated-1", **more}


def with_argument(*line: str) -> dict[str, Any]:
    kept = [words for words in BEFORE["command"] if words[0] != line[0]]
    return changed(command=[*kept, list(line)])


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (with_argument("--gpu-memory-utilization", "0.8"), "argument --gpu-memory-utilization: 0.74 became 0.8."),
        (with_argument("--enforce-eager"), "argument --enforce-eager: added, on."),
        (changed(command=BEFORE["command"][:-1]), "argument --max-num-seqs: taken away, was 24."),
        (changed(environment={**BEFORE["environment"], "A": "1"}), "environment A: added, 1."),
        (changed(revision="v2"), "revision of the model: added, v2."),
        (changed(volumes=["/a:/b"]), "volume: added, /a:/b."),
        (changed(budgets={"expected_load": 500}), "time budget expected_load: 400 became 500."),
        (changed(model="x", revision="y"), "Changed: model, revision of the model."),
        (changed(model="x", environment={}), "Changed: model, 3 environment variables."),
        (changed(rank=1), "The releases differ only in what says which host this is."),
    ],
)
def test_in_words(after: dict[str, Any], words: str) -> None:
    records = {BEFORE["id"]: BEFORE, after["id"]: after}
    assert _report_changes.of_host(BEFORE["id"], after["id"], records)["words"] == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("", "b", "The first release on this host."),
        ("a", "a", "The same release again: nothing of the engine was changed."),
        ("a", "b", "What changed is not known: the release before and the one after could not be read here."),
        ("legacy", "b", "What ran here before was an engine that this collection has not set up."),
        ("a", "legacy", "What runs here now is an engine that this collection has not set up."),
        ("a", "", "The journal does not say which release was wanted here."),
    ],
)
def test_without_two_releases(before: str, after: str, words: str) -> None:
    assert _report_changes.of_host(before, after, {})["words"] == words


def test_hosts_with_the_same_change_stand_together() -> None:
    same = {"before": "a", "after": "b", "items": [], "words": "x"}
    groups = _report_changes.grouped(
        [("one", same), ("two", {**same, "before": "c"}), ("three", {**same, "words": "y"})]
    )
    assert [group["hosts"] for group in groups] == [["one", "two"], ["three"]]
    assert groups[0]["releases"][1] == {"host": "two", "before": "c", "after": "b"}
