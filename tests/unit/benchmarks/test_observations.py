# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every public observation, each a case of its own: a modelled family is equal to the token, the others say why not."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

BENCH = Path(__file__).resolve().parents[2] / "benchmarks" / "bench_plan.py"
ROWS = yaml.safe_load((BENCH.parent / "kv-observations.yml").read_text(encoding="utf-8"))["observations"]
UNKNOWN = {
    "kv-018": "another rank decided",
    "kv-019": "28.48 GiB",
    "kv-033": "drafter",
    "kv-057": "cache type is not stated",
    "kv-058": "compress_ratios",
    "kv-059": "compress_ratios",
    "kv-060": "compress_ratios",
    "kv-064": "compress_ratios",
    "kv-065": "compress_ratios",
}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_plan", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bench_plan"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_observation(row: dict[str, Any]) -> None:
    bench = load()
    result = bench.judge(row)
    if row["id"] in UNKNOWN:
        assert result.status == bench.UNKNOWN
        assert UNKNOWN[row["id"]] in result.text
    else:
        assert result.status == (bench.EQUAL if "available_kv_gib" in row else bench.RATIO), result.text


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "equal"),
        ({"kv_tokens": 31216}, "equal"),
        ({"kv_tokens": 31500}, "DIFFERS"),
        ({"kv_tokens": 31233}, "DIFFERS"),
        ({"max_concurrency": 1.6}, "DIFFERS"),
        ({"config": {"head_dim": 128}}, "unknown"),
        ({"config": {}}, "unknown"),
        ({"kv_cache_dtype": "fp9"}, "unknown"),
        ({"pipeline_parallel_size": 2}, "unknown"),
    ],
)
def test_the_comparison_can_fail(change: dict[str, Any], status: str) -> None:
    assert load().judge({**ROWS[0], **change}).status == status


def test_every_row_is_printed_and_the_last_line_is_json(tmp_path: Path) -> None:
    wrong = {**ROWS[0], "id": "mine", "kv_tokens": 5}
    mine = tmp_path / "mine.yml"
    mine.write_text(yaml.safe_dump({"triples": [ROWS[0], wrong, ROWS[-1]]}), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(BENCH), "--observations", str(mine)], capture_output=True, text=True, check=False
    )
    lines = run.stdout.splitlines()
    assert run.returncode == 1, run.stderr
    assert [line.split()[0] for line in lines[:3]] == ["kv-002", "mine", "kv-065"]
    figures = json.loads(lines[-1])
    assert (figures["observations"], figures["equal"], list(figures["unknown"]), list(figures["differ"])) == (
        3, 1, ["kv-065"], ["mine"])  # fmt: skip
    assert figures["plan_cpu_seconds"] < 0.2
