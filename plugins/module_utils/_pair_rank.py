# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank above 0 of a pair does about the head's generations, and about a head that is gone.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; time comes in from outside. See _pair.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.gb10.vllm.plugins.module_utils import _pair


@dataclass(frozen=True)
class Follower:
    phase: str = _pair.OFF
    generation: int = 0
    lonely_since: float | None = None
    reason: str = "not looked yet"


Step = tuple[Follower, list[_pair.Act]]


def follow(
    state: Follower, own: _pair.Rank, head: _pair.Rank | None, head_answers: bool, now: float, rules: _pair.Rules
) -> Step:
    """One look; `head` is what the head publishes, None without an answer; `head_answers`: its engine's port has a live engine."""
    if own.hindrance:
        if state.phase == _pair.OFF:
            return replace(state, reason=own.hindrance), []
        return Follower(reason=own.hindrance), [_pair.Act(_pair.SAY, f"does nothing from now on: {own.hindrance}")]
    if state.phase == _pair.OFF:
        state = replace(state, phase=_pair.IDLE, reason="")
    if head is None or not head.is_split:
        return _alone(state, own, head_answers, now, rules)
    state = replace(state, lonely_since=None)
    if head.phase in (_pair.STOP, _pair.GAVE_UP):
        return _stop(state, own, head)
    if head.phase in (_pair.WORKERS, _pair.HEAD, _pair.LOAD) and head.generation == state.generation:
        return _start(state, own)
    return state, []


def _alone(state: Follower, own: _pair.Rank, head_answers: bool, now: float, rules: _pair.Rules) -> Step:
    """A worker waits for its dead head for ever, with all its memory, and would meet the next head as a stale one."""
    if own.gone or head_answers:
        return replace(state, lonely_since=None), []
    if state.lonely_since is None:
        return replace(state, lonely_since=now), []
    if now - state.lonely_since < rules.alone:
        return state, []
    words = f"nothing was seen of the head for {now - state.lonely_since:.0f} s: stops this rank, which would wait for it for ever"
    said = [] if state.phase == _pair.ALONE else [_pair.Act(_pair.SAY, words)]
    return replace(state, phase=_pair.ALONE, generation=0, reason=words), [*said, _pair.Act(_pair.DO_STOP)]


def _stop(state: Follower, own: _pair.Rank, head: _pair.Rank) -> Step:
    known = (state.generation, state.phase) == (head.generation, _pair.STOPPED)
    if known and (own.gone or head.phase == _pair.GAVE_UP):
        return state, []
    after = replace(state, generation=head.generation, reason=f"generation {head.generation} of {head.name}")
    if own.gone:
        words = f"this rank is proven gone for generation {head.generation}"
        return replace(after, phase=_pair.STOPPED), [_pair.Act(_pair.SAY, words)]
    return replace(after, phase=_pair.STOPPING), [_pair.Act(_pair.DO_STOP)]


def _start(state: Follower, own: _pair.Rank) -> Step:
    if state.phase == _pair.STOPPED:
        if own.running:
            # Who started it did not know that the others are gone; the head sees that this rank is not where it should be.
            return replace(state, phase=_pair.IDLE, reason="was started by somebody else"), []
        return replace(state, phase=_pair.STARTING), [_pair.Act(_pair.DO_START)]
    if state.phase == _pair.STARTING:
        if not own.running:
            return state, [_pair.Act(_pair.DO_START)]
        return replace(state, phase=_pair.STARTED), [_pair.Act(_pair.SAY, f"started for generation {state.generation}")]
    return state, []
