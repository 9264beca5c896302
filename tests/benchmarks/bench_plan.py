# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the memory plan with start-up logs that people published: one line per observation, none left out.

An observation is equal if some value inside the printed rounding of its GiB gives exactly the logged tokens (and the logged
block size, number of blocks and concurrency, where they are given). What an observation does not say is tried in every
form that the engine has, and the line names the form that was assumed. The last line is one JSON object.

    bench_plan.py [--observations FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
if "ansible_collections" not in sys.modules:
    sys.path.insert(0, str(HERE.parents[1] / ".collections"))

from ansible_collections.gb10.vllm.plugins.module_utils._memory import grouping, layout, shape, units, wire  # noqa: E402

Row = dict[str, Any]
EQUAL, RATIO, UNKNOWN, DIFFERS = "equal", "ratio", "unknown", "DIFFERS"
_INDEXED = {"indexer_head_dim": 128, "indexer_kv_heads": 1, "indexer_compress_ratio": 4, "hc_count": 4, "hidden_size": 2560,
            "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
            "mamba_ssm_dtype": "float32", "mtp_layers": 1}  # fmt: skip
_MOST_DRAFTS = 16
_KERNEL_BLOCKS = (16, 32, 64, 128)
_BATCHES = (2048, 4096, 8192, 16384, 32768)


@dataclass(frozen=True)
class Result:
    """One line of the table."""

    status: str
    text: str


def model_config(row: Row) -> dict[str, Any]:
    """A config.json from an observation, whose ``config`` may give counts of layers instead of a list."""
    config = dict(row["config"])
    indexed = config.pop("indexed_attention_layers", None)
    if indexed is not None:
        config = {**_INDEXED, **config}
    total = config["num_hidden_layers"]
    counts = {kind: config.pop(f"{kind}_layers", 0) or 0 for kind in ("sliding", "chunked", "linear", "mamba", "moe")}
    full = config.pop("full_attention_layers", None)
    full = indexed if full is None else full
    mtp = config.pop("mtp_layers", None) or config.pop("mtp_attention_layers", None)
    if mtp:
        config["mtp_num_hidden_layers"] = mtp
    if counts["mamba"]:
        letters = "M" * counts["mamba"] + "*" * (full or 0) + "E" * counts["moe"]
        config["hybrid_override_pattern"] = letters.ljust(total, "-")
    elif any(counts.values()):
        kinds = [kind for kind in ("sliding", "chunked", "linear") for _ in range(counts[kind])]
        config["layer_types"] = [f"{kind}_attention" for kind in [*kinds, *["full"] * (total - len(kinds))]]
    return config


def kv_dtypes(row: Row) -> tuple[str, ...]:
    """The cache types an observation may mean."""
    text = str(row.get("kv_cache_dtype") or "not stated").lower()
    if text == "not stated":
        return ("bf16", "fp8")
    if text.startswith("auto"):
        resolved = re.search(r"\((?:resolved \w* ?)?(\w+)\)", text)
        return (resolved[1] if resolved else "bf16",)
    return (re.split(r"[ (]", text)[0],)


def candidates(row: Row, model: shape.ModelShape, drafter: shape.AttentionLayers | None) -> Iterator[layout.Layout]:
    """Every layout that an observation may mean, the plainest first."""
    recurrent, windowed = bool(model.state), any(layers.window for layers in model.attention)
    stated = row.get("num_speculative_tokens")
    drafts = (stated,) if stated is not None else range(_MOST_DRAFTS + 1 if recurrent else 1)
    modes = layout.CACHE_MODES[:2] if recurrent else ("none",)
    if row.get("mamba_cache_mode"):
        modes = (row["mamba_cache_mode"],)
    elif row.get("prefix_caching") is not None and recurrent:
        modes = ("align",) if row["prefix_caching"] else ("none",)
    batches = (
        (row["max_num_batched_tokens"],) if row.get("max_num_batched_tokens") else _BATCHES if windowed else (2048,)
    )
    size = row.get("block_size")
    configured = not recurrent or size in _KERNEL_BLOCKS
    block = (size if configured else None) or 16
    for kind, draft, mode, batch in itertools.product(kv_dtypes(row), drafts, modes, batches):
        settings = layout.Settings(
            row.get("max_model_len") or 16, kind, row.get("tensor_parallel_size") or 1,
            row["config"].get("decode_context_parallel_size", 1), draft, drafter, mode, block, batch,
            version=str(row.get("vllm_version", "")),
        )  # fmt: skip
        made = grouping.make_layout(model, settings)
        if configured or size in (None, made.block_size):
            yield made


def roundings(gib: float) -> list[int]:
    """Half of the last printed digit, in bytes: two decimals first, then as many as are written."""
    digits = max(0, -int(Decimal(str(gib)).as_tuple().exponent))
    return sorted({units.from_gib(0.5 / 10 ** max(digits, 2)), units.from_gib(0.5 / 10**digits)})


def agrees(row: Row, made: layout.Layout, count: int) -> bool:
    """True if so many blocks explain everything that the observation says."""
    if row.get("num_gpu_blocks") not in (None, count):
        return False
    printed = row.get("max_concurrency") if row.get("max_model_len") else None
    if printed is not None and abs(made.concurrency(count) - printed) > 0.0051:
        return False
    sizes = {"concurrency_times_len": {made.tokens(count)}, None: {made.tokens(count), made.counted_tokens(count)}}
    return row["kv_tokens"] in sizes.get(row.get("log_formula"), {made.counted_tokens(count)})


def judge(row: Row) -> Result:
    """Compares one observation with the plan."""
    missing = [key for key in ("config", "kv_tokens") if not row.get(key)]
    if missing:
        return Result(UNKNOWN, f"the observation has no {' and no '.join(missing)}")
    try:
        config = model_config(row)
        drafter_count = config.pop("draft_layers", None)
        model = shape.read_shape(config)
    except (KeyError, TypeError) as error:
        return Result(UNKNOWN, f"config is incomplete or malformed: {error}")
    except units.PlanError as error:
        return Result(UNKNOWN, str(error))
    if row.get("pipeline_parallel_size", config.get("pipeline_parallel_size", 1)) not in (None, 1):
        return Result(UNKNOWN, "pipeline stages are not modelled")
    separate = re.search(r"drafter|dflash|eagle|medusa", str(row.get("model", "")), re.IGNORECASE)
    if separate and not drafter_count:
        return Result(UNKNOWN, "the layers of its separate drafter are not stated")
    drafter = None
    if drafter_count:
        # other heads, as many bytes: only the number of its layers is published, and that they are a kind of their own
        main = model.attention[0]
        drafter = replace(main, count=drafter_count, kv_heads=main.kv_heads * 2, dims=main.dims // 2)
    try:
        options = list(candidates(row, model, drafter))
    except units.PlanError as error:
        return Result(UNKNOWN, str(error))
    if not options:
        return Result(DIFFERS, f"no form of this model has block size {row['block_size']}")
    gib = row.get("available_kv_gib")
    for made in options:
        if gib is None:
            count = math.ceil(row["kv_tokens"] * made.blocks_per_request() / made.settings.max_model_len)
            if agrees(row, made, count):
                return Result(RATIO, f"{count} blocks, no GiB published{assumed(row, made)}")
            continue
        size = units.from_gib(gib)
        for rounding in roundings(gib):
            for count in range(made.blocks(size - rounding), made.blocks(size + rounding) + 1):
                if agrees(row, made, count):
                    coarse = "" if rounding == roundings(gib)[0] else f", within {rounding / units.GIB:.2f} GiB"
                    return Result(EQUAL, f"{count} blocks of {made.block_size}{coarse}{assumed(row, made)}")
    return unmatched(row, options)


def assumed(row: Row, made: layout.Layout) -> str:
    """What the observation does not say and the plan had to assume, in words."""
    settings, said = made.settings, []
    if len(kv_dtypes(row)) > 1:
        said.append(settings.kv_dtype)
    if settings.draft_tokens and row.get("num_speculative_tokens") is None:
        said.append(f"{settings.draft_tokens} drafts")
    if row.get("log_formula") == "concurrency_times_len" or row.get("max_concurrency"):
        if made.has_state and row.get("prefix_caching") is None:
            said.append("prefix caching on" if settings.cache_mode == "align" else "prefix caching off")
        if any(group.window for group in made.groups) and not row.get("max_num_batched_tokens"):
            said.append(f"{settings.batched_tokens} batched tokens")
    return f" (assumed: {', '.join(said)})" if said else ""


def unmatched(row: Row, options: list[layout.Layout]) -> Result:
    """Why no candidate explains an observation."""
    made, gib = options[0], row.get("available_kv_gib")
    counted = row.get("log_formula") in ("uniform", "groups_min_block")
    if str(row.get("kv_cache_dtype") or "not stated") == "not stated":
        return Result(
            UNKNOWN, f"the cache type is not stated, and none of {len(options)} forms of this model explains it"
        )
    if gib is None:
        return Result(DIFFERS, f"none of {len(options)} forms of this model gives {row['kv_tokens']} tokens")
    for option in options:
        blocks = option.blocks(units.from_gib(gib))
        for count in range(blocks, int(blocks * 0.97), -1):
            if option.settings.ranks > 1 and agrees(row, option, count):
                deciding = count * option.block_bytes / units.GIB
                return Result(UNKNOWN, f"another rank decided: the logged tokens are {deciding:.2f} GiB, only {gib} GiB "
                                       "of one rank is published")  # fmt: skip
    blocks = made.blocks(units.from_gib(gib))
    predicted = made.counted_tokens(blocks) if counted else made.tokens(blocks)
    return Result(DIFFERS, f"planned {predicted}, {predicted / row['kv_tokens'] - 1:+.2%}")


def plan_seconds() -> float:
    """CPU seconds of one host's plan, from the configuration to the verdict."""
    shape_of = {"num_hidden_layers": 48, "indexed_attention_layers": 12, "linear_layers": 36, "num_key_value_heads": 2,
                "head_dim": 256, "linear_num_key_heads": 16, "linear_num_value_heads": 48}  # fmt: skip
    engine = {"max_model_len": 262144, "weights_gib": 71, "kv_cache_dtype": "fp8", "num_speculative_tokens": 4}
    begin = time.process_time()
    model = model_config({"config": shape_of})
    wire.make_plan({"model": model, "hosts": [{"name": "spark1", "total_gib": 121.69}], "replicated": engine})
    return time.process_time() - begin


def main() -> int:
    """Prints the table; 1 if an observation of a modelled family differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--observations", type=Path, default=HERE / "kv-observations.yml", help="YAML file of observations"
    )
    data = yaml.safe_load(parser.parse_args().observations.read_text(encoding="utf-8"))
    rows = data if isinstance(data, list) else data.get("observations") or data.get("triples") or []
    results = [(row, judge(row)) for row in rows]
    for row, result in results:
        print(f"{row.get('id', '?'):8} {result.status:8} {row.get('kv_tokens') or '-':>10} tokens  {result.text}  "
              f"[{str(row.get('model', '?'))[:48]}]")  # fmt: skip
    tally = Counter(result.status for _row, result in results)
    seconds = plan_seconds()
    print(f"\n{len(rows)} observations: {tally[EQUAL]} equal to the token, {tally[RATIO]} equal without published bytes, "
          f"{tally[UNKNOWN]} unknown, {tally[DIFFERS]} differ; one plan takes {seconds * 1000:.1f} ms of CPU")  # fmt: skip
    unknown = {str(row.get("id", "?")): result.text for row, result in results if result.status == UNKNOWN}
    differ = {str(row.get("id", "?")): result.text for row, result in results if result.status == DIFFERS}
    print(json.dumps({"bench": "plan", "observations": len(rows), "equal": tally[EQUAL], "ratio": tally[RATIO],
                      "unknown": unknown, "differ": differ, "plan_cpu_seconds": round(seconds, 6)}))  # fmt: skip
    return 1 if differ or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
