# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration of the hold; with the helper itself it is tested in tests/proxy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import proxy_hold

NOW = 1000.0


def run(
    folder: Path, state: str, seconds: int | None = None, check_mode: bool = False, now: float = NOW
) -> dict[str, Any]:
    params = {
        "state": state,
        "seconds": seconds,
        "why": "20260101-000000-cutover",
        "file": str(folder / "state" / "hold.json"),
        "socket": str(folder / "nobody.sock"),
    }
    return proxy_hold.run(params, check_mode, now)


def test_armed_read_and_disarmed(tmp_path: Path) -> None:
    file = tmp_path / "state" / "hold.json"
    assert run(tmp_path, "read") == {"changed": False, "armed": False, "helper": False, "counts": {}}
    assert run(tmp_path, "disarmed")["changed"] is False
    assert run(tmp_path, "armed", 60) == {"changed": True, "armed": True, "helper": False, "counts": {}}
    assert json.loads(file.read_text()) == {"until": NOW + 60, "why": "20260101-000000-cutover"}
    assert file.stat().st_mode & 0o777 == 0o644, "the helper runs as another user"
    assert [path.name for path in file.parent.iterdir()] == ["hold.json"]
    assert run(tmp_path, "read", now=NOW + 59)["armed"] is True
    assert run(tmp_path, "read", now=NOW + 60)["armed"] is False
    assert run(tmp_path, "disarmed", now=NOW + 1)["changed"] is True
    assert not file.exists()


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "armed", 60, check_mode=True) == {
        "changed": True,
        "armed": True,
        "helper": False,
        "counts": {},
    }
    assert list(tmp_path.iterdir()) == []
    run(tmp_path, "armed", 60)
    assert run(tmp_path, "disarmed", check_mode=True)["armed"] is False
    assert run(tmp_path, "read")["armed"] is True


@pytest.mark.parametrize("seconds", [0, -1, 86401])
def test_a_time_out_of_range_is_refused(tmp_path: Path, seconds: int) -> None:
    with pytest.raises(ValueError, match=f"seconds is {seconds}, must be 1 to 86400"):
        run(tmp_path, "armed", seconds)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_declaration_is_none(tmp_path: Path) -> None:
    file = tmp_path / "state" / "hold.json"
    file.parent.mkdir()
    for text in ("", "[]", '{"until": null}', "\x00"):
        file.write_text(text)
        assert run(tmp_path, "read")["armed"] is False
