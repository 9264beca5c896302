# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watchdog before the real engine: one that stands still, one that is full to the brim, one that ends with status 0.

GB10_FULL_SECONDS is for how long the engine is kept full, 60 when not set.
"""

from __future__ import annotations

import os
import time

import observe
import pytest
import site_of_lab as lab
import watching

pytestmark = [pytest.mark.rotating, pytest.mark.usefixtures("real_copies")]

FULL_SECONDS = float(os.environ.get("GB10_FULL_SECONDS", "60"))
STALLED = 20
SITE = lab.Site(
    "real",
    {
        "vllm_topology": "replicated",
        "vllm_watchdog_look_seconds": 2,
        "vllm_watchdog_completion_interval_seconds": 5,
        "vllm_watchdog_stalled_seconds": STALLED,
        "vllm_watchdog_pause_seconds": 0,
    },
)
# Beyond what the engine takes at once, and long ones.
REQUESTS, PROMPT, TOKENS = 64, "Tell me about the river and the stone. " * 60, 200
HEALTH = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/health"


def test_a_full_engine_is_not_restarted() -> None:
    host, began, first = "spark1", time.time(), observe.start_of("spark1")
    seen: list[tuple[str, int]] = []
    with watching.load(host, FULL_SECONDS, REQUESTS, TOKENS, PROMPT):
        while time.time() - began < FULL_SECONDS:
            state = watching.state(host)
            seen.append((state["verdict"], (state["requests"] or {}).get("waiting", 0)))
            time.sleep(2)
    print(
        f"\nfull for {FULL_SECONDS:.0f} s: {max(waiting for _kind, waiting in seen)} waited; verdicts {sorted({kind for kind, _ in seen})}"
    )
    assert max(waiting for _kind, waiting in seen) > 20
    assert {kind for kind, _waiting in seen} <= {"idle", "busy"}
    assert observe.start_of(host) == first
    assert [name for name, _words in watching.acts(host, began)] == []
    assert observe.admitted() == set(observe.HOSTS)


def test_an_engine_that_stands_still_is_withdrawn_and_restarted() -> None:
    host, began, first = "spark1", time.time(), observe.start_of("spark1")
    lab.wait_for(lambda: watching.state(host)["verdict"] == "idle", 120, "the load is over")
    began = time.time()
    lab.on(host, "kill -STOP $(pgrep -f [V]LLM::EngineCore)")
    assert lab.on(host, HEALTH).strip() == "200", "it looks as healthy as ever"
    lab.wait_for(lambda: observe.admitted() == {"spark2"}, 120, "it is withdrawn")
    withdrawn = time.time() - began
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 300, "it is back")
    print(
        f"\nSIGSTOP: withdrawn after {withdrawn:.0f} s, admitted again after {time.time() - began:.0f} s; stalled_seconds is {STALLED}"
    )
    print("\n".join(f"  {name}: {words}" for name, words in watching.acts(host, began)))
    assert observe.start_of(host) != first
    names = [name for name, _words in watching.acts(host, began) if name != "seen"]
    assert names[:3] == ["told", "restart", "restarted"]
    assert names.count("restart") == 1
    observe.must_serve(observe.HOSTS)


def test_an_engine_that_ends_with_status_0_comes_back_by_its_gate() -> None:
    host, began = "spark2", time.time()
    lab.on(host, "kill -KILL $(pgrep -f [V]LLM::EngineCore)")
    lab.wait_for(lambda: observe.admitted() == {"spark1"}, 120, "it is withdrawn")
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 300, "it is back")
    print(f"\nits engine died, it ended with status 0: admitted again after {time.time() - began:.0f} s")
    names = [name for name, _words in watching.acts(host, began)]
    assert "restart" not in names, "systemd did that"
    assert names[-2:] == ["gate", "told"]
