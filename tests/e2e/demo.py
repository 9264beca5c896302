# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job on the lab: a split model becomes one copy per host behind the proxy, and goes back, under load.

`python demo.py --engine real|stand-in` sets the lab up, runs the playbooks an owner would run, and prints a report; its last
line is one JSON object with the figures. Nothing in it is estimated: times are from the rollout's journal and from the
records of the clients. The report that each rollout leaves is beside it, with the same times as a picture.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import observe
import site_of_lab as site
from traffic import summary

# Long enough to see steady traffic on both sides of a change.
STEADY_SECONDS = 10


def steady(records: Path, seconds: float = STEADY_SECONDS) -> None:
    """Let the clients send until so many requests of steady traffic have been answered, not for a fixed time."""
    observe.answered_more(records, int(5 * seconds), 300)


def figures(records: list[dict[str, Any]], events: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """One change in figures. The window is the time in which no server was admitted."""
    withdrawn, admitted = site.moment(events, "withdrawn"), site.moment(events, "admitted")
    first = min((event for event in events if event["step"] == "passed"), key=lambda event: event["time"])
    start = min(event["time"] for event in events if event["step"] == "started")
    gates = [event["time"] for event in events if event["step"] == "passed"]
    marks = {"start": withdrawn, "end": admitted, "gate": first["time"]}
    seen = summary.summarise(records, marks)
    return {
        "window_seconds": round(admitted - withdrawn, 2),
        "engine_start_seconds": round(first["time"] - start, 2),
        "gate_to_first_200_seconds": round(seen["first_success"]["gate"], 3),
        "gates_apart_seconds": round(max(gates) - min(gates), 2),
        "longest_gap_seconds": round(seen["longest_gap"], 2),
        "playbook_seconds": round(seconds, 1),
        "requests": seen["requests"],
        "copies": seen["copies"],
        "retries": seen["retries"],
    }


def change(name: str, lab_site: site.Site, records: Path, variables: dict[str, Any], quiet: bool) -> dict[str, Any]:
    """Run one playbook under load and measure it."""
    before = len(observe.read(records))
    steady(records)
    started = time.monotonic()
    lab_site.must_play(name, variables={**variables, "vllm_report_enabled": True}, quiet=quiet)
    seconds = time.monotonic() - started
    steady(records)
    return {**figures(observe.read(records)[before:], site.journal(), seconds), "report": newest_report()}


def newest_report() -> str:
    """The page of the newest rollout on this machine, as the last play of a rollout names it."""
    rollout = Path(site.on("proxy1", "ls /var/lib/gb10-vllm/rollouts/*.jsonl | sort | tail -n 1").strip()).stem
    page = site.ROOT / "reports" / f"{rollout}.html"
    if not page.is_file():
        raise AssertionError(f"rollout {rollout} left no report at {page}")
    return str(page)


def run(engine: str, quiet: bool = False) -> dict[str, Any]:
    """Split, then cutover to copies, then rollback to the split; returns all figures."""
    lab_site = site.Site(engine)
    lab_site.must_play("cutover", variables={"vllm_topology": "split"}, quiet=quiet)
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "requests.jsonl"
        with site.clients(records):
            cutover = change("cutover", lab_site, records, {"vllm_topology": "replicated"}, quiet)
            rollback = change("rollback", lab_site, records, {}, quiet)
    return {"engine": engine, "cutover": cutover, "rollback": rollback}


def table(result: dict[str, Any]) -> str:
    """The report for people."""
    rows: list[tuple[str, ...]] = [("", "CUTOVER (split to copies)", "ROLLBACK (copies to split)")]
    names = {
        "window_seconds": "window: seconds without an admitted copy",
        "engine_start_seconds": "  of which the engine's own start",
        "gate_to_first_200_seconds": "seconds from gate passed to first 200 through the proxy",
        "longest_gap_seconds": "longest time between two answers, seconds",
        "playbook_seconds": "whole playbook, seconds",
        "retries": "retries by the clients' SDK",
    }
    rows += [(words, *(str(result[part][key]) for part in ("cutover", "rollback"))) for key, words in names.items()]
    for phase in ("before", "during", "after"):
        for key, words in (("requests", "requests by status"), ("copies", "answers by copy")):
            cells = (
                ", ".join(f"{k}: {v}" for k, v in result[part][key][phase].items()) or "-"
                for part in ("cutover", "rollback")
            )
            rows.append((f"{words}, {phase}", *cells))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["real", "stand-in"], default="real")
    options = parser.parse_args()
    subprocess.run([sys.executable, str(site.ROOT / "tests" / "lab"), "up", "--engine", options.engine], check=True)
    result = run(options.engine)
    print(
        f"\nA {options.engine} engine on the lab, clients with the OpenAI SDK sending all the while\n\n{table(result)}\n"
    )
    print("\n".join(f"The report of the {part}: {result[part]['report']}" for part in ("cutover", "rollback")))
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
