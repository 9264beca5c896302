# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the watchdog acts, when it does not, and when it stops trying; with a clock of the test's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog as w
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog_decide as d

OURS = d.Standing(release="r1", stable=True, rollout="1-cutover")
RULES = d.Rules(restarts=3, window=3600, pause=60, growth=5, unfit=120)


class Host:
    """Looks at one engine; remembers as the program does."""

    def __init__(self, standing: d.Standing = OURS) -> None:
        self.standing = standing
        self.memory = d.Memory()
        self.now = 10_000.0

    def look(self, kind: str, invocation: str = "a", after: float = 5) -> d.Decision:
        self.now += after
        decision, self.memory = d.decide(self.memory, w.Verdict(kind, "so"), invocation, self.standing, self.now, RULES)
        return decision

    def acts(self, kind: str, seconds: float, invocation: str = "a") -> list[tuple[float, str]]:
        """What was done in so many seconds of the same verdict, and after how long."""
        began, done = self.now, []
        while self.now < began + seconds:
            act = self.look(kind, invocation).act
            done += [(self.now - began, act)] if act != d.NOTHING else []
        return done


def test_a_healthy_copy_is_left_alone() -> None:
    host = Host()
    assert host.acts(w.IDLE, 100) + host.acts(w.BUSY, 100) == []
    assert host.memory == d.Memory("r1", "1-cutover", "a")


@pytest.mark.parametrize("kind", [w.STALLED, w.DEAD])
def test_what_does_not_work_is_withdrawn_and_restarted_at_once(kind: str) -> None:
    host = Host()
    host.look(w.BUSY)
    assert host.look(kind) == d.Decision(d.RESTART, f"{kind}: so")
    assert (host.memory.wanted, host.memory.why) == (d.WITHDRAWN, f"{kind}: so")
    assert host.acts(w.STARTING, 100, "b") == []
    assert host.look(w.IDLE, "b").act == d.PROVE
    host.memory = d.proven(host.memory)
    assert host.memory.wanted == d.READY
    assert host.look(w.IDLE, "b").act == d.NOTHING
    host.memory = d.told(host.memory)
    assert (host.look(w.IDLE, "b").act, host.memory.wanted) == (d.NOTHING, "")


def test_restarts_are_bounded_with_growing_pauses_then_silence() -> None:
    host = Host()
    host.look(w.IDLE)
    assert host.acts(w.DEAD, 3000) == [(5, d.RESTART), (65, d.RESTART), (365, d.RESTART), (370, d.GIVE_UP)]
    assert "gave up after 3 restarts within 1 h; last: dead: so" in host.memory.gave_up
    assert host.acts(w.DEAD, 100_000) == [], "silent, although the window is over"
    assert host.look(w.DEAD).why_not == host.memory.gave_up, "and reported"


def test_a_success_does_not_refill_the_budget_but_time_does() -> None:
    host = Host()
    host.look(w.IDLE)
    for invocation in "bcd":
        assert host.look(w.STALLED, host.memory.invocation, after=500).act == d.RESTART
        assert host.look(w.IDLE, invocation).act == d.PROVE
        host.memory = d.told(d.proven(host.memory))
    other = replace(host.memory)
    assert host.look(w.STALLED, "d", after=500).act == d.GIVE_UP
    host.memory = other
    assert host.look(w.STALLED, "d", after=4000).act == d.RESTART


def test_a_clock_that_is_set_back_forgets_no_restart() -> None:
    host = Host()
    host.look(w.IDLE)
    assert [act for _at, act in host.acts(w.DEAD, 400)] == [d.RESTART] * 3 + [d.GIVE_UP]
    host.memory = replace(host.memory, gave_up="")
    assert host.look(w.DEAD, after=-1000).act == d.GIVE_UP


@pytest.mark.parametrize(
    ("standing", "words"),
    [
        (replace(OURS, paused="rollout.json (a rollout)"), "paused by rollout.json (a rollout)"),
        (replace(OURS, stable=False), "release r1 did not become stable on this host"),
        (d.Standing(), "this host has no current release"),
    ],
)
def test_it_does_not_act_where_others_do(standing: d.Standing, words: str) -> None:
    host = Host(standing)
    for kind in w.VERDICTS:
        for invocation in ("a", "b"):
            assert host.look(kind, invocation) == d.Decision(why_not=words)
    assert host.memory.wanted == ""


def test_after_a_pause_what_is_there_is_what_was_meant() -> None:
    host = Host()
    host.look(w.IDLE)
    host.acts(w.DEAD, 400)
    assert host.memory.gave_up
    host.standing = replace(OURS, paused="rollout.json")
    assert host.acts(w.STARTING, 100, "b") + host.acts(w.DEAD, 100, "c") == []
    host.standing = replace(OURS, release="r2")
    assert host.memory.wanted == d.WITHDRAWN, "it withdrew it before the rollout, so it owes its return"
    assert host.look(w.IDLE, "d").act == d.PROVE
    assert host.memory == d.Memory("r2", "1-cutover", "d", wanted=d.WITHDRAWN, why="dead: so", unfit=host.now)


@pytest.mark.parametrize("standing", [replace(OURS, release="r2"), replace(OURS, rollout="2-restart")])
def test_a_rollout_that_it_did_not_see_ends_the_silence(standing: d.Standing) -> None:
    host = Host()
    host.look(w.IDLE)
    host.acts(w.DEAD, 400)
    host.standing = standing
    assert host.look(w.DEAD, "b").act == d.RESTART


def test_a_crash_that_systemd_restarts_is_withdrawn_and_gated_but_not_restarted() -> None:
    host = Host()
    host.look(w.IDLE)
    assert host.look(w.STARTING).act == d.NOTHING
    assert host.memory.wanted == d.WITHDRAWN
    assert host.look(w.STARTING, "b").act == d.NOTHING
    assert host.look(w.IDLE, "b").act == d.PROVE
    assert host.memory.acts == ()


def test_a_crash_or_a_reboot_between_two_looks_is_seen_by_its_invocation() -> None:
    host = Host()
    host.look(w.IDLE)
    assert host.look(w.IDLE, "b") == d.Decision(d.PROVE, "its process ended and another one was started")
    assert host.memory.wanted == d.WITHDRAWN


def test_a_copy_that_comes_back_and_is_no_good_counts_as_dead() -> None:
    host = Host()
    host.look(w.IDLE)
    host.look(w.STARTING)
    acts = host.acts(w.IDLE, 125, "b")
    assert {act for _at, act in acts[:-1]} == {d.PROVE}
    assert acts[-1] == (125, d.RESTART)


def test_what_a_person_stopped_stays_stopped_and_is_gated_when_it_comes_back() -> None:
    host = Host()
    host.look(w.IDLE)
    host.acts(w.DEAD, 400)
    assert host.look(w.STOPPED) == d.Decision(why_not="so")
    assert (host.memory.wanted, host.memory.gave_up, host.memory.acts) == (d.WITHDRAWN, "", ())
    assert host.acts(w.STOPPED, 1000) == []
    assert host.look(w.IDLE, "b").act == d.PROVE


def test_what_somebody_else_brought_back_ends_the_silence_once_it_is_proven() -> None:
    host = Host()
    host.look(w.IDLE)
    host.acts(w.DEAD, 400)
    assert host.look(w.IDLE, "b").act == d.PROVE
    assert host.memory.gave_up
    host.memory = d.told(d.proven(host.memory))
    assert (host.memory.gave_up, host.memory.acts) == ("", ())


def test_a_rank_of_a_pair_is_never_restarted_alone() -> None:
    host = Host(replace(OURS, ranks=2))
    host.look(w.IDLE)
    assert [act for _at, act in host.acts(w.STALLED, 100)] == [d.PAIR, d.PAIR]
    assert host.memory.wanted == d.WITHDRAWN
    other = Host(replace(OURS, ranks=2, rank=1))
    other.look(w.IDLE)
    assert other.look(w.DEAD).act == d.PAIR
    assert other.memory.wanted == "", "the proxies know nothing of this rank"


@pytest.mark.parametrize("owed", [d.WITHDRAWN, d.READY])
def test_what_a_copy_owed_the_proxies_its_rank_of_a_pair_does_not(owed: str) -> None:
    host = Host()
    host.look(w.IDLE)
    host.look(w.STOPPED)
    host.memory = replace(host.memory, wanted=owed)
    host.standing = replace(OURS, paused="rollout.json")
    host.look(w.STOPPED)
    host.standing = d.Standing("r2", True, "2-cutover", rank=1, ranks=2)
    assert host.acts(w.IDLE, 1000, "b") == [], "without a port there is no gate to pass"
    assert (host.memory.wanted, host.memory.why) == ("", "")
