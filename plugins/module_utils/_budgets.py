# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time budgets of one engine, all derived from one number: the seconds a load is expected to take.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

The order is what matters, and the unit tests prove it over the whole range of inputs:

* expected load < engine-ready limit: the engine must not give up on a slow but good start;
* engine-ready limit < gate deadline: the engine's own explanation is in the log before the gate gives up;
* gate deadline < unit start budget: systemd never kills what the gate still waits for;
* shutdown timeout < container stop < unit stop budget: running requests end, then docker ends, then systemd;
* restart window > burst x (unit start budget + delay): a start that fails late still counts, so a broken release
  is given up after `burst` tries instead of being restarted for ever.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

ENGINE_READY_FACTOR = 1.5
GATE_FACTOR = 2.0
# A stand-in or a tiny model loads in seconds; imports and a cold page cache still need this much.
SHORTEST_READY_LIMIT = 90
# `docker rm` of a stale container and the start of the container itself
START_OVERHEAD = 120
# vLLM needs a moment after its last request: 5 s worker grace and the interpreter's own exit
EXIT_GRACE = 15
STOP_OVERHEAD = 30
WINDOW_MARGIN = 60
# A learned load time shortens the wait for a release that hangs; a disk that is three times as slow must still pass.
LEARNED_FACTOR = 3
LEARNED_MARGIN = 60
# However fast a release once was, this share of its own budget stays.
LEARNED_SHARE = 0.25


@dataclass(frozen=True)
class Budgets:
    """All values are whole seconds, except `restart_burst` (a count)."""

    expected_load: int
    engine_ready: int
    gate_deadline: int
    unit_start: int
    shutdown: int
    container_stop: int
    unit_stop: int
    restart_delay: int
    restart_burst: int
    restart_window: int

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


def derive(expected_load: int, shutdown: int = 60, restart_delay: int = 15, restart_burst: int = 3) -> Budgets:
    """Derive every budget from `expected_load` (seconds, >= 1) and `shutdown` (seconds, >= 0).

    Raises ValueError, naming the value, when an input is out of range.
    """
    for name, value, least in (
        ("expected load", expected_load, 1),
        ("shutdown", shutdown, 0),
        ("restart delay", restart_delay, 1),
        ("restart burst", restart_burst, 1),
    ):
        if value < least:
            raise ValueError(f"{name} is {value}, but must be at least {least}")
    engine_ready = max(round(expected_load * ENGINE_READY_FACTOR), SHORTEST_READY_LIMIT)
    gate_deadline = max(round(expected_load * GATE_FACTOR), engine_ready + 30)
    container_stop = shutdown + EXIT_GRACE
    return Budgets(
        expected_load=expected_load,
        engine_ready=engine_ready,
        gate_deadline=gate_deadline,
        unit_start=gate_deadline + START_OVERHEAD,
        shutdown=shutdown,
        container_stop=container_stop,
        unit_stop=container_stop + STOP_OVERHEAD,
        restart_delay=restart_delay,
        restart_burst=restart_burst,
        restart_window=restart_burst * (gate_deadline + START_OVERHEAD + restart_delay) + WINDOW_MARGIN,
    )


def learned_deadline(given: int, longest: float | None) -> int:
    """The gate's deadline in seconds for a release whose longest known load is `longest`, None for one that never loaded here.

    Never more than `given`, the release's own budget. The engine's own limit may now come later than this deadline: a load that
    takes three times as long as it ever did is explained by its last log lines instead.
    """
    if longest is None:
        return given
    return min(given, max(round(longest * LEARNED_FACTOR) + LEARNED_MARGIN, round(given * LEARNED_SHARE)))
