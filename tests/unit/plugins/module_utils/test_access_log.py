# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _access_log

AT = 1_780_000_000


def line(at: float, **more: Any) -> bytes:
    when = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    entry = {"time": when, "path": "/v1/chat/completions", "status": 200, "seconds": 2.0, "copy": "spark1"}
    return json.dumps({**entry, "first_byte_seconds": "0.3", **more}).encode() + b"\n"


def count(lines: list[bytes], *spans: tuple[str, float, float]) -> dict[str, Any]:
    return _access_log.tally(lines, spans or (("all", AT, AT + 100),), 60)


def test_by_status_and_copy_in_spans() -> None:
    lines = [line(AT + 1), line(AT + 2, copy="spark2"), line(AT + 3, status=503, copy=""), line(AT + 60)]
    found = count(lines, ("first", AT, AT + 10), ("second", AT + 50, AT + 100))
    assert found["spans"]["first"]["statuses"] == {"200": 2, "503": 1}
    assert found["spans"]["first"]["copies"] == {"spark1": 1, "spark2": 1}
    assert found["spans"]["second"]["requests"] == 1
    assert (sum(found["series"]["answered"]), sum(found["series"]["failed"])) == (3, 1)


def test_what_does_not_count() -> None:
    lines = [
        line(AT + 1, path="/health"),
        line(AT - 1),
        line(AT + 101),
        b"\n",
        b"[]\n",
        b'{"time": 3}\n',
        b"{",
        line(AT + 5),
    ]
    found = count(lines)
    assert (found["spans"]["all"]["requests"], found["unreadable"]) == (1, 4)


def test_no_time_at_all_is_a_span_too() -> None:
    found = count([line(AT)], ("moment", AT, AT))
    assert found["spans"]["moment"]["requests"] == 1


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.4, 3.0, 900.0])
def test_a_class_is_within_five_percent(seconds: float) -> None:
    found = _access_log.duration(_access_log.duration_class(seconds))
    assert found == pytest.approx(max(seconds, 0.001), rel=0.05)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.3", 0.3), ("-, 0.2", 0.2), ("0.1, -", 0.1), ("0.1 : 0.4", 0.4), ("-", None), ("", None), (None, None)],
)
def test_durations_of_several_attempts(text: Any, seconds: float | None) -> None:
    assert _access_log.seconds_of(text) == seconds


def test_a_long_log_is_not_read_from_its_beginning(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(b"".join(line(AT + number) for number in range(10_000)))
    found = list(_access_log.Log(str(log), AT + 9_990, 64_000_000))
    assert len(found) < 1_000
    assert found[-1] == line(AT + 9_999)
    assert line(AT + 9_990) in found


def test_rotated_logs_belong_to_it_and_older_ones_do_not(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_bytes(line(AT + 30))
    (tmp_path / "access.log.1").write_bytes(line(AT + 20))
    with gzip.open(tmp_path / "access.log.2.gz", "wb") as packed:
        packed.write(line(AT - 5000))
    os.utime(tmp_path / "access.log.2.gz", (AT - 5000, AT - 5000))
    assert list(_access_log.Log(str(log), AT, 64_000_000)) == [line(AT + 20), line(AT + 30)]


def test_no_log_has_no_lines_and_a_large_one_is_cut(tmp_path: Path) -> None:
    assert list(_access_log.Log(str(tmp_path / "none"), AT, 1)) == []
    (tmp_path / "log").write_bytes(line(AT) * 10)
    log = _access_log.Log(str(tmp_path / "log"), AT, 3 * len(line(AT)))
    assert len(list(log)) == 3
    assert log.cut


def test_a_count_ends_with_its_time() -> None:
    found = _access_log.tally([line(AT)] * 5000, [("all", AT, AT + 1)], -1)
    assert found["cut"]
    assert found["spans"]["all"]["requests"] < 5000
