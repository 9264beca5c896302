# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of a rollout: which path, which steps per host, what a rollback goes back to, what came of it."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout
from ansible_collections.gb10.vllm.plugins.plugin_utils._rollout import NONE, ROLLING, SWITCH, RefusedError


def engine(name: str, now: str | None, target: str, does: str = "serves", rank: int = 0) -> _rollout.Engine:
    """A host that runs release `now` and shall run `target` (`topology-x`); `does` says how it is.

    serves: healthy and admitted; waits: healthy, not admitted; sick: runs without an answer; off: does not run;
    ghost: does not run, but is admitted.
    """
    return _rollout.Engine(
        name=name,
        rank=rank,
        current=now,
        current_topology=now.partition("-")[0] if now else None,
        current_rank=rank if now and now.startswith("split") else 0,
        target=target,
        target_topology=target.partition("-")[0],
        running=does in ("serves", "waits", "sick"),
        healthy=does in ("serves", "waits"),
        admitted=does in ("serves", "ghost"),
    )


def steps(plan: _rollout.Plan) -> str:
    """L leave, S stop, G go (start), A admit, in one word per host."""
    letters = (("leave", "L"), ("stop", "S"), ("start", "G"), ("admit", "A"))
    return " ".join("".join(letter if getattr(host, name) else "-" for name, letter in letters) for host in plan.hosts)


R, R2, S, S2 = "replicated-1", "replicated-2", "split-1", "split-2"


@pytest.mark.parametrize(
    ("one", "two", "path", "word", "does"),
    [
        # replicated stays replicated
        ((R, R), (R, R), NONE, "nothing changes", "---A ---A"),
        ((R, R, "waits"), (R, R), ROLLING, "only the proxy's membership", "---A ---A"),
        ((R, R, "sick"), (R, R), ROLLING, "one after the other while the others serve: a.", "LSGA ---A"),
        ((R, R), (R, R, "off"), ROLLING, "while the others serve: b.", "---A LSGA"),
        ((R, R2), (R, R2), ROLLING, "while the others serve: a, b.", "LSGA LSGA"),
        ((R2, R2), (R, R2), ROLLING, "while the others serve: b.", "---A LSGA"),
        ((R, R2), (None, R2, "off"), ROLLING, "while the others serve: a, b.", "LSGA --GA"),
        ((R, R2, "off"), (R, R2, "off"), SWITCH, "Switch from replicated to replicated", "LSGA LSGA"),
        # first start
        ((None, R, "off"), (None, R, "off"), SWITCH, "First start of the site as replicated", "--GA --GA"),
        ((None, S, "off"), (None, S, "off"), SWITCH, "First start of the site as split", "--GA --G-"),
        # something runs there that has no release
        ((None, R, "serves"), (None, R, "off"), ROLLING, "while the others serve", "LSGA --GA"),
        ((None, R, "ghost"), (None, R, "off"), SWITCH, "First start", "--GA --GA"),
        # topology changes
        ((S, R), (S, R, "sick"), SWITCH, "Switch from split to replicated: the old engine is drained", "LSGA -SGA"),
        ((R, S), (R, S), SWITCH, "Switch from replicated to split", "LSGA LSG-"),
        ((R, S, "off"), (S, S, "sick"), SWITCH, "Switch from replicated and split to split", "LSGA -SG-"),
        # one engine over two hosts is renewed as a whole
        ((S, S), (S, S, "sick"), NONE, "nothing changes", "---A ----"),
        ((S, S2), (S, S2, "sick"), SWITCH, "Switch from split to split", "LSGA -SG-"),
        ((S, S), (S, S, "off"), SWITCH, "Switch from split to split", "LSGA -SG-"),
        ((S, S, "sick"), (S, S, "sick"), SWITCH, "Switch from split to split", "LSGA -SG-"),
        # a rank without a port must not be in front of clients
        ((S, S), (S, S, "serves"), ROLLING, "only the proxy's membership", "---A L---"),
        ((None, S, "off"), (None, S, "ghost"), SWITCH, "First start", "--GA L-G-"),
    ],
)  # fmt: skip
def test_path(one: tuple[Any, ...], two: tuple[Any, ...], path: str, word: str, does: str) -> None:
    plan = _rollout.decide([engine("a", *one), engine("b", *two, *(["serves"] if len(two) == 2 else []), rank=1)])
    assert (plan.path, steps(plan)) == (path, does)
    assert word in plan.words


@pytest.mark.parametrize(
    ("one", "path", "word", "does"),
    [
        ((R, R), NONE, "nothing changes", "---A"),
        ((R, R2), SWITCH, "The only copy is renewed; the model is away", "LSGA"),
        ((R, R, "sick"), SWITCH, "The only copy is renewed", "LSGA"),
        ((None, R, "off"), SWITCH, "First start", "--GA"),
    ],
)
def test_one_host(one: tuple[Any, ...], path: str, word: str, does: str) -> None:
    plan = _rollout.decide([engine("a", *one)])
    assert (plan.path, steps(plan)) == (path, does)
    assert word in plan.words


def test_three_hosts_two_serve() -> None:
    plan = _rollout.decide([engine("a", R, R), engine("b", R, R, "off", 1), engine("c", R2, R, "serves", 2)])
    assert (plan.path, steps(plan)) == (ROLLING, "---A LSGA LSGA")


def test_a_pair_that_runs_but_answers_nothing_is_not_right() -> None:
    assert not engine("a", S, S, "sick", 0).is_right
    assert engine("b", S, S, "sick", 1).is_right


@pytest.mark.parametrize(("now", "target", "back"), [(R, R2, R), (R, R, None), (None, R, None), (S, R, S)])
def test_what_a_failure_goes_back_to(now: str | None, target: str, back: str | None) -> None:
    (host,) = _rollout.decide([engine("a", now, target, "sick")]).hosts
    assert (host.release, host.back) == (target, back)
    assert host.back_topology == (back.partition("-")[0] if back else None)


@pytest.mark.parametrize(
    ("engines", "message"),
    [
        ([], "no host in the group engines"),
        ([engine("a", R, R), engine("b", R, S)], r"ask for different topologies \(replicated, split\)"),
    ],
)
def test_refused(engines: list[_rollout.Engine], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        _rollout.decide(engines)


def test_plan_as_data() -> None:
    plan = _rollout.decide([engine("a", R, R2)]).as_dict()
    assert plan["hosts"] == {
        "a": {
            "name": "a", "release": R2, "back": R, "back_topology": "replicated",
            "serving": True, "leave": True, "stop": True, "start": True, "admit": True,
        }
    }  # fmt: skip


@pytest.mark.parametrize("current", [None, {"id": R, "topology": "replicated", "rank": 0}])
def test_engine_from_facts(current: dict[str, Any] | None) -> None:
    facts = {"name": "a", "rank": "1", "engine": {"current": current, "running": True, "healthy": False}}
    seen = _rollout.engine_from_facts(facts, {"id": R2, "topology": "replicated"}, ["a", "b"])
    expected = (1, R, "replicated") if current else (1, None, None)
    assert (seen.rank, seen.current, seen.current_topology) == expected
    assert (seen.target, seen.running, seen.healthy, seen.admitted) == (R2, True, False, True)


def previous(name: str, topology: str | None, rank: int = 0, ranks: int = 1) -> dict[str, Any]:
    record = {"id": f"{topology}-{name}", "topology": topology, "rank": rank, "ranks": ranks} if topology else None
    return {"name": name, "engine": {"previous": record}}


@pytest.mark.parametrize(
    "hosts",
    [
        [previous("a", "replicated"), previous("b", "replicated")],
        [previous("a", "split", 0, 2), previous("b", "split", 1, 2)],
        [previous("b", "split", 1, 2), previous("a", "split", 0, 2)],
    ],
)
def test_rollback_targets(hosts: list[dict[str, Any]]) -> None:
    assert _rollout.rollback_targets(hosts) == {host["name"]: host["engine"]["previous"] for host in hosts}


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ([previous("a", "replicated"), previous("b", None)], "host b has no previous release"),
        (
            [previous("a", "replicated"), previous("b", "split", 1, 2)],
            r"do not belong together \(a: replicated of 1; b: split of 2",
        ),
        ([previous("a", "split", 0, 2), previous("b", "split", 0, 3)], "do not belong together"),
        ([previous("a", "split", 0, 2), previous("b", "split", 0, 2)], r"needs ranks 0 to 1, the hosts hold \[0, 0\]"),
        ([previous("a", "split", 0, 2)], r"needs ranks 0 to 1, the hosts hold \[0\]"),
    ],
)
def test_rollback_refused(hosts: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(RefusedError, match=message) as error:
        _rollout.rollback_targets(hosts)
    assert "playbook cutover.yml" in str(error.value)


OK, BAD = {"ok": True, "reason": ""}, {"ok": False, "reason": "garbage"}


@pytest.mark.parametrize(
    ("target", "now", "results", "serving", "failed", "restore"),
    [
        (R, S, {"a": OK, "b": OK}, ["a", "b"], {}, False),
        (R, S, {"a": OK, "b": BAD}, ["a"], {"b": "garbage"}, False),
        (R, S, {"a": OK}, ["a"], {"b": "the host could not be reached"}, False),
        (R, S, {"a": BAD, "b": {}}, [], {"a": "garbage", "b": "the host could not be reached"}, True),
        (R, S, {}, [], {"a": "the host could not be reached", "b": "the host could not be reached"}, True),
        (R, None, {"a": BAD, "b": BAD}, [], {"a": "garbage", "b": "garbage"}, False),
        (R, R, {"a": BAD, "b": BAD}, [], {"a": "garbage", "b": "garbage"}, False),
        (S, R, {"a": OK, "b": OK}, ["a"], {}, False),
        (S, R, {"a": OK, "b": BAD}, [], {"b": "garbage"}, True),
        (S, R, {"a": BAD, "b": OK}, [], {"a": "garbage"}, True),
        (S, None, {"a": BAD, "b": OK}, [], {"a": "garbage"}, False),
    ],
)
def test_settle(
    target: str, now: str | None, results: dict[str, Any], serving: list[str], failed: dict[str, str], restore: bool
) -> None:
    plan = _rollout.decide([engine("a", now, target, "sick", 0), engine("b", now, target, "sick", 1)])
    outcome = _rollout.settle(plan.as_dict(), results)
    assert outcome == {"ok": not failed, "serving": serving, "failed": failed, "restore": restore}


KEPT = {"ok": False, "reason": "garbage", "serving": True}


@pytest.mark.parametrize(
    ("results", "serving"),
    [
        ({"a": KEPT, "b": {**KEPT, "reason": "not touched"}}, ["a", "b"]),
        ({"a": BAD, "b": {**KEPT, "reason": "not touched"}}, ["b"]),
        ({"a": OK, "b": KEPT}, ["a", "b"]),
        ({"a": BAD, "b": BAD}, []),
    ],
)
def test_settle_of_a_renewal_counts_who_serves_an_older_release_and_never_restores(
    results: dict[str, Any], serving: list[str]
) -> None:
    plan = {
        **_rollout.decide([engine("a", R, R, "sick", 0), engine("b", R, R, "sick", 1)]).as_dict(),
        "path": "rolling",
    }
    plan["hosts"] = {name: {**host, "back": "replicated-old"} for name, host in plan["hosts"].items()}
    outcome = _rollout.settle(plan, results)
    assert outcome["serving"] == serving
    assert not outcome["restore"]


def test_settle_of_a_switch_that_stayed_on_the_old_release_does_not_take_it_away_again() -> None:
    plan = _rollout.decide([engine("a", R, S, "serves", 0), engine("b", R, S, "serves", 1)]).as_dict()
    outcome = _rollout.settle(plan, {"a": {**BAD, "serving": False}, "b": KEPT})
    assert outcome["serving"] == ["b"]
    assert not outcome["restore"]
