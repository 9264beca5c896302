# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout is told of a host: its releases, and whether an engine still loads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _engine_look

# Long beside the time from the collection of the tests to their turn.
BUDGETS = {"budgets": {"gate_deadline": 10000}}


def unit(active: str = "active", sub: str = "running", seconds_ago: float = 10) -> dict[str, str]:
    began = int((time.monotonic() - seconds_ago) * 1e6)
    return {"ActiveState": active, "SubState": sub, "ActiveEnterTimestampMonotonic": str(began)}


@pytest.mark.parametrize(
    ("state", "healthy", "current", "loading"),
    [
        (unit(), False, BUDGETS, True),
        (unit(), True, BUDGETS, False),
        (unit(seconds_ago=10001), False, BUDGETS, False),
        (unit("activating", "start-pre"), False, BUDGETS, True),
        (unit("activating", "auto-restart"), False, BUDGETS, False),
        (unit("inactive", "dead"), False, BUDGETS, False),
        (unit("deactivating", "stop"), False, BUDGETS, False),
        (unit(), False, None, False),
    ],
)
def test_loading(state: dict[str, str], healthy: bool, current: dict[str, Any] | None, loading: bool) -> None:
    assert _engine_look.is_loading(state, healthy, current) is loading


def test_records_of_whole_releases(tmp_path: Path) -> None:
    for name, files in {
        "a": ("release.json", "start"),
        "b": ("release.json",),
        ".staging-c": ("release.json", "start"),
    }.items():
        folder = tmp_path / "releases" / name
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text(json.dumps({"id": name, "topology": "split", "environment": {"LONG": "x"}}))
    assert _engine_look.records(str(tmp_path)) == {"a": {"id": "a", "topology": "split"}}
    assert _engine_look.records(str(tmp_path / "none")) == {}
