# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sums over copies, on what the pages of two versions of vLLM say over ten minutes, one copy restarted in between."""

from __future__ import annotations

import re
from pathlib import Path

import promtool
import pytest
from pages import Engine, Process

STEPS = 40
# Copy a, then b: requests in each step, with tokens of the prompt and of the answer. Copy b begins anew at step 24.
WORK = {"a": (1, 100, 30), "b": (2, 100, 30)}
RESTART = 24
ROW = re.compile(r"^((?:vllm:|process_)\w+)(?:\{(.*)\})? (\S+)$")


def page(process: Process) -> dict[str, str]:
    """The page of a copy as series and values; the label of the model is of no interest here."""
    found = {}
    for line in process.page().splitlines():
        if row := ROW.match(line):
            labels = re.sub(r'model_name="(?:\\.|[^"\\])*"', 'model_name="m"', row[2] or 'engine="0"')
            found[f"{row[1]}{{{labels}}}"] = row[3]
    return found


def watched(copy: str, version: str, kv_use: float) -> dict[str, str]:
    """What Prometheus records of a copy."""
    requests, prompt, tokens = WORK[copy]

    def born(number: int) -> Process:
        engine = Engine(running=requests, waiting=1, kv_use=kv_use, drafted=(0, 0, 0))
        return Process(version, started=1_780_000_000.0 + number, engines=[engine])

    process, recorded = born(0), []
    for step in range(STEPS):
        if copy == "b" and step == RESTART:
            process = born(step)
        engine = process.engines[0]
        for _request in range(requests):
            engine.serve(prompt, tokens, first=0.2, each=0.03)
        engine.prefix = (engine.prefix[0] + 100 * requests, engine.prefix[1] + 40 * requests)
        drafts, drafted, accepted = engine.drafted or (0, 0, 0)
        engine.drafted = (drafts + 20, drafted + 40, accepted + 30)
        recorded.append(page(process))
    names = sorted({name for each in recorded for name in each})
    of = f'job="gb10_vllm_copies",site="s",copy="{copy}"'
    return {f"{name.rstrip('}')},{of}}}": " ".join(each.get(name, "_") for each in recorded) for name in names}


def around(copy: str) -> dict[str, str]:
    """What the programs on the hosts say of a copy."""
    of, requests = f'site="s",copy="{copy}"', WORK[copy][0]
    host, proxy = f'{{job="gb10_vllm_hosts",host="{copy}",{of}}}', f'job="gb10_vllm_hosts",host="p",{of}'
    return {
        f'up{{job="gb10_vllm_copies",{of}}}': f"1x{STEPS}",
        f'vllm:iteration_tokens_total_count{{job="gb10_vllm_copies",{of}}}': f"0+30x{STEPS}",
        f"gb10_vllm_copy_expected{host}": f"1x{STEPS}",
        f"gb10_vllm_kv_requests{host}": f"3x{STEPS}",
        f"gb10_vllm_kv_planned_requests{host}": f"4x{STEPS}",
        f"gb10_vllm_copy_admitted{{{proxy}}}": f"1x{STEPS}",
        f"gb10_vllm_proxy_cut_answers_total{{{proxy}}}": f"0+{requests}x{STEPS}",
        f'gb10_vllm_proxy_requests_total{{{proxy},status="200"}}': f"0+{8 * requests}x{STEPS}",
        f'gb10_vllm_proxy_requests_total{{{proxy},status="503"}}': f"0+{2 * requests}x{STEPS}",
        f'gb10_vllm_proxy_first_byte_seconds_bucket{{{proxy},le="0.25"}}': f"0+{requests}x{STEPS}",
        f'gb10_vllm_proxy_first_byte_seconds_bucket{{{proxy},le="+Inf"}}': f"0+{requests}x{STEPS}",
        f"gb10_vllm_proxy_first_byte_seconds_count{{{proxy}}}": f"0+{requests}x{STEPS}",
    }


KEEPER = '{job="gb10_vllm_hosts",host="p",site="s"}'
ROLLOUT = {
    f"gb10_vllm_rollout_open{KEEPER}": f"0x19 1x{STEPS}",
    f"gb10_vllm_rollout_seen_timestamp_seconds{KEEPER}": "_x20 300+15x20",
    f"gb10_vllm_rollout_quiet_seconds{KEEPER}": "_x20 60x20",
}


def expected() -> list[tuple[float, str, dict[str, float]]]:
    """Minutes, query without the site, values by the other labels."""
    both: list[tuple[float, str, dict[str, float]]] = []

    def copies(name: str, a: float, b: float, at: float = 5, more: str = "") -> None:
        both.append((at, f"gb10_vllm:copy_{name}", {f'copy="a"{more}': a, f'copy="b"{more}': b}))

    def whole(name: str, value: float, at: float = 5, more: str = "") -> None:
        both.append((at, f"gb10_vllm:site_{name}", {more: value}))

    # Tokens of a step are those of 15 s. At minute 6.5, copy b was begun anew half a minute ago, and at minute 9 long ago.
    for at in (5, 6.5, 9):
        copies("generation_tokens:rate1m", 2, 4, at)
        copies("prompt_tokens:rate1m", 100 / 15, 200 / 15, at)
        whole("generation_tokens:rate1m", 6, at)
        whole("prompt_tokens:rate1m", 20, at)
    copies("steps:rate1m", 2, 2)
    copies("running", 1, 2)
    copies("waiting", 1, 1)
    whole("running", 3)
    whole("waiting", 2)
    copies("kv_use", 0.40, 0.44)
    whole("kv_use:max", 0.44)
    whole("kv_use:mean", 0.42)
    copies("preemptions:rate5m", 0, 0)
    copies("prefix_queries:rate5m", 100 / 15, 200 / 15)
    copies("prefix_hits:rate5m", 40 / 15, 80 / 15)
    copies("prefix_hits:ratio5m", 0.4, 0.4)
    copies("draft_tokens:rate5m", 40 / 15, 40 / 15)
    copies("accepted_tokens:rate5m", 30 / 15, 30 / 15)
    copies("acceptance:ratio5m", 0.75, 0.75)
    whole("acceptance:ratio5m", 0.75)
    # Requests of 0.2 s until the first token are between the bounds 0.1 and 0.25; tokens of 0.03 s between 0.025 and 0.05.
    for quantile, first, between in ((50, 0.175, 0.0375), (95, 0.2425, 0.04875)):
        copies(f"first_token_seconds:p{quantile}", first, first)
        copies(f"inter_token_seconds:p{quantile}", between, between)
        whole(f"first_token_seconds:p{quantile}", first)
        whole(f"inter_token_seconds:p{quantile}", between)
    copies("queue_seconds:p95", 0.285, 0.285)
    copies("expected", 1, 1)
    copies("up", 1, 1)
    copies("admitted", 1, 1)
    copies("kv:ratio", 0.75, 0.75)
    whole("serving", 2)
    copies("share:ratio10m", 1 / 3, 2 / 3, 9)
    copies("cut_answers:ratio10m", 0.1, 0.1, 9)
    copies("first_byte_seconds:p95", 0.2375, 0.2375, 9)
    both.append((9, "gb10_vllm:proxy_errors:ratio5m", {"": 0.2}))
    both.append((9, "gb10_vllm:rollout_at_work", {"": 1}))
    both.append((4.5, "gb10_vllm:rollout_at_work", {}))
    both.append((9, "gb10_vllm:rollout_recent", {"": 1}))
    # Series by more labels, as one figure each.
    both.append(
        (
            5,
            'gb10_vllm:copy_requests:rate1m{finished_reason="stop",copy="b"}',
            {'finished_reason="stop",copy="b"': 2 / 15},
        )
    )
    both.append((5, 'gb10_vllm:site_requests:rate1m{finished_reason="stop"}', {'finished_reason="stop"': 0.2}))
    both.append((9, "sum by (status) (gb10_vllm:proxy_requests:rate1m)", {'status="200"': 1.6, 'status="503"': 0.4}))
    both.append(
        (9, "sum by (status) (gb10_vllm:proxy_requests:increase5m)", {'status="200"': 480, 'status="503"': 120})
    )
    # All copies have these bounds, and only these are in the sum.
    both.append((5, 'gb10_vllm:site_first_token_bucket:rate5m{le="0.25"}', {'le="0.25"': 0.2}))
    both.append((5, 'gb10_vllm:site_inter_token_bucket:rate5m{le="0.05"}', {'le="0.05"': 29 * 0.2}))
    both.append((5, 'gb10_vllm:copy_first_token_bucket:rate5m{le="0.25",copy="a"}', {'le="0.25",copy="a"': 1 / 15}))
    both.append((5, 'gb10_vllm:copy_inter_token_bucket:rate5m{le="0.05",copy="a"}', {'le="0.05",copy="a"': 29 / 15}))
    both.append((5, 'gb10_vllm:copy_queue_bucket:rate5m{le="+Inf",copy="a"}', {'le="+Inf",copy="a"': 1 / 15}))
    return both


def one_figure(query: str) -> str:
    """Without the labels that do not matter here, as whole hundred thousandths: promtool compares to the last bit."""
    return f"floor(100000 * sum by (copy, status, finished_reason, le) ({query}) + 0.5)"


# The other copy has the newest build: two builds at once, as in a rollout.
@pytest.mark.parametrize("old", ["0.8.5", "0.10.2"])
def test_sums_of_two_builds_and_through_a_restart(old: str, tmp_path: Path) -> None:
    series = {**watched("a", old, 0.40), **watched("b", "0.33.0", 0.44), **around("a"), **around("b"), **ROLLOUT}
    asked = [
        (
            minutes,
            one_figure(query),
            {f"{{{labels}}}": float(round(value * 100_000)) for labels, value in values.items()},
        )
        for minutes, query, values in expected()
    ]
    failed = promtool.run(tmp_path, series, asked, seconds=promtool.STEP)
    assert not failed, failed


def test_every_rule_is_tried() -> None:
    tried = {name for _minutes, query, _values in expected() for name in re.findall(r"gb10_vllm:\w+(?::\w+)?", query)}
    assert tried == set(promtool.records())
