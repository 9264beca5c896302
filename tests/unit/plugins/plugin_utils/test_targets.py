# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which releases a cutover, a restart, a rollback and a resume are about, and why they refuse; then the whole decision."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _rollout, _targets
from ansible_collections.gb10.vllm.plugins.plugin_utils._targets import Past, RefusedError

HOSTS = ("a", "b")


def record(release: str, rank: int = 0) -> dict[str, Any]:
    topology = release.partition("-")[0]
    pair = topology == "split"
    return {"id": release, "topology": topology, "rank": rank if pair else 0, "ranks": 2 if pair else 1}


def facts(
    now: tuple[str | None, ...],
    stable: dict[str, tuple[str, ...]] | None = None,
    staged: tuple[str, ...] = ("new-1", "new-1"),
    does: str = "serves",
    lacks: str = "",
) -> list[dict[str, Any]]:
    """Two hosts that run `now`, with the stable states by rollout; the releases of all of these are on the disks, but not `lacks`."""
    found = []
    for rank, (name, current) in enumerate(zip(HOSTS, now, strict=True)):
        list_of_host = [{"rollout": k, "release": v[rank], "at": 1.0} for k, v in (stable or {}).items() if v[rank]]
        ids = {entry["release"] for entry in list_of_host} | ({current} if current else set()) | {"replicated-2"}
        found.append(
            {
                "name": name,
                "rank": rank,
                "staged": {"id": staged[rank], "manifest": record(staged[rank].replace("new", "replicated"), rank)},
                "engine": {
                    "current": record(current, rank) if current else None,
                    "previous": None,
                    "running": current is not None and does != "off",
                    "healthy": current is not None and does == "serves",
                    "stable": list_of_host,
                    "records": {i: record(i, rank) for i in ids if i and i != lacks},
                },
            }
        )
    return found


OLD, NEW, SPLIT = ("replicated-1",) * 2, ("replicated-2",) * 2, ("split-1",) * 2
# the site was split, then replicated-1, then replicated-2
THREE = {"r1": SPLIT, "r2": OLD, "r3": NEW}


def pair(releases: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(HOSTS, releases, strict=True))


def interrupted(verb: str, to: tuple[str, ...], before: tuple[str, ...], result: str = "") -> Past:
    return Past("r9", verb, result, pair(to), pair(before))


def test_worlds_are_what_every_host_knows() -> None:
    hosts = facts(NEW, THREE)
    hosts[1]["engine"]["stable"] = hosts[1]["engine"]["stable"][1:]
    assert [world.rollout for world in _targets.worlds(hosts)] == ["r2", "r3"]
    assert _targets.worlds(facts(NEW)) == []
    assert _targets.worlds([]) == []


@pytest.mark.parametrize(
    ("now", "last", "wanted", "to"),
    [
        # all went well: the state before the one that runs
        (NEW, None, "", OLD),
        (OLD, None, "", NEW),
        (NEW, interrupted("cutover", NEW, OLD, "ok"), "", OLD),
        # by name
        (NEW, None, "r1", SPLIT),
        (NEW, None, "r3", NEW),
        # interrupted: the state in which it found the site, however far it had come
        (NEW, interrupted("cutover", ("replicated-3",) * 2, NEW), "", NEW),
        (("replicated-3", "replicated-2"), interrupted("cutover", ("replicated-3",) * 2, NEW), "", NEW),
        (("replicated-3",) * 2, interrupted("cutover", ("replicated-3",) * 2, NEW), "", NEW),
        (("replicated-3", "replicated-2"), interrupted("cutover", ("replicated-3",) * 2, NEW, "failed"), "", NEW),
        (SPLIT, interrupted("cutover", SPLIT, OLD), "", OLD),
        (NEW, interrupted("restart", NEW, NEW), "", NEW),
        # it found something that was never stable: the newest stable state that it was not about
        (("replicated-3",) * 2, interrupted("cutover", NEW, ("replicated-3",) * 2), "", OLD),
        # an interrupted rollback goes on to where it went, and is not turned round
        (("replicated-1", "replicated-2"), interrupted("rollback", OLD, NEW), "", OLD),
    ],
)
def test_rolled_back(now: tuple[str, ...], last: Past | None, wanted: str, to: tuple[str, ...]) -> None:
    assert _targets.rolled_back(facts(now, THREE), last, wanted) == pair(to)


@pytest.mark.parametrize(
    ("hosts", "wanted", "message"),
    [
        (facts(NEW), "", "no stable state to go back to: host a has never run a release that became stable"),
        (facts(NEW, {"r3": NEW}), "", "nothing else was ever stable"),
        (facts(NEW, {"r3": NEW}), "r7", "'r7', which is no stable state of this site. It knows r3"),
        (facts(NEW), "r7", "It knows none yet"),
    ],
)
def test_rollback_refused(hosts: list[dict[str, Any]], wanted: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        _targets.rolled_back(hosts, None, wanted)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (None, "there never was a rollout, so there is nothing to resume"),
        (interrupted("cutover", NEW, OLD, "ok"), "the last rollout, r9, ended well"),
        (Past("r9", "cutover", "", {"a": "replicated-2"}, {}), "was about a, the group engines has a, b"),
    ],
)
def test_resume_refused(last: Past | None, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        _targets.resumed(facts(NEW), last)


def test_a_restart_needs_something_that_ran() -> None:
    assert _targets.same(facts(NEW)) == pair(NEW)
    with pytest.raises(RefusedError, match="host b has no current release"):
        _targets.same(facts(("replicated-2", None)))


@pytest.mark.parametrize(
    ("hosts", "targets", "message"),
    [
        (facts(NEW, THREE, lacks="replicated-1"), OLD, "host a does not have the release replicated-1 any more"),
        (
            facts(NEW, THREE),
            ("split-1", "replicated-1"),
            r"do not belong together \(a: split of 2; b: replicated of 1\)",
        ),
    ],
)
def test_records_refused(hosts: list[dict[str, Any]], targets: tuple[str, ...], message: str) -> None:
    with pytest.raises(RefusedError, match=message) as error:
        _targets.records(hosts, pair(targets))
    assert "playbook cutover.yml" in str(error.value)


def test_a_split_needs_every_rank() -> None:
    hosts = facts(SPLIT, THREE)
    hosts[1]["engine"]["records"]["split-1"]["rank"] = 0
    with pytest.raises(RefusedError, match=r"needs the ranks 0 to 1, the hosts hold \[0, 0\]"):
        _targets.records(hosts, pair(SPLIT))


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        ([{"step": "stopped", "host": "a", "result": "ok"}], None),
        ([{"step": "begin", "verb": "restart", "targets": {"a": "x"}, "before": {"a": "y"}}], ("restart", "")),
        ([{"step": "begin"}, {"step": "end", "result": "failed"}], ("cutover", "failed")),
        ([{"step": "begin"}, {"step": "end", "result": "ok"}], ("cutover", "ok")),
        ([{"step": "begin"}, {"step": "unlocked", "result": "ok"}], ("cutover", "")),
    ],
)
def test_past(events: list[dict[str, Any]], expected: tuple[str, str] | None) -> None:
    seen = _targets.past(events, "r9")
    assert (None if seen is None else (seen.verb, seen.result)) == expected


def plan(hosts: list[dict[str, Any]], target: str, last: Past | None = None, **more: Any) -> dict[str, Any]:
    return _rollout.plan(hosts, list(HOSTS), last, _rollout.Wish(target, **more))


def test_a_cutover_goes_back_to_the_stable_state_and_not_to_what_failed_meanwhile() -> None:
    hosts = facts(("replicated-9",) * 2, THREE, staged=("new-4", "new-4"))
    seen = plan(hosts, "staged")
    assert seen["path"] == "rolling"
    assert {host["back"] for host in seen["hosts"].values()} == {"replicated-2"}
    assert {host["previous"] for host in seen["hosts"].values()} == {"replicated-2"}
    assert {host["back_previous"] for host in seen["hosts"].values()} == {"replicated-1"}
    assert seen["before"] == pair(("replicated-9",) * 2)
    assert not seen["already_stable"]


def test_on_a_site_that_was_never_stable_a_failure_goes_back_to_what_runs() -> None:
    seen = plan(facts(OLD), "staged")
    assert [host["back"] for host in seen["hosts"].values()] == ["replicated-1", "replicated-1"]
    assert [host["previous"] for host in seen["hosts"].values()] == [None, None]
    assert [host["back"] for host in plan(facts(OLD, does="off"), "staged")["hosts"].values()] == [None, None]


def test_a_resume_keeps_in_mind_how_the_first_one_found_the_site() -> None:
    last = interrupted("cutover", NEW, OLD)
    seen = plan(facts(("replicated-2", "replicated-1"), THREE), "resumed", last)
    assert (seen["path"], seen["before"], seen["targets"]) == ("rolling", pair(OLD), pair(NEW))
    assert [host["start"] for host in seen["hosts"].values()] == [False, True]


@pytest.mark.parametrize("target", ["resumed", "stable"])
def test_an_interrupted_rollout_gets_an_end_although_nothing_is_left_to_do(target: str) -> None:
    last = interrupted("cutover", NEW, NEW)
    seen = plan(facts(NEW, THREE), target, last)
    assert seen["path"] == "rolling"
    assert "so that rollout r9 has an end" in seen["words"]
    assert not any(host["stop"] or host["start"] or host["leave"] for host in seen["hosts"].values())
    assert seen["already_stable"]


def test_one_host_alone_does_not_go_back_to_its_part_of_a_pair() -> None:
    seen = plan(facts(("replicated-2", "split-1"), {"r1": SPLIT}), "resumed", interrupted("cutover", NEW, SPLIT))
    assert seen["path"] == "rolling"
    assert [host["back"] for host in seen["hosts"].values()] == [None, None]


def test_a_restart_renews_the_named_hosts() -> None:
    seen = plan(facts(NEW, THREE), "same", only=["b"])
    assert [host["stop"] for host in seen["hosts"].values()] == [False, True]
    assert [host["stop"] for host in plan(facts(NEW, THREE), "same")["hosts"].values()] == [True, True]
    assert [host["stop"] for host in plan(facts(SPLIT, THREE), "same", only=["b"])["hosts"].values()] == [True, True]
    with pytest.raises(RefusedError, match="c is not in the group engines, which has a, b"):
        plan(facts(NEW, THREE), "same", only=["b", "c"])


LEGACY = dict.fromkeys(HOSTS, "legacy")


def with_legacy(hosts: list[dict[str, Any]], **legacy: Any) -> list[dict[str, Any]]:
    return [{**host, "legacy": legacy} for host in hosts]


def began(verb: str, result: str, targets: dict[str, str], before: dict[str, str]) -> Past:
    return Past("r9", verb, result, targets, before)


@pytest.mark.parametrize(
    ("stable", "last", "wanted", "target"),
    [
        # the world before our first release
        ({"r1": OLD}, began("cutover", "ok", pair(OLD), LEGACY), "", LEGACY),
        # by name, with states of ours in between
        (THREE, began("cutover", "ok", pair(NEW), pair(OLD)), "legacy", LEGACY),
        (THREE, began("cutover", "ok", pair(NEW), pair(OLD)), "", pair(OLD)),
        # a first cutover that failed, or was killed
        ({}, began("cutover", "failed", pair(OLD), LEGACY), "", LEGACY),
        (THREE, began("cutover", "", pair(OLD), LEGACY), "", LEGACY),
        # and one that was on the way back
        ({}, began("rollback", "", LEGACY, pair(OLD)), "", LEGACY),
    ],
)
def test_rollback_to_what_was_silenced(
    stable: dict[str, tuple[str, ...]], last: Past, wanted: str, target: dict[str, str]
) -> None:
    now = NEW if "r3" in stable else OLD
    hosts = with_legacy(facts(now, stable), silenced=True, served=True, start_seconds=9)
    plan = _rollout.plan(hosts, HOSTS, last, _rollout.Wish("stable", to=wanted))
    assert plan["targets"] == target
    if target == LEGACY:
        assert (plan["path"], plan["topology"], plan["already_stable"]) == ("switch", "legacy", True)
        for name in HOSTS:
            host = plan["hosts"][name]
            assert (host["leave"], host["stop"], host["start"], host["admit"]) == (True, True, False, True)
            assert plan["records"][name]["budgets"]["gate_deadline"] == 9


def test_resume_of_a_way_back_to_what_was_silenced() -> None:
    last = began("rollback", "", LEGACY, pair(OLD))
    plan = _rollout.plan(with_legacy(facts(OLD, does="off"), silenced=True), [], last, _rollout.Wish("resumed"))
    assert (plan["targets"], plan["topology"], plan["before"]) == (LEGACY, "legacy", pair(OLD))


@pytest.mark.parametrize(
    ("now", "front", "leave"), [(OLD, ["a"], ["a", "b"]), (OLD, [], ["a", "b"]), (SPLIT, ["a"], ["a"])]
)
def test_on_the_way_back_every_copy_of_ours_leaves_also_one_that_is_out(
    now: tuple[str, ...], front: list[str], leave: list[str]
) -> None:
    """Its watchdog may bring it back between this look and the rollout's pause; a rank without a port was never in front."""
    hosts = with_legacy(facts(now, {"r1": now}), silenced=True, served=True)
    plan = _rollout.plan(hosts, front, None, _rollout.Wish("stable", to="legacy"))
    assert [name for name, host in plan["hosts"].items() if host["leave"]] == leave


def test_a_site_served_by_what_is_not_ours_goes_back_to_that() -> None:
    """Also where ours ran before: the release that is linked does not serve."""
    hosts = with_legacy(facts(OLD, {"r1": OLD}, does="off"), silence=["old.service"], serving=True)
    plan = _rollout.plan(hosts, [], None, _rollout.Wish("staged"))
    assert plan["before"] == LEGACY
    assert {host["back"] for host in plan["hosts"].values()} == {None}
    assert {host["silence"] for host in plan["hosts"].values()} == {("old.service",)}


def test_what_serves_now_counts_more_than_what_a_failed_rollout_had_found() -> None:
    last = began("cutover", "failed", pair(NEW), pair(OLD))
    for serving, before in ((True, LEGACY), (False, pair(OLD))):
        hosts = with_legacy(facts(OLD, {"r1": OLD}, does="off"), silence=["old.service"], serving=serving)
        assert _rollout.plan(hosts, [], last, _rollout.Wish("staged"))["before"] == before


def test_nothing_silenced_is_no_target() -> None:
    with pytest.raises(RefusedError, match="which is no stable state of this site"):
        _rollout.plan(facts(OLD), HOSTS, None, _rollout.Wish("stable", to="legacy"))
