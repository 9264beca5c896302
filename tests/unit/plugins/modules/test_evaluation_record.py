# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of evaluations: written once, whole, and never again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import evaluation_record

RECORD: dict[str, Any] = {"id": "20261130-080000-spark1", "time": 2.0, "how": {}, "what": {}, "passes": []}


def test_keeps_and_reads(call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "evaluations"
    assert call(evaluation_record, folder=str(folder))["records"] == []
    assert call(evaluation_record, check_mode=True, folder=str(folder), record=RECORD)["changed"] is True
    assert not folder.exists()
    result = call(evaluation_record, folder=str(folder), record=RECORD)
    assert result["path"] == str(folder / "20261130-080000-spark1.json")
    call(evaluation_record, folder=str(folder), record={**RECORD, "id": "earlier", "time": 1.0})
    assert [record["id"] for record in call(evaluation_record, folder=str(folder))["records"]] == [
        "earlier",
        RECORD["id"],
    ]
    assert sorted(path.name for path in folder.iterdir()) == ["20261130-080000-spark1.json", "earlier.json"]


def test_never_writes_a_record_again(call: Any, tmp_path: Path) -> None:
    path = Path(call(evaluation_record, folder=str(tmp_path), record=RECORD)["path"])
    before = path.read_text()
    again = call(evaluation_record, folder=str(tmp_path), record={**RECORD, "score": 99})
    assert again["failed"] is True
    assert "is there already, and a record is never written again" in again["msg"]
    assert path.read_text() == before
    assert len(list(tmp_path.iterdir())) == 1, "nothing half written is left"


@pytest.mark.parametrize("name", ["", "../etc", "a/b", ".hidden", "x" * 120])
def test_refuses_what_is_no_name(call: Any, tmp_path: Path, name: str) -> None:
    result = call(evaluation_record, folder=str(tmp_path), record={**RECORD, "id": name})
    assert "is no id of a record" in result["msg"]


def test_names_files_that_are_no_records(call: Any, tmp_path: Path) -> None:
    (tmp_path / "cut.json").write_text('{"id": "cut"')
    (tmp_path / "other.json").write_text("[]")
    call(evaluation_record, folder=str(tmp_path), record=RECORD)
    result = call(evaluation_record, folder=str(tmp_path))
    assert (len(result["records"]), result["broken"]) == (1, ["cut.json", "other.json"])
