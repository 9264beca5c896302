# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards are what their source says, and ask for nothing that nobody records. Whether the answers are empty, a story tells."""

from __future__ import annotations

import json
import re
from typing import Any

import make_dashboards
import promtool
import pytest

FILES = make_dashboards.texts()
OWN = re.compile(r"gb10_vllm:\w+(?::\w+)?")


@pytest.fixture(params=sorted(FILES))
def dashboard(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(json.loads((make_dashboards.FOLDER / request.param).read_text()))


def test_files_are_written_from_their_source() -> None:
    found = {path.name: path.read_text() for path in make_dashboards.FOLDER.glob("*")}
    assert found == FILES, "run tests/monitoring/make_dashboards.py"


def test_every_rule_that_is_asked_for_exists(dashboard: dict[str, Any]) -> None:
    thresholds = [rule["record"] for group in promtool.thresholds(["s"])["groups"] for rule in group["rules"]]
    asked = {name for _title, query in make_dashboards.queries(dashboard) for name in OWN.findall(query)}
    assert asked
    assert asked <= {*promtool.records(), *thresholds}


def test_every_query_is_of_one_site(dashboard: dict[str, Any]) -> None:
    for title, query in make_dashboards.queries(dashboard):
        assert 'site="$site"' in query, title


def test_every_panel_has_a_place_of_its_own_and_says_what_it_shows(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        assert panel["description"].endswith("."), panel["title"]
        where = panel["gridPos"]
        assert where["x"] + where["w"] <= 24, panel["title"]
        for x in range(where["x"], where["x"] + where["w"]):
            for y in range(where["y"], where["y"] + where["h"]):
                assert taken.setdefault((x, y), panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
