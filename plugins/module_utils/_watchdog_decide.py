# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the watchdog does about what it saw: nothing in nearly all cases.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; `now` is the time of day, because the memory outlives a
reboot.

Only what is stalled or dead is restarted, so often within a window and no oftener, with growing pauses; after that it gives up, says
so once, and is silent. A start that was not its own (a crash, a reboot) is none of its acts, but the copy is withdrawn, and called ready
again only after its gate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog

NOTHING, RESTART, PAIR, PROVE, GIVE_UP = "nothing", "restart", "pair", "prove", "give_up"
WITHDRAWN, READY = "withdrawn", "ready"


@dataclass(frozen=True)
class Rules:
    """At most `restarts` within `window` seconds; before the second one `pause` seconds are waited, before each further one `growth`
    times as long. A copy that is there and does not pass its gate for `unfit` seconds counts as dead."""

    restarts: int = 3
    window: float = 21600.0
    pause: float = 60.0
    growth: float = 5.0
    unfit: float = 120.0


@dataclass(frozen=True)
class Standing:
    """What the site says of this host. `rollout` is the newest one that made a state stable."""

    release: str = ""
    stable: bool = False
    rollout: str = ""
    rank: int = 0
    ranks: int = 1
    paused: str = ""


@dataclass(frozen=True)
class Memory:
    """`wanted`: what the proxies have to know of the copy, empty when they do. `away`: at the last look others acted here."""

    release: str = ""
    rollout: str = ""
    invocation: str = ""
    acts: tuple[float, ...] = ()
    gave_up: str = ""
    wanted: str = ""
    why: str = ""
    unfit: float | None = None
    away: bool = False


@dataclass(frozen=True)
class Decision:
    """`why_not`: why nothing is done about what is stalled or dead, or would not be."""

    act: str = NOTHING
    reason: str = ""
    why_not: str = ""


def decide(
    memory: Memory, verdict: _watchdog.Verdict, invocation: str, standing: Standing, now: float, rules: Rules
) -> tuple[Decision, Memory]:
    """What to do after this look, and what to remember; the caller writes the memory down before it acts."""
    hands_off = _hands_off(standing)
    if hands_off:
        return Decision(why_not=hands_off), replace(memory, away=True, unfit=None)
    if memory.away or (memory.release, memory.rollout) != (standing.release, standing.rollout):
        # Whoever acted meanwhile started and stopped engines on purpose: what is there now is what was meant.
        memory = Memory(standing.release, standing.rollout, invocation, wanted=memory.wanted, why=memory.why)
    memory = _withdraw(memory, verdict, invocation, standing)
    if verdict.kind in _watchdog.FIT:
        return _fit(memory, standing, now, rules)
    memory = replace(memory, unfit=None)
    if verdict.kind in (_watchdog.STALLED, _watchdog.DEAD):
        return _restart(memory, f"{verdict.kind}: {verdict.reason}", standing, now, rules)
    if verdict.kind == _watchdog.STOPPED:
        # A person is at work here, which ends the silence as well.
        return Decision(why_not=verdict.reason), replace(memory, acts=(), gave_up="")
    return Decision(why_not=memory.gave_up), memory


def _hands_off(standing: Standing) -> str:
    if standing.paused:
        return f"paused by {standing.paused}"
    if not standing.release:
        return "this host has no current release"
    if not standing.stable:
        return f"release {standing.release} did not become stable on this host"
    return ""


def _withdraw(memory: Memory, verdict: _watchdog.Verdict, invocation: str, standing: Standing) -> Memory:
    """Whatever ended or does not work is taken from the proxies at once, whoever ended it."""
    new = bool(invocation) and invocation != memory.invocation
    why = "its process ended and another one was started" if new else f"{verdict.kind}: {verdict.reason}"
    memory = replace(memory, invocation=invocation or memory.invocation)
    if standing.rank > 0:
        # The proxies know nothing of this rank, and its gate is the head's: what its host owed as a copy, the rollout has settled.
        return replace(memory, wanted="", why="")
    if memory.wanted != WITHDRAWN and (new or verdict.kind not in _watchdog.FIT):
        return replace(memory, wanted=WITHDRAWN, why=why)
    return memory


def _fit(memory: Memory, standing: Standing, now: float, rules: Rules) -> tuple[Decision, Memory]:
    """It works by all signs; one that was withdrawn has to prove it."""
    if memory.wanted != WITHDRAWN:
        return Decision(why_not=memory.gave_up), replace(memory, unfit=None)
    since = now if memory.unfit is None else memory.unfit
    if abs(now - since) < rules.unfit or memory.gave_up:
        return Decision(PROVE, memory.why, memory.gave_up), replace(memory, unfit=since)
    reason = f"it came back and does not pass its gate for {abs(now - since):.0f} s"
    return _restart(replace(memory, unfit=None), reason, standing, now, rules)


def _restart(memory: Memory, reason: str, standing: Standing, now: float, rules: Rules) -> tuple[Decision, Memory]:
    if memory.gave_up:
        return Decision(why_not=memory.gave_up), memory
    # A clock that was set back must not forget an act.
    acts = tuple(at for at in memory.acts if abs(now - at) < rules.window)
    memory = replace(memory, acts=acts)
    if len(acts) >= rules.restarts:
        words = f"gave up after {len(acts)} restarts within {rules.window / 3600:g} h; last: {reason}"
        return Decision(GIVE_UP, words, words), replace(memory, gave_up=words)
    left = rules.pause * rules.growth ** (len(acts) - 1) - abs(now - acts[-1]) if acts else 0.0
    if left > 0:
        return Decision(why_not=f"{reason}; restarted {len(acts)} times, not again for another {left:.0f} s"), memory
    act = PAIR if standing.ranks > 1 else RESTART
    return Decision(act, reason), replace(memory, acts=(*acts, now))


def proven(memory: Memory) -> Memory:
    """It passed its gate. Where the watchdog had given up, somebody else brought it back, and the silence ends."""
    begun = replace(memory, acts=(), gave_up="") if memory.gave_up else memory
    return replace(begun, wanted=READY, unfit=None)


def told(memory: Memory) -> Memory:
    """Every proxy knows that it is ready."""
    return replace(memory, wanted="", why="")
