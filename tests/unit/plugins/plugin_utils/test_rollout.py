# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decisions of a rollout: which path, which steps per host, what a rollback goes back to, what came of it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout
from ansible_collections.gb10.vllm.plugins.plugin_utils._rollout import NONE, ROLLING, SWITCH, RefusedError


def engine(name: str, now: str | None, target: str, does: str = "serves", rank: int = 0) -> _rollout.Engine:
    """A host that runs release `now` and shall run `target` (`topology-x`); `does` says how it is.

    serves: healthy and admitted; waits: healthy, not admitted; sick: runs without an answer; loads: the same, but still has time;
    off: does not run; ghost: does not run, but is admitted; again: serves, and shall be started again.
    """
    return _rollout.Engine(
        name=name,
        rank=rank,
        current=now,
        current_topology=now.partition("-")[0] if now else None,
        current_rank=rank if now and now.startswith("split") else 0,
        target=target,
        target_topology=target.partition("-")[0],
        back=now,
        back_topology=now.partition("-")[0] if now else None,
        running=does in ("serves", "again", "waits", "sick", "loads"),
        healthy=does in ("serves", "again", "waits"),
        loading=does == "loads",
        admitted=does in ("serves", "again", "ghost"),
        forced=does == "again",
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
        ((R, R2, "off"), (R, R2, "off"), SWITCH, "No copy can serve meanwhile (replicated): a, b are drained", "LSGA LSGA"),
        # interrupted: what is there already stays, what loads is waited for
        ((R, R), (S, R, "off"), ROLLING, "while the others serve: b.", "---A -SGA"),
        ((R, R), (S, R, "sick"), ROLLING, "while the others serve: b.", "---A -SGA"),
        ((R, R, "loads"), (R, R, "loads"), ROLLING, "a and b still loads the wanted release", "---A ---A"),
        ((R, R, "loads"), (R2, R, "off"), SWITCH, "b are drained", "---A LSGA"),
        ((R, R, "loads"), (R, R), ROLLING, "a still loads", "---A ---A"),
        ((R2, R, "loads"), (R, R), ROLLING, "while the others serve: a.", "LSGA ---A"),
        ((S, S, "loads"), (S, S, "sick"), ROLLING, "a still loads", "---A ----"),
        ((S, S, "loads"), (R, S, "off"), SWITCH, "Switch from replicated and split to split", "LSGA LSG-"),
        # once more
        ((R, R, "again"), (R, R, "again"), ROLLING, "one after the other while the others serve: a, b.", "LSGA LSGA"),
        ((R, R), (R, R, "again"), ROLLING, "while the others serve: b.", "---A LSGA"),
        ((R, R, "again"), (R, R, "off"), ROLLING, "while the others serve: a, b.", "LSGA LSGA"),
        ((S, S, "again"), (S, S, "sick"), SWITCH, "No copy can serve meanwhile (split)", "LSGA -SG-"),
        # first start
        ((None, R, "off"), (None, R, "off"), SWITCH, "First start of the site as replicated", "--GA --GA"),
        ((None, S, "off"), (None, S, "off"), SWITCH, "First start of the site as split", "--GA --G-"),
        # something runs there that has no release
        ((None, R, "serves"), (None, R, "off"), SWITCH, "Switch from what has no release to replicated", "LSGA --GA"),
        ((None, R, "ghost"), (None, R, "off"), SWITCH, "First start", "--GA --GA"),
        # topology changes
        ((S, R), (S, R, "sick"), SWITCH, "Switch from split to replicated: the old engine is drained", "LSGA -SGA"),
        ((R, S), (R, S), SWITCH, "Switch from replicated to split", "LSGA LSG-"),
        ((R, S, "off"), (S, S, "sick"), SWITCH, "Switch from replicated and split to split", "LSGA -SG-"),
        # one engine over two hosts is renewed as a whole
        ((S, S), (S, S, "sick"), NONE, "nothing changes", "---A ----"),
        ((S, S2), (S, S2, "sick"), SWITCH, "No copy can serve meanwhile (split)", "LSGA -SG-"),
        ((S, S), (S, S, "off"), SWITCH, "No copy can serve meanwhile (split)", "LSGA -SG-"),
        ((S, S, "sick"), (S, S, "sick"), SWITCH, "No copy can serve meanwhile (split)", "LSGA -SG-"),
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


def test_a_site_without_hosts_is_refused() -> None:
    with pytest.raises(RefusedError, match="no host in the group engines"):
        _rollout.decide([])


def test_plan_as_data() -> None:
    plan = _rollout.decide([engine("a", R, R2)]).as_dict()
    assert plan["hosts"] == {
        "a": {
            "name": "a", "release": R2, "back": R, "back_topology": "replicated",
            "serving": True, "leave": True, "stop": True, "start": True, "admit": True, "previous": None, "back_previous": None,
            "silence": (),
        }
    }  # fmt: skip


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
    assert outcome == {
        "ok": not failed,
        "serving": serving,
        "failed": failed,
        "restore": restore,
        "restore_legacy": False,
    }


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


def foreign(
    name: str, silence: tuple[str, ...] = ("old.service",), serves: bool = True, **more: Any
) -> _rollout.Engine:
    """A host on which nothing of ours runs and something that is not ours does."""
    return dataclasses.replace(engine(name, None, R, "off"), silence=silence, is_foreign=serves, **more)


def test_a_switch_from_what_is_not_ours_proves_that_it_is_gone() -> None:
    plan = _rollout.decide([foreign("a", admitted=True), foreign("b", serves=False)])
    assert (plan.path, steps(plan)) == (SWITCH, "LSGA -SGA")
    assert [host.serving for host in plan.hosts] == [True, False]
    assert "Switch from what was here before to replicated" in plan.words
    assert "old.service on a; old.service on b" in plan.words


def test_what_has_to_be_silenced_beside_running_copies_takes_none_of_them_away() -> None:
    copies = [dataclasses.replace(engine(name, R, R), silence=("old.service",)) for name in "ab"]
    plan = _rollout.decide(copies)
    assert (plan.path, steps(plan)) == (ROLLING, "---A ---A")
    assert "Silenced first" in plan.words


@pytest.mark.parametrize(
    ("before", "results", "restore"),
    [
        ("legacy", {"a": BAD, "b": BAD}, True),
        ("legacy", {}, True),
        ("legacy", {"a": OK, "b": BAD}, False),
        ("replicated-0", {"a": BAD, "b": BAD}, False),
    ],
)
def test_settle_of_a_first_switch_goes_back_to_what_was_silenced(
    before: str, results: dict[str, Any], restore: bool
) -> None:
    plan = _rollout.decide([foreign("a"), foreign("b", serves=False)]).as_dict()
    outcome = _rollout.settle({**plan, "before": {"a": before, "b": before}}, results)
    assert (outcome["restore_legacy"], outcome["restore"]) == (restore, False)
