# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the programs beside the node exporter say of a log, a journal and an engine host."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import (
    _engine_figures,
    _exporter,
    _exposition,
    _proxy_counts,
    _rollout_figures,
)
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import parse
from ansible_collections.gb10.vllm.plugins.module_utils._programs import proxy_exporter


def said(families: list[_exposition.Family]) -> dict[str, float]:
    """Series and values, as Prometheus reads them, which our own reader must be able to read as well."""
    text = _exposition.render(families)
    parse(text, {family.name for family in families})
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, value in rows}


def entry(**more: Any) -> str:
    record = {
        "method": "POST",
        "path": "/v1/chat/completions",
        "status": 200,
        "copy": "spark1",
        "upstream_status": "200",
    }
    return json.dumps({**record, "first_byte_seconds": "0.200", "completed": "OK", **more})


def test_requests_are_counted_by_copy_and_status() -> None:
    counts = _proxy_counts.Counts()
    for line in [
        entry(),
        entry(first_byte_seconds="0.7"),
        entry(copy="spark2", first_byte_seconds="700"),
        entry(status=503, copy="", upstream_status="502", first_byte_seconds="-"),
        entry(path="/health"),
        entry(method="GET", path="/v1/models"),
        "no record",
        '{"status": 200}',
    ]:
        counts.add(line)
    series = said(counts.families())
    assert series['gb10_vllm_proxy_requests_total{copy="spark1",status="200"}'] == 3
    assert series['gb10_vllm_proxy_requests_total{copy="spark2",status="200"}'] == 1
    assert series['gb10_vllm_proxy_requests_total{copy="none",status="503"}'] == 1
    assert series["gb10_vllm_proxy_unreadable_lines_total"] == 2
    assert series['gb10_vllm_proxy_first_byte_seconds_bucket{copy="spark1",le="0.25"}'] == 1
    assert series['gb10_vllm_proxy_first_byte_seconds_bucket{copy="spark1",le="1.0"}'] == 2
    assert series['gb10_vllm_proxy_first_byte_seconds_count{copy="spark1"}'] == 2
    assert series['gb10_vllm_proxy_first_byte_seconds_sum{copy="spark1"}'] == pytest.approx(0.9)
    assert series['gb10_vllm_proxy_first_byte_seconds_bucket{copy="spark2",le="600.0"}'] == 0
    assert series['gb10_vllm_proxy_first_byte_seconds_bucket{copy="spark2",le="+Inf"}'] == 1
    assert 'gb10_vllm_proxy_cut_answers_total{copy="none"}' not in series


@pytest.mark.parametrize(
    ("line", "cut", "retried", "wait"),
    [
        (entry(completed=""), 1, 0, 0.2),
        (entry(completed="", status=499), 0, 0, 0.2),
        (entry(upstream_status="503, 200", first_byte_seconds="0.1, 0.3"), 0, 1, 0.4),
        # From the hold to the inner server: the client has waited for both.
        (entry(upstream_status="502 : 200 : 200", first_byte_seconds="- : 3.0 : 0.5"), 0, 1, 3.5),
    ],
)
def test_what_an_answer_was_like(line: str, cut: int, retried: int, wait: float) -> None:
    counts = _proxy_counts.Counts()
    counts.add(line)
    series = said(counts.families())
    assert series['gb10_vllm_proxy_cut_answers_total{copy="spark1"}'] == cut
    assert series['gb10_vllm_proxy_retried_total{copy="spark1"}'] == retried
    assert series['gb10_vllm_proxy_first_byte_seconds_sum{copy="spark1"}'] == pytest.approx(wait)


def test_a_log_is_followed_through_its_rotation(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("old\n")
    tail = proxy_exporter.Tail(str(log))
    assert tail.lines() == []
    with log.open("a") as stream:
        stream.write("one\ntw")
    assert tail.lines() == ["one"]
    with log.open("a") as stream:
        stream.write("o\n")
        os.rename(log, tmp_path / "access.log.1")
        stream.write("late\n")
    assert tail.lines() == ["two", "late"]
    log.write_text("new\n")
    assert tail.lines() == ["new"]
    log.write_text("")
    assert tail.lines() == []
    with log.open("a") as stream:
        stream.write("after it was emptied\n")
    assert tail.lines() == ["after it was emptied"]


def test_a_log_that_comes_later(tmp_path: Path) -> None:
    tail = proxy_exporter.Tail(str(tmp_path / "access.log"))
    assert tail.lines() == []
    (tmp_path / "access.log").write_text("first\n")
    assert tail.lines() == ["first"]


BEGIN = {"step": "begin", "time": 100.0, "verb": "cutover", "path": "switch", "topology": "split"}
END = {"step": "end", "time": 200.0, "result": "ok"}
LOCK = {"rollout": "r1", "since": 100.0, "seen": 150.0, "quiet_seconds": 600}


@pytest.mark.parametrize(
    ("events", "lock", "is_open", "halfway", "state"),
    [
        ([BEGIN], LOCK, 1, 0, "open"),
        ([BEGIN, END], None, 0, 0, "ok"),
        ([BEGIN, {**END, "result": "failed"}], None, 0, 0, "failed"),
        ([BEGIN], None, 0, 1, "left"),
        ([BEGIN, {"step": "unlocked"}], None, 0, 1, "left"),
        # Another one has taken the lock, and has not written anything yet.
        ([BEGIN], {**LOCK, "rollout": "r2"}, 1, 1, "left"),
    ],
)
def test_where_a_rollout_stands(
    events: list[dict[str, Any]], lock: dict[str, Any] | None, is_open: int, halfway: int, state: str
) -> None:
    series = said(_rollout_figures.families("r1", events, lock, 3))
    assert series["gb10_vllm_rollout_open"] == is_open
    assert series["gb10_vllm_rollout_left_halfway"] == halfway
    about = 'verb="cutover",path="switch",topology="split"'
    assert series[f'gb10_vllm_rollout_info{{rollout="r1",state="{state}",{about}}}'] == 1
    assert ("gb10_vllm_rollout_seen_timestamp_seconds" in series) == bool(lock)
    assert series["gb10_vllm_rollouts"] == 3


def test_a_site_without_a_rollout() -> None:
    assert said(_rollout_figures.families("", [], None, 0)) == {
        "gb10_vllm_rollout_open": 0,
        "gb10_vllm_rollout_left_halfway": 0,
        "gb10_vllm_rollouts": 0,
    }


RECORD = {"topology": "split", "rank": 0, "served_model_name": 'a "m"', "digest": "0123456789abcdef"}
KEPT = [
    {"starts": [{"release": "r", "began": 1, "concurrency": 9}, {"release": "r", "began": 3, "concurrency": 4.1}]},
    {"starts": [{"release": "other", "began": 7, "concurrency": 1}, {"release": "r", "began": 2}]},
    {},
]


def test_an_engine_host() -> None:
    start = _engine_figures.newest_start(KEPT, "r")
    unit = {"ActiveState": "active", "NRestarts": "2"}
    series = said(_engine_figures.families("spark1", "r", RECORD, unit, start, "ada"))
    assert series['gb10_vllm_copy_expected{copy="spark1"}'] == 1
    assert series['gb10_vllm_unit_restarts{copy="spark1"}'] == 2
    assert series['gb10_vllm_kv_requests{copy="spark1"}'] == 4.1
    assert series['gb10_vllm_paused{copy="spark1"}'] == 1
    # Nothing was planned: that is not a plan of 0.
    assert 'gb10_vllm_kv_planned_requests{copy="spark1"}' not in series
    name = 'release="r",image="0123456789ab",topology="split",rank="0",served_model_name="a \\"m\\""'
    assert series[f'gb10_vllm_release_info{{copy="spark1",{name}}}'] == 1


@pytest.mark.parametrize("record", [None, {**RECORD, "rank": 1}])
def test_no_copy_is_expected_without_a_release_and_behind_rank_0(record: dict[str, Any] | None) -> None:
    series = said(_engine_figures.families("spark2", "r" if record else None, record, {}, {}, ""))
    assert series['gb10_vllm_copy_expected{copy="spark2"}'] == 0
    assert series['gb10_vllm_unit_active{copy="spark2"}'] == 0
    assert 'gb10_vllm_unit_restarts{copy="spark2"}' not in series


def test_a_look_that_fails_is_said_once_and_leaves_no_old_figures(capsys: pytest.CaptureFixture[str]) -> None:
    broken = True

    def look() -> list[_exposition.Family]:
        if broken:
            raise OSError("no such host")
        return [_exposition.gauge("gb10_vllm_x", "X.", 1)]

    exporter = _exporter.Exporter("proxy", look)
    for now in (1.5, 2.5):
        page = exporter.page(now)
        assert f'gb10_vllm_exporter_timestamp_seconds{{exporter="proxy"}} {now}' in page
        assert 'gb10_vllm_exporter_problem{exporter="proxy"} 1' in page
        assert "gb10_vllm_x" not in page
    broken = False
    assert "gb10_vllm_x 1" in exporter.page(3)
    assert capsys.readouterr().err.splitlines() == ["cannot look: OSError: no such host", "can look again"]
