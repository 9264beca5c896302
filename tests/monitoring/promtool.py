# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tries the role's rules on series, with promtool. Cases are sites of one run: that is how the rules keep them apart."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import yaml

ROLE = Path(__file__).resolve().parents[2] / "roles" / "monitoring"
RULES = ("recording", "alerts")
STEP = 15
SITE = re.compile(r'site="([^"]*)"')


def thresholds(sites: Iterable[str]) -> dict[str, Any]:
    """The file that the role writes with its own defaults, for each of these sites."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    environment = jinja2.Environment(autoescape=False, trim_blocks=True)
    environment.filters["float"], environment.filters["int"] = float, int
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text())["__vllm_monitoring_thresholds"]
    values = {name: environment.from_string(value).render(**defaults) for name, value in variables.items()}
    template = environment.from_string((ROLE / "templates" / "gb10-vllm-thresholds.yml.j2").read_text())
    texts = [template.render(__vllm_monitoring_thresholds=values, vllm_monitoring_site=site) for site in sites]
    groups = [group for text in texts for group in yaml.safe_load(text)["groups"]]
    return {"groups": [{**group, "name": f"thresholds{place}"} for place, group in enumerate(groups)]}


def alerts() -> dict[str, Mapping[str, Any]]:
    """The role's alerts by name."""
    groups = yaml.safe_load((ROLE / "files" / "rules" / "gb10-vllm-alerts.yml").read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def records() -> list[str]:
    """The names of the role's recording rules."""
    groups = yaml.safe_load((ROLE / "files" / "rules" / "gb10-vllm-recording.yml").read_text())["groups"]
    return [rule["record"] for group in groups for rule in group["rules"]]


def run(
    folder: Path,
    series: Mapping[str, str],
    asked: Iterable[tuple[float, str, Mapping[str, float]]],
    seconds: int = 2 * STEP,
) -> str:
    """What promtool says of that which is wrong, empty when nothing is.

    Args:
        folder: for its files.
        series: series and their values as promtool writes them, one for each step.
        asked: minutes, query, and the series with values that it must give.
        seconds: how often rules are evaluated.
    """
    (folder / "thresholds.yml").write_text(yaml.safe_dump(thresholds(dict.fromkeys(SITE.findall("\n".join(series))))))
    rules = [str(ROLE / "files" / "rules" / f"gb10-vllm-{name}.yml") for name in RULES]
    document = {
        "rule_files": [*rules, str(folder / "thresholds.yml")],
        "evaluation_interval": f"{seconds}s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": query,
                        "eval_time": f"{int(minutes * 60)}s",
                        "exp_samples": [{"labels": labels, "value": value} for labels, value in expected.items()],
                    }
                    for minutes, query, expected in asked
                ],
            }
        ],
    }
    path = folder / "cases.yml"
    path.write_text(json.dumps(document))
    command = ["promtool", "test", "rules", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
