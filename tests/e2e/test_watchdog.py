# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The watchdog on hosts whose engines misbehave on demand: what it restarts, what it leaves alone, and when it stops trying."""

from __future__ import annotations

import time

import observe
import pytest
import site_of_lab as lab
import watching

STALLED = 15
SITE = lab.Site(
    "stand-in",
    {
        "vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "2", "STANDIN_FAULTS_FILE": watching.FAULTS_INSIDE},
        "vllm_soak_seconds": 1,
        "vllm_watchdog_look_seconds": 1,
        "vllm_watchdog_completion_interval_seconds": 2,
        "vllm_watchdog_stalled_seconds": STALLED,
        "vllm_watchdog_refused_seconds": 3,
        "vllm_watchdog_restarts": 2,
        "vllm_watchdog_pause_seconds": 0,
    },
)

pytestmark = pytest.mark.rotating


def test_a_hung_engine_is_withdrawn_restarted_and_admitted_by_its_gate(copies: None) -> None:
    host, began, first = "spark1", time.time(), observe.start_of("spark1")
    watching.fault(host, {"hang": True})
    assert "200" in lab.on(host, "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/health"), (
        "healthy as ever"
    )
    lab.wait_for(lambda: observe.admitted() == {"spark2"}, 60, "the hung copy is withdrawn")
    withdrawn = time.time() - began
    watching.fault(host, {})
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 90, "it is back")
    print(
        f"\nhung with /health 200: withdrawn after {withdrawn:.0f} s, admitted again after {time.time() - began:.0f} s"
    )
    assert observe.start_of(host) != first
    names = [name for name, _words in watching.acts(host, began) if name != "seen"]
    assert names[:3] == ["told", "restart", "restarted"], "withdrawn before the restart"
    assert names[-2:] == ["gate", "told"]
    observe.must_serve(observe.HOSTS)


def test_an_engine_that_exits_0_comes_back_gated_and_is_not_restarted_twice() -> None:
    host, began = "spark2", time.time()
    watching.fault(host, {"exit_after": 0.01})
    lab.wait_for(lambda: observe.admitted() == {"spark1"}, 60, "the copy that ended is withdrawn")
    watching.fault(host, {})
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 90, "it is back")
    print(f"\nexit 0: back after {time.time() - began:.0f} s, most of which systemd waits before its restart")
    names = [name for name, _words in watching.acts(host, began)]
    assert "restart" not in names, "systemd did that"
    assert names[-2:] == ["gate", "told"]


def test_nothing_is_done_while_somebody_pauses_it() -> None:
    host, first, before = "spark1", observe.start_of("spark1"), time.time()
    watching.fault(host, {"hang": True})
    lab.wait_for(lambda: watching.state(host)["completion"] == "waits", 30, "it asks and gets no answer")
    lab.on(host, "mkdir -p /var/lib/gb10-vllm/pause; touch /var/lib/gb10-vllm/pause/mine")
    lab.wait_for(lambda: watching.state(host)["verdict"] == "stalled", 60, "it sees what it does not act upon")
    assert watching.state(host)["why_not"] == "paused by mine (an operator's file)"
    watching.fault(host, {})
    lab.wait_for(lambda: watching.state(host)["verdict"] != "stalled", 30, "the engine works again")
    lab.on(host, "rm /var/lib/gb10-vllm/pause/mine")
    assert observe.start_of(host) == first
    assert observe.admitted() == set(observe.HOSTS)
    assert "restart" not in [name for name, _words in watching.acts(host, before)]


def test_a_full_engine_is_left_alone_while_a_broken_one_is_tried_in_vain_then_left_in_peace() -> None:
    full, broken, began = "spark1", "spark2", time.time()
    first = observe.start_of(full)
    # Its release waits a quarter of a minute before each of its own restarts, which only makes this story longer.
    lab.on(
        broken,
        "mkdir -p /run/systemd/system/vllm.service.d; printf '[Service]\\nRestartSec=1\\n' > /run/systemd/system/vllm.service.d/90-story.conf; "
        "systemctl daemon-reload",
    )
    with watching.load(full, STALLED * 3, requests=48, tokens=400):
        watching.fault(broken, {"refuse_memory": True})
        lab.on(broken, "docker kill vllm")
        lab.wait_for(lambda: watching.state(broken)["gave_up"] != "", 150, "it gives up")
        print(f"\nbroken: given up after {time.time() - began:.0f} s: {watching.state(broken)['gave_up']}")
        names = [name for name, _words in watching.acts(broken, began)]
        assert (names.count("restart"), names.count("gave_up")) == (2, 1)
        lab.wait_for(lambda: watching.state(full)["verdict"] == "busy", 30, "the other one is full")
        assert watching.state(full)["requests"]["waiting"] > 10
    assert observe.start_of(full) == first
    assert "restart" not in [name for name, _words in watching.acts(full, began)]
    # Silent all the while, and reported.
    assert [name for name, _words in watching.acts(broken, began)] == names
    assert observe.admitted() == {full}
    assert "gb10_vllm_watchdog_gave_up 1" in lab.on(broken, "cat /var/lib/gb10-vllm/metrics/watchdog.prom")


def test_a_person_who_mends_it_ends_the_silence() -> None:
    host = "spark2"
    watching.fault(host, {})
    lab.on(
        host,
        "rm /run/systemd/system/vllm.service.d/90-story.conf; systemctl daemon-reload; systemctl reset-failed vllm; systemctl start vllm",
    )
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 90, "it is back")
    lab.wait_for(lambda: watching.state(host)["gave_up"] == "", 20, "it watches again")
    observe.must_serve(observe.HOSTS)


def test_what_a_person_stops_stays_stopped() -> None:
    host, began = "spark2", time.time()
    lab.on(host, "systemctl stop vllm")
    lab.wait_for(lambda: observe.admitted() == {"spark1"}, 30, "it is withdrawn")
    lab.wait_for(lambda: watching.state(host)["verdict"] == "stopped", 30, "it sees that a person did that")
    assert "somebody stopped" in watching.state(host)["why_not"]
    lab.on(host, "systemctl start vllm")
    lab.wait_for(lambda: observe.admitted() == set(observe.HOSTS), 90, "it is back by its gate")
    names = [name for name, _words in watching.acts(host, began)]
    assert "restart" not in names
    assert names[-2:] == ["gate", "told"]
