# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop of the programs that write figures for the node exporter's textfile collector.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of those programs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _exposition
from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family

Collect = Callable[[], list[Family]]


def write(path: str, text: str) -> None:
    """Replace the file in one step. Not flushed to the disk: after a power loss it is written anew anyway."""
    temporary = f"{path}.new"
    Path(temporary).write_text(text, encoding="utf-8")
    os.chmod(temporary, 0o644)
    os.rename(temporary, path)


class Exporter:
    """One program's file, written again and again; a look that fails is said once, and leaves the last figures out."""

    def __init__(self, name: str, collect: Collect) -> None:
        self.name, self.collect, self.problem = name, collect, ""

    def page(self, now: float) -> str:
        try:
            families, problem = self.collect(), ""
        except Exception as error:  # a host may be broken in ways that nobody has thought of
            families, problem = [], f"{type(error).__name__}: {error}"
        if problem != self.problem:
            sys.stderr.write(f"cannot look: {problem}\n" if problem else "can look again\n")
        self.problem = problem
        common = {"exporter": self.name}
        return _exposition.render(
            [
                *families,
                _exposition.gauge("gb10_vllm_exporter_timestamp_seconds", "When the program looked.", now, **common),
                _exposition.gauge(
                    "gb10_vllm_exporter_problem", "Whether its last look failed.", int(bool(problem)), **common
                ),
            ]
        )


def run(name: str, start: Callable[[dict[str, Any]], Collect]) -> int:
    """A program: `start` makes from its configuration what looks at the host."""
    parser = argparse.ArgumentParser(prog=f"{name}_exporter")
    parser.add_argument("--config", required=True, help="JSON file")
    parser.add_argument("--once", action="store_true", help="print the figures and end")
    options = parser.parse_args()
    config = json.loads(Path(options.config).read_text(encoding="utf-8"))
    exporter = Exporter(name, start(config))
    if options.once:
        sys.stdout.write(exporter.page(time.time()))
        return int(bool(exporter.problem))
    target = os.path.join(config["folder"], f"{name}.prom")
    failed = ""
    while True:
        try:
            write(target, exporter.page(time.time()))
            failed = ""
        except OSError as error:
            if str(error) != failed:
                sys.stderr.write(f"cannot write {target}: {error}\n")
            failed = str(error)
        time.sleep(config["interval_seconds"])
