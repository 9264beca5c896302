# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the dashboards of the role monitoring. What is in them is said once here, in words; Grafana's JSON says it ten times.

Usage: make_dashboards.py [FOLDER]. A test sees to it that the files in the role are what this writes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from panels import BAD, GOOD, PLAIN, SHOWN, SOURCE, WARN, lines, placed, stat, steps, table, variable

FOLDER = Path(__file__).resolve().parents[2] / "roles" / "monitoring" / "files" / "dashboards"
SITE = 'site="$site"'
COPY = 'site="$site",copy="$copy"'
HOST = 'site="$site",host="$copy"'


def dashboard(uid: str, title: str, words: str, variables: list[dict[str, Any]], rows: Any) -> dict[str, Any]:
    source = {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus", "refresh": 1}
    # While one is open, and as long as a failed or left one is the newest.
    rollouts = {
        "name": "Rollouts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "purple",
        "expr": f'gb10_vllm_rollout_info{{{SITE},state!="ok"}}',
        "titleFormat": "{{verb}} ({{path}}) to {{topology}}: {{state}}",
        "textFormat": "{{rollout}}",
        "step": "5s",
    }
    return {
        "uid": uid,
        "title": title,
        "description": words,
        "tags": ["gb10-vllm"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "timezone": "browser",
        "templating": {"list": [source, variable("site", "Site", "label_values(gb10_vllm:copy_up, site)"), *variables]},
        "annotations": {"list": [rollouts]},
        "links": [
            {
                "type": "dashboards",
                "tags": ["gb10-vllm"],
                "title": "vLLM",
                "tooltip": "The other dashboards of this site",
                "icon": "external link",
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
                "targetBlank": False,
            }
        ],
        "panels": list(placed(rows)),
    }


def each(name: str, more: str = "") -> str:
    return f"gb10_vllm:copy_{name}{{{SITE}{more}}}"


def of_site(name: str) -> str:
    return f"gb10_vllm:site_{name}{{{SITE}}}"


def site() -> dict[str, Any]:
    errors = f"gb10_vllm:proxy_errors:ratio5m{{{SITE}}}"
    numbers = [
        stat(
            "Copies that serve",
            "Answer and are admitted to the proxy.",
            of_site("serving"),
            limits=steps((None, BAD), (1, GOOD)),
        ),
        stat(
            "Rollout",
            "Whether one is at work.",
            f"max(gb10_vllm_rollout_open{{{SITE}}})",
            limits=steps((None, GOOD), (1, "purple")),
            texts={"0": "none", "1": "at work"},
        ),
        stat(
            "Alerts",
            "That fire now.",
            f'count(ALERTS{{{SITE},alertstate="firing"}}) or vector(0)',
            limits=steps((None, GOOD), (1, BAD)),
        ),
        stat("Tokens per second", "Written by all copies.", of_site("generation_tokens:rate1m")),
        stat("Running", "Requests in all copies.", of_site("running")),
        stat(
            "Waiting",
            "Requests in the queues of all copies.",
            of_site("waiting"),
            limits=steps((None, PLAIN), (1, WARN)),
        ),
        stat("Fullest cache", "Of all copies.", of_site("kv_use:max"), "percentunit", steps((None, GOOD), (0.9, WARN))),
        stat(
            "Errors",
            "Part of requests with 500 and above, of at least 20.",
            errors,
            "percentunit",
            steps((None, GOOD), (0.05, BAD)),
        ),
    ]
    return dashboard(
        "gb10-vllm-site",
        "vLLM on GB10: site",
        "All copies of one model together. Counters are read from each copy and summed; shares never are.",
        [],
        [
            (4, numbers),
            (
                8,
                [
                    lines(
                        "Tokens per second",
                        "Each copy, and their sum.",
                        [(each("generation_tokens:rate1m"), "{{copy}}"), (of_site("generation_tokens:rate1m"), "sum")],
                        "none",
                    ),
                    lines(
                        "Requests in the engines",
                        "Running and waiting.",
                        [(each("running"), "{{copy}} running"), (each("waiting"), "{{copy}} waiting")],
                        "none",
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Time to the first token",
                        "As the engines measure it; only with five requests or more within five minutes.",
                        [(of_site("first_token_seconds:p50"), "median"), (of_site("first_token_seconds:p95"), "95 %")],
                        "s",
                    ),
                    lines(
                        "Time between tokens",
                        "One client's speed is the reciprocal.",
                        [(of_site("inter_token_seconds:p50"), "median"), (of_site("inter_token_seconds:p95"), "95 %")],
                        "s",
                    ),
                    lines(
                        "Cache in use",
                        "Each copy. 100 % makes requests wait.",
                        [(each("kv_use"), "{{copy}}"), (of_site("kv_use:mean"), "mean")],
                        "percentunit",
                        most=1,
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Answers of the proxy",
                        "Requests per second by status; 503 without a copy is the proxy's own.",
                        [(f"sum by (status) (gb10_vllm:proxy_requests:rate1m{{{SITE}}})", "{{status}}")],
                        "reqps",
                        stacked=True,
                    ),
                    lines(
                        "Part of the requests",
                        "Of each copy within ten minutes, of at least 50.",
                        [(each("share:ratio10m"), "{{copy}}")],
                        "percentunit",
                        most=1,
                    ),
                    lines(
                        "Answers that are broken off",
                        "By the copy or the client, within ten minutes, of at least 20.",
                        [(each("cut_answers:ratio10m"), "{{copy}}")],
                        "percentunit",
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Memory left",
                        "The engine and the system share it; below the line is an alarm.",
                        [
                            (f"node_memory_MemAvailable_bytes{{{SITE}}}", "{{host}}"),
                            (f"gb10_vllm:threshold_memory_bytes{{{SITE}}}", "alarm"),
                        ],
                        "bytes",
                    ),
                    lines(
                        "Accepted drafts",
                        "Speculative decoding; empty without it.",
                        [(each("acceptance:ratio5m"), "{{copy}}"), (of_site("acceptance:ratio5m"), "all")],
                        "percentunit",
                        most=1,
                    ),
                    lines(
                        "Prompt from the cache",
                        "Part of the prompt tokens that another request has left there.",
                        [(each("prefix_hits:ratio5m"), "{{copy}}")],
                        "percentunit",
                        most=1,
                    ),
                ],
            ),
            (
                7,
                [
                    table("Releases", "What runs where.", f"gb10_vllm_release_info{{{SITE}}}", [*SHOWN, "host"]),
                    table("Newest rollout", "From its journal.", f"gb10_vllm_rollout_info{{{SITE}}}", [*SHOWN, "host"]),
                    table("Alerts", "Pending and firing.", f"ALERTS{{{SITE}}}", SHOWN),
                ],
            ),
        ],
    )


def copy() -> dict[str, Any]:
    mine = f"{{{COPY}}}"

    def own(name: str) -> str:
        return f"gb10_vllm:copy_{name}{mine}"

    yes = {"0": "no", "1": "yes"}
    good = steps((None, BAD), (1, GOOD))
    numbers = [
        stat("Answers", "Whether its page can be read.", own("up"), limits=good, texts=yes),
        stat("Admitted", "Whether the proxy gives it requests.", own("admitted"), limits=good, texts=yes),
        stat(
            "Cache against plan",
            "Requests that fit, of those planned.",
            own("kv:ratio"),
            "percentunit",
            steps((None, BAD), (0.85, GOOD)),
        ),
        stat("Cache", "Tokens that fit.", f"max(gb10_vllm_kv_tokens{mine})", "short"),
        stat("Started again", "By systemd, since a person or a rollout did.", f"max(gb10_vllm_unit_restarts{mine})"),
        stat(
            "Watched",
            "Whether what acts by itself may.",
            f"max(gb10_vllm_paused{mine})",
            texts={"0": "yes", "1": "paused"},
        ),
        stat("Up for", "Since the engine's process began.", f"time() - max(process_start_time_seconds{{{COPY}}})", "s"),
    ]
    return dashboard(
        "gb10-vllm-copy",
        "vLLM on GB10: one copy",
        "One copy and its host.",
        [variable("copy", "Copy", 'label_values(gb10_vllm:copy_up{site="$site"}, copy)')],
        [
            (4, numbers),
            (
                8,
                [
                    lines(
                        "Tokens per second",
                        "Written, and read from prompts.",
                        [(own("generation_tokens:rate1m"), "written"), (own("prompt_tokens:rate1m"), "read")],
                        "none",
                    ),
                    lines(
                        "Requests", "In the engine.", [(own("running"), "running"), (own("waiting"), "waiting")], "none"
                    ),
                    lines(
                        "Cache in use", "Of its engines the fullest.", [(own("kv_use"), "cache")], "percentunit", most=1
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Time to the first token",
                        "In the engine.",
                        [(own("first_token_seconds:p50"), "median"), (own("first_token_seconds:p95"), "95 %")],
                        "s",
                    ),
                    lines(
                        "Time between tokens",
                        "In the engine.",
                        [(own("inter_token_seconds:p50"), "median"), (own("inter_token_seconds:p95"), "95 %")],
                        "s",
                    ),
                    lines(
                        "What clients wait for",
                        "First byte at the proxy, and the engine's queue, 95 % each.",
                        [(own("first_byte_seconds:p95"), "first byte"), (own("queue_seconds:p95"), "queue")],
                        "s",
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Ended requests",
                        "Per second, by the reason for their end.",
                        [(f"gb10_vllm:copy_requests:rate1m{mine}", "{{finished_reason}}")],
                        "reqps",
                        stacked=True,
                    ),
                    lines(
                        "Preempted requests",
                        "Per second: the cache was full, and work is done twice.",
                        [(own("preemptions:rate5m"), "preempted")],
                        "reqps",
                    ),
                    lines(
                        "Past the proxy",
                        "Connections of clients that may not.",
                        [(f"sum by (client) (gb10_vllm_bypass_connections{mine}) or vector(0)", "{{client}}")],
                        "none",
                    ),
                ],
            ),
            (
                8,
                [
                    lines(
                        "Memory left on its host",
                        "Below the line is an alarm.",
                        [
                            (f"node_memory_MemAvailable_bytes{{{HOST}}}", "left"),
                            (f"gb10_vllm:threshold_memory_bytes{{{SITE}}}", "alarm"),
                        ],
                        "bytes",
                    ),
                    lines(
                        "Processors of its host",
                        "Part that is not idle.",
                        [(f'1 - avg(rate(node_cpu_seconds_total{{{HOST},mode="idle"}}[1m]))', "busy")],
                        "percentunit",
                        most=1,
                    ),
                    lines(
                        "Network of its host",
                        "Bytes per second of all interfaces; in a pair the link is among them.",
                        [
                            (f'sum(rate(node_network_receive_bytes_total{{{HOST},device!="lo"}}[1m]))', "in"),
                            (f'sum(rate(node_network_transmit_bytes_total{{{HOST},device!="lo"}}[1m]))', "out"),
                        ],
                        "Bps",
                    ),
                ],
            ),
        ],
    )


def texts() -> dict[str, str]:
    """The files by name."""
    made = {"gb10-vllm-site.json": site(), "gb10-vllm-copy.json": copy()}
    return {name: _readable(content) for name, content in made.items()}


def _readable(content: dict[str, Any]) -> str:
    """JSON with one line for each panel, so that a difference shows which ones have changed."""
    marks = {f"@{panel['id']}@": json.dumps(panel) for panel in content["panels"]}
    text = json.dumps({**content, "panels": list(marks)}, indent=2)
    for mark, panel in marks.items():
        text = text.replace(f'"{mark}"', panel)
    return text + "\n"


def queries(content: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every expression of a dashboard, with where it is."""
    for panel in content["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for annotation in content["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, text in texts().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main()
