# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every alert fires when it should and is silent when not. A healthy site is the beginning of each case; a case changes some series."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import promtool

# One value each 15 s. What a case changes happens after 3 minutes; what fires is asked after 20.
N = 100
MINUTES = 20
# A playbook, a variable or a command.
TO_DO = re.compile(r"\w+\.yml|vllm_\w+|`.+`|Ping")


def flat(value: float, before: float | None = None, since: int = 12) -> str:
    """The same all the time; with `before`, that value until the step `since`."""
    return f"{value}x{N}" if before is None else f"{before}x{since - 1} {value}x{N - since}"


def rising(step: float, until: int = N) -> str:
    """A counter, which stands still from the step `until` on."""
    return f"0+{step}x{until}" + (f" {step * until}x{N - until}" if until < N else "")


def healthy() -> dict[str, str]:
    series: dict[str, str] = {}
    for copy in ("a", "b"):
        of = f'site="s",copy="{copy}"'
        engine = f'job="gb10_vllm_copies",{of},engine="0",model_name="m"'
        on = f'job="gb10_vllm_hosts",site="s",host="{copy}"'
        series |= {
            f'up{{job="gb10_vllm_copies",{of}}}': flat(1),
            f"up{{{on}}}": flat(1),
            f"vllm:num_requests_running{{{engine}}}": flat(2),
            f"vllm:num_requests_waiting{{{engine}}}": flat(0),
            f"vllm:generation_tokens_total{{{engine}}}": rising(300),
            f"vllm:prompt_tokens_total{{{engine}}}": rising(600),
            f'gb10_vllm_copy_expected{{{on},copy="{copy}"}}': flat(1),
            f'gb10_vllm_unit_restarts{{{on},copy="{copy}"}}': flat(0),
            f'gb10_vllm_kv_requests{{{on},copy="{copy}"}}': flat(4.1),
            f'gb10_vllm_kv_planned_requests{{{on},copy="{copy}"}}': flat(4.0),
            f'gb10_vllm_paused{{{on},copy="{copy}"}}': flat(0),
            f"node_memory_MemAvailable_bytes{{{on}}}": flat(8 * 2**30),
            f'gb10_vllm_exporter_timestamp_seconds{{{on},exporter="engine"}}': "0+15x100",
            f'gb10_vllm_exporter_problem{{{on},exporter="engine"}}': flat(0),
            f"gb10_vllm_watchdog_gave_up{{{on}}}": flat(0),
            f"gb10_vllm_watchdog_look_time_seconds{{{on}}}": rising(15),
            f'gb10_vllm_guard_acts_total{{{on},act="stop"}}': flat(0),
        }
        on = 'job="gb10_vllm_hosts",site="s",host="p"'
        series |= {
            f'gb10_vllm_copy_admitted{{{on},copy="{copy}"}}': flat(1),
            f'gb10_vllm_proxy_requests_total{{{on},copy="{copy}",status="200"}}': rising(10),
            f'gb10_vllm_proxy_requests_total{{{on},copy="{copy}",status="503"}}': flat(0),
            f'gb10_vllm_proxy_cut_answers_total{{{on},copy="{copy}"}}': flat(0),
        }
    keeper = '{job="gb10_vllm_hosts",site="s",host="p"}'
    return series | {
        f"gb10_vllm_hold_declared{keeper}": flat(0),
        f"gb10_vllm_rollout_open{keeper}": flat(0),
        f"gb10_vllm_rollout_left_halfway{keeper}": flat(0),
        f"gb10_vllm_certificate_end_timestamp_seconds{keeper}": flat(90 * 86400),
    }


KEEPER = '{job="gb10_vllm_hosts",site="s",host="p"}'
# A rollout from minute 3 on that writes its journal all the time.
ROLLOUT = {
    f"gb10_vllm_rollout_open{KEEPER}": flat(1, 0),
    f"gb10_vllm_rollout_lock_timestamp_seconds{KEEPER}": "_x12 180x100",
    f"gb10_vllm_rollout_seen_timestamp_seconds{KEEPER}": "_x12 180+15x100",
    f"gb10_vllm_rollout_quiet_seconds{KEEPER}": "_x12 1200x100",
}
# The same, whose controller was lost at once.
SILENT = {**ROLLOUT, f"gb10_vllm_rollout_seen_timestamp_seconds{KEEPER}": "_x12 180x100"}


def on(copy: str) -> str:
    return f'job="gb10_vllm_hosts",site="s",host="{copy}"'


def engine(name: str, copy: str) -> str:
    return f'vllm:{name}{{job="gb10_vllm_copies",site="s",copy="{copy}",engine="0",model_name="m"}}'


def program(name: str, copy: str) -> str:
    return f'gb10_vllm_{name}{{{on(copy)},copy="{copy}"}}'


def proxy(name: str, copy: str, status: str = "") -> str:
    return f'gb10_vllm_{name}{{{on("p")},copy="{copy}"' + (f',status="{status}"}}' if status else "}")


def up(copy: str, job: str = "copies") -> str:
    label = "copy" if job == "copies" else "host"
    return f'up{{job="gb10_vllm_{job}",site="s",{label}="{copy}"}}'


def gone(*copies: str) -> dict[str, str]:
    """Engines that do not answer from minute 3 on: their figures end with them."""
    changes: dict[str, str] = {}
    for copy in copies:
        changes |= {up(copy): flat(0, 1)}
        for name, before in (("num_requests_running", "2x11"), ("num_requests_waiting", "0x11")):
            changes[engine(name, copy)] = f"{before} _x100"
        changes[engine("generation_tokens_total", copy)] = "0+300x11 _x100"
        changes[engine("prompt_tokens_total", copy)] = "0+600x11 _x100"
    return changes


STALLED = {
    engine("generation_tokens_total", "a"): rising(300, 12),
    engine("prompt_tokens_total", "a"): rising(600, 12),
}
STARVED = {engine("num_requests_running", "a"): flat(0, 2), engine("num_requests_waiting", "b"): flat(3, 0)}
ERRORS = {proxy("proxy_requests_total", "a", "503"): f"0x12 0+5x{N - 12}"}
UNEVEN = {proxy("proxy_requests_total", "a", "200"): rising(10, 12)}
CUT = {proxy("proxy_cut_answers_total", "a"): f"0x12 0+5x{N - 12}"}
NAME_OF = {copy: {"copy": copy} for copy in "ab"} | {"": {}}

# (what is the case, what is different from a healthy site, what fires at minute 30)
Fires = dict[str, list[dict[str, str]]]
CASES: list[tuple[str, dict[str, str], Fires]] = [
    ("healthy", {}, {}),
    ("healthy, in a rollout", ROLLOUT, {}),
    ("no copy answers", gone("a", "b"), {"NobodyServes": [{}], "CopyDown": [{"copy": "a"}, {"copy": "b"}]}),
    ("none is admitted", {proxy("copy_admitted", copy): flat(0, 1) for copy in "ab"}, {"NobodyServes": [{}]}),
    ("no copy answers, in a rollout", gone("a", "b") | ROLLOUT, {}),
    (
        "no copy answers, and the rollout is silent for too long",
        gone("a", "b") | {key: value.replace("1200x100", "900x100") for key, value in SILENT.items()},
        {"NobodyServes": [{}], "CopyDown": [{"copy": "a"}, {"copy": "b"}], "RolloutSilent": [{}]},
    ),
    ("one copy does not answer", gone("a"), {"CopyDown": [{"copy": "a"}]}),
    (
        "one copy does not answer for half a minute",
        {up("a"): "1x78 0x60"},
        {},
    ),
    ("the other machine of a pair has no port", gone("a") | {program("copy_expected", "a"): flat(0, 1)}, {}),
    (
        "a host is gone with all that is on it",
        gone("a")
        | {up("a", "hosts"): flat(0, 1)}
        | {
            program(name, "a"): f"{value}x11 _x100"
            for name, value in (("copy_expected", 1), ("unit_restarts", 0), ("paused", 0))
        }
        | {f'gb10_vllm_exporter_timestamp_seconds{{{on("a")},exporter="engine"}}': "0+15x11 _x100"}
        | {f"gb10_vllm_watchdog_look_time_seconds{{{on('a')}}}": "0+15x11 _x100"},
        {"CopyDown": [{"copy": "a"}], "HostDown": [{"copy": "a", "host": "a"}]},
    ),
    ("running requests and no token", STALLED, {"CopyStalled": [{"copy": "a"}]}),
    ("running requests and no token, in a rollout", STALLED | ROLLOUT, {}),
    ("no token, and no request", STALLED | {engine("num_requests_running", "a"): flat(0, 2)}, {}),
    ("a long prompt: steps, and no token yet", STALLED | {engine("iteration_tokens_total_count", "a"): rising(20)}, {}),
    ("idle while the other one has a queue", STARVED, {"CopyStarved": [{"copy": "a"}]}),
    (
        "idle beside a queue, soon after a rollout",
        STARVED
        | {f"gb10_vllm_rollout_open{KEEPER}": "0x11 1x50 0x60"}
        | {key: value for key, value in ROLLOUT.items() if "open" not in key},
        {},
    ),
    ("idle and not admitted", STARVED | {proxy("copy_admitted", "a"): flat(0, 1)}, {}),
    ("a hold and no rollout", {f"gb10_vllm_hold_declared{KEEPER}": flat(1, 0)}, {"HoldLeft": [{}]}),
    ("a hold of a rollout", ROLLOUT | {f"gb10_vllm_hold_declared{KEEPER}": flat(1, 0)}, {}),
    (
        "a page without figures",
        {
            series: "_x100"
            for copy in "a"
            for name in ("num_requests_running", "num_requests_waiting")
            for series in [engine(name, copy)]
        },
        {"NoFigures": [{"copy": "a"}]},
    ),
    ("restarts again and again", {program("unit_restarts", "a"): "0x60 1x5 2x5 3x50"}, {"Restarts": [{"copy": "a"}]}),
    ("one restart", {program("unit_restarts", "a"): "0x60 1x60"}, {}),
    ("less cache than planned", {program("kv_requests", "a"): flat(3.0)}, {"KvShortfall": [{"copy": "a"}]}),
    ("a little less cache than planned", {program("kv_requests", "a"): flat(3.6)}, {}),
    (
        "little memory on an engine host",
        {f"node_memory_MemAvailable_bytes{{{on('a')}}}": flat(2 * 2**30, 8 * 2**30)},
        {"MemoryFloor": [{"copy": "a", "host": "a"}]},
    ),
    ("little memory on a proxy", {f"node_memory_MemAvailable_bytes{{{on('p')}}}": flat(2 * 2**30)}, {}),
    ("a fifth of the answers is 503", ERRORS, {"ProxyErrors": [{}]}),
    ("a fifth is 503, in a rollout", ERRORS | ROLLOUT, {}),
    (
        "a few errors, and hardly a request",
        {
            **{proxy("proxy_requests_total", copy, "200"): flat(0) for copy in "ab"},
            proxy("proxy_requests_total", "a", "503"): "0x76 1x60",
        },
        {},
    ),
    ("a third of the answers is broken off", CUT, {"AnswersCut": [{"copy": "a"}]}),
    ("a third is broken off, in a rollout", CUT | ROLLOUT, {}),
    ("one of two copies gets everything", UNEVEN, {"OneCopyCarriesAll": [{"copy": "b"}]}),
    ("one of one copy gets everything", UNEVEN | {proxy("copy_admitted", "a"): flat(0, 1)}, {}),
    ("one of two gets everything, in a rollout", UNEVEN | ROLLOUT, {}),
    (
        "somebody at the engine's port",
        {program("bypass_seen_timestamp_seconds", "a"): flat(1100)},
        {"BypassSeen": [{"copy": "a"}]},
    ),
    ("somebody was there before", {program("bypass_seen_timestamp_seconds", "a"): flat(600)}, {}),
    (
        "the certificate ends soon",
        {f"gb10_vllm_certificate_end_timestamp_seconds{KEEPER}": flat(10 * 86400)},
        {"CertificateEnds": [{"host": "p"}]},
    ),
    (
        "a rollout without end and lock",
        {f"gb10_vllm_rollout_left_halfway{KEEPER}": flat(1, 0)},
        {"RolloutLeftHalfWay": [{}]},
    ),
    ("a silent rollout", SILENT, {}),
    (
        "a rollout that is silent for too long",
        SILENT | {f"gb10_vllm_rollout_quiet_seconds{KEEPER}": "_x12 900x100"},
        {"RolloutSilent": [{}]},
    ),
    (
        "a lock from yesterday",
        ROLLOUT | {f"gb10_vllm_rollout_lock_timestamp_seconds{KEEPER}": "_x12 -9000x100"},
        {"LockHeldLong": [{}]},
    ),
    (
        "the watchdog gave up",
        {f"gb10_vllm_watchdog_gave_up{{{on('a')}}}": flat(1, 0)},
        {"WatchdogGaveUp": [{"copy": "a", "host": "a"}]},
    ),
    (
        "the pair's program gave up",
        {f"gb10_vllm_pair_gave_up{{{on('a')}}}": flat(1, 0)},
        {"WatchdogGaveUp": [{"copy": "a", "host": "a"}]},
    ),
    (
        "the watchdog stands still",
        {f"gb10_vllm_watchdog_look_time_seconds{{{on('a')}}}": rising(15, 12)},
        {"WatchSilent": [{"copy": "a", "host": "a"}]},
    ),
    (
        "the guard acted",
        {f'gb10_vllm_guard_acts_total{{{on("a")},act="stop"}}': "0x60 1x60"},
        {"GuardActed": [{"host": "a"}]},
    ),
    ("the guard only refused new work", {f'gb10_vllm_guard_acts_total{{{on("a")},act="refuse"}}': "0x60 1x60"}, {}),
    (
        "the guard gave up",
        {f"gb10_vllm_guard_gave_up{{{on('a')}}}": flat(1, 0)},
        {"GuardGaveUp": [{"host": "a"}]},
    ),
    ("the guard acted long ago", {f'gb10_vllm_guard_acts_total{{{on("a")},act="stop"}}': "0x4 1x139"}, {}),
    (
        "an exporter that stands still",
        {f'gb10_vllm_exporter_timestamp_seconds{{{on("a")},exporter="engine"}}': rising(15, 12)},
        {"ExporterSilent": [{"host": "a", "exporter": "engine"}]},
    ),
    (
        "an exporter that cannot look",
        {f'gb10_vllm_exporter_problem{{{on("a")},exporter="engine"}}': flat(1, 0)},
        {"ExporterSilent": [{"host": "a", "exporter": "engine"}]},
    ),
]
# Longer than half an hour: (as above, with the minute).
LONG: list[tuple[str, dict[str, str], int, Fires]] = [
    ("a window of more than 45 minutes", {
        **{up(copy): "1x39 0x280" for copy in "ab"},
        **{proxy("copy_admitted", copy): "1x39 0x280" for copy in "ab"},
        f"gb10_vllm_rollout_open{KEEPER}": "0x39 1x280",
        f"gb10_vllm_rollout_seen_timestamp_seconds{KEEPER}": "_x40 600+15x280",
        f"gb10_vllm_rollout_quiet_seconds{KEEPER}": "_x40 1200x280",
    }, 60, {"WindowTooLong": [{}]}),
    ("a window of 40 minutes", {
        **{up(copy): "1x39 0x280" for copy in "ab"},
        **{proxy("copy_admitted", copy): "1x39 0x280" for copy in "ab"},
        f"gb10_vllm_rollout_open{KEEPER}": "0x39 1x280",
        f"gb10_vllm_rollout_seen_timestamp_seconds{KEEPER}": "_x40 600+15x280",
        f"gb10_vllm_rollout_quiet_seconds{KEEPER}": "_x40 1200x280",
    }, 50, {}),
    ("a pause of a day", {program("paused", "a"): "1x1700"}, 400, {"PausedLong": [{"copy": "a"}]}),
    ("a pause with an end", {program("paused", "a"): "1x1500 0x200"}, 400, {}),
]  # fmt: skip

FIRING = 'count by (site, alertname, copy, host, exporter) (ALERTS{alertstate="firing"})'


def of(site: str, series: dict[str, str]) -> dict[str, str]:
    return {name.replace('site="s"', f'site="{site}"'): values for name, values in series.items()}


def samples(site: str, fires: Fires) -> dict[str, float]:
    found = {}
    for name, labels in fires.items():
        for each in labels:
            told = {"site": site, "alertname": f"Gb10Vllm{name}", **each}
            found["{" + ",".join(f'{key}="{value}"' for key, value in told.items()) + "}"] = 1.0
    return found


def test_each_alert_fires_when_it_should_and_else_none_does(tmp_path: Path) -> None:
    series: dict[str, str] = {}
    expected: dict[str, float] = {}
    assert len({name for name, *_rest in CASES}) == len(CASES)
    for name, changes, fires in CASES:
        series |= of(name, healthy() | changes)
        expected |= samples(name, fires)
    failed = promtool.run(tmp_path, series, [(MINUTES, FIRING, expected)])
    assert not failed, failed


def test_what_takes_long_fires_late(tmp_path: Path) -> None:
    series: dict[str, str] = {}
    asked: list[tuple[float, str, dict[str, float]]] = []
    for name, changes, minutes, fires in LONG:
        series |= of(name, changes)
        query = FIRING.replace("ALERTS{", f'ALERTS{{site="{name}",')
        asked.append((minutes, query, samples(name, fires)))
    failed = promtool.run(tmp_path, series, asked, seconds=120)
    assert not failed, failed


def test_each_alert_has_a_case_in_which_it_fires() -> None:
    fired = {f"Gb10Vllm{name}" for _name, _changes, fires in CASES for name in fires}
    fired |= {f"Gb10Vllm{name}" for _name, _changes, _at, fires in LONG for name in fires}
    assert fired == set(promtool.alerts())


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    for name, rule in promtool.alerts().items():
        said: dict[str, Any] = rule["annotations"]
        assert said.keys() == {"summary", "description", "runbook"}, name
        assert TO_DO.search(said["runbook"]), name
        assert rule["labels"]["severity"] in ("warning", "critical"), name
