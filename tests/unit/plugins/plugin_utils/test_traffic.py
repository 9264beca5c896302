# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the copies do, for people: the window where it says enough, the engine's life where not, and never a made-up figure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter.metrics_sum import metrics_sum
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.reading import read
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.span import span
from ansible_collections.gb10.vllm.plugins.plugin_utils._traffic import UNKNOWN, cells, notes, traffic
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.metrics.pages import Process, one


def result(
    process: Process, requests: int = 0, seconds: float = 2.0, where: str = "here", **life: Any
) -> dict[str, Any]:
    """What the module would have registered if so many requests ended between its two looks."""
    who = {"version": process.version, "instance": where, "listener": where}

    def look(at: float) -> dict[str, Any]:
        found = read(process.page())
        assert found is not None
        return {"at": at, **found, **who, "born": None}

    for _request in range(life.get("before", 0)):
        process.engines[0].serve(100, 21, first=0.7, each=0.04)
    before = look(0.0)
    for _request in range(requests):
        process.engines[0].serve(100, 21, first=0.03, each=0.02)
    if process.engines[0].drafted and requests:
        process.engines[0].drafted = (200, 800, 700)
    after = look(seconds)
    return {"state": "read", "reason": "", "reading": after, "window": span(before, after), "changed": False}


def lines(**results: Any) -> list[list[str]]:
    """A row for each copy and one for the sum, then the notes."""
    made = traffic(results)
    rows = [[name, *cells(copy)] for name, copy in made["copies"].items()]
    rows += [[f"{made['sum']['read']} of {made['sum']['copies']}", *cells(made["sum"])]] if made["sum"] else []
    return [*rows, *([note] for note in notes(made))]


def test_two_busy_copies_of_two_builds() -> None:
    table = lines(
        spark1=result(one("0.8.5", running=2, kv_use=0.4, drafted=(100, 400, 300)), requests=6),
        spark2=result(one("0.33.0", running=1, waiting=1, kv_use=0.44, drafted=(0, 0, 0)), requests=5, where="there"),
    )
    assert table == [
        ["spark1", "2", "0", "40 %", "63.0", "300.0", "30 ms", "39 ms", "18 ms", "100 %"],
        ["spark2", "1", "1", "44 %", "52.5", "250.0", "30 ms", "39 ms", "18 ms", "88 %"],
        ["2 of 2", "3", "1", "44 %, mean 42 %", "115.5", "550.0", "30 ms", "39 ms", "18 ms", "92 %"],
    ]


def test_too_little_in_the_window_is_told_from_the_life_or_not_at_all() -> None:
    table = lines(spark1=result(one(), requests=1, before=9), spark2=result(one(), where="there"))
    assert table[0] == ["spark1", "0", "0", "0 %", "10.5", "50.0", "(611 ms)", "(736 ms)", "18 ms", "-"]
    assert table[1] == ["spark2", "0", "0", "0 %", "0.0", "0.0", "idle", "idle", "idle", "-"]
    assert table[-1] == ["in brackets: since the engine's start; the 2.0 s between two looks had too little for it"]


def test_above_the_last_bucket_only_that_bound_is_known() -> None:
    process = one()
    for _request in range(5):
        process.engines[0].serve(1, 1, first=900.0)
    assert lines(spark1=result(process))[0][6] == "(> 160 s)"


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({}, "could not be reached"),
        ({"unreachable": True, "msg": "ssh"}, "could not be reached"),
        ({"failed": True, "msg": "127.0.0.1:8080 is a proxy"}, "127.0.0.1:8080 is a proxy"),
        ({"state": "absent", "reason": "no answer: Connection refused", "reading": None, "window": None}, "no answer: Connection refused"),
        ({"state": "off", "reason": "runs without metrics", "reading": None, "window": None}, "runs without metrics"),
    ],
)  # fmt: skip
def test_missing_copy_is_no_row_of_zeros_and_no_part_of_the_sum(found: dict[str, Any], why: str) -> None:
    table = lines(spark1=result(one(running=3, kv_use=0.5), requests=6), spark2=found)
    assert table[1] == ["spark2", *UNKNOWN]
    assert table[2][:4] == ["1 of 2", "3", "0", "50 %, mean 50 %"]
    assert table[3:] == [[f"spark2: {why}"], ["the sum has all figures without spark2"]]


def test_nobody_answers() -> None:
    table = lines(spark1={}, spark2={})
    assert table[2] == ["0 of 2", "?", "?", "?", "?", "?", "-", "-", "-", "-"]
    assert table[-1] == ["the sum has all figures without spark1, spark2"]


def test_two_names_for_one_process_have_no_sum() -> None:
    table = lines(spark1=result(one()), spark2=result(one()))
    assert len(table) == 3
    assert table[2][0].startswith("no sum: spark1 and spark2 are the same process")


def test_what_is_not_whole_is_said() -> None:
    doubtful, restarted = result(one(prompt=float("nan")), requests=5), result(one(), requests=5, where="there")
    restarted["window"]["restarts"] = 1
    table = lines(spark1=doubtful, spark2=restarted)
    assert [row[5] for row in table[:3]] == ["?", "250.0", "250.0"]
    assert table[3:] == [
        ["spark1: vllm:prompt_tokens_total is nan, which no counter can be"],
        ["spark2: restarted between the two looks"],
        ["the sum has prompt_tokens without spark1"],
    ]


def test_one_reading_is_enough_for_the_state() -> None:
    found = {**result(one(running=1, kv_use=0.1), before=6), "window": None}
    table = lines(spark1=found)
    assert table[0] == ["spark1", "1", "0", "10 %", "?", "?", "(625 ms)", "(737 ms)", "(38 ms)", "-"]
    assert table[-1] == ["in brackets: since the engine's start; there were no two looks"]


def test_filter_gives_plain_data() -> None:
    made = metrics_sum({"spark1": result(one(), requests=6), "spark2": {}})
    assert json.loads(json.dumps(made)) == made
    assert made["sum"]["window"]["per_second"]["generation_tokens"] == pytest.approx(63.0)
    assert made["sum"]["missing"] == {"spark2": "could not be reached"}
    assert made["copies"]["spark1"]["window"]["requests"]["stop"] == 6
    with pytest.raises(AnsibleFilterError, match="needs a dictionary"):
        metrics_sum([])  # type: ignore[arg-type]
