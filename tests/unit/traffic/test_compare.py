# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.e2e.traffic import compare


def record(status: Any = 200, complete: bool | None = None) -> dict[str, Any]:
    return {"status": status, "complete": status == 200 if complete is None else complete}


GOOD, CUT = record(), record(complete=False)


@pytest.mark.parametrize(
    ("requests", "streams", "expected"),
    [
        ([], [], (0, 0, "-", 0, 0)),
        ([GOOD] * 3, [GOOD], (3, 0, "-", 1, 0)),
        ([GOOD, record(503), record(503), record("connection")], [CUT], (4, 3, "503: 2, connection: 1", 1, 1)),
        ([CUT], [GOOD, record("broken")], (1, 1, "incomplete: 1", 2, 1)),
    ],
)
def test_row(requests: list[dict[str, Any]], streams: list[dict[str, Any]], expected: tuple[Any, ...]) -> None:
    found = compare.row(requests, streams, 12.34)
    assert found["seconds"] == 12.3
    assert tuple(found[key] for key in ("requests", "failed", "how", "streams", "cut")) == expected


def test_table_has_a_column_for_each_way() -> None:
    ours, theirs = compare.row([GOOD], [GOOD], 5), compare.row([record(502)], [CUT], 60)
    lines = compare.table({"ours": ours, "by hand": theirs}).splitlines()
    assert lines[0].split() == ["ours", "by", "hand"]
    assert lines[3].split() == ["of", "them", "failed", "0", "1"]
    assert len(lines) == 1 + len(compare.WORDS)


def test_table_of_other_figures() -> None:
    assert compare.table({"a": {"x": 1}}, {"x": "cost"}).splitlines() == ["      a", "cost  1"]
