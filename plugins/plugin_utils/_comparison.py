# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Split against copies, from what was measured of each: side by side, and a recommendation in words.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A measurement is a result of the module `sweep` with the `host` it is of. Copies are measured one by one and do not disturb each other on
their own machines, so together they give the sum, at the sum of their concurrencies: what a balancer gives that shares evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

REPLICATED, SPLIT, NEITHER = "replicated", "split", ""
# Two throughputs that differ by less than this, in percent, are taken as equal.
MARGIN = 5.0


def of_shape(measurement: Mapping[str, Any], name: str) -> dict[int, Mapping[str, Any]]:
    """The rows of one shape that can be used, by concurrency."""
    shapes = [shape for shape in measurement["shapes"] if shape["name"] == name]
    return {row["concurrency"]: row for shape in shapes for row in shape["rows"] if not row["why"]}


def together(copies: Sequence[Mapping[str, Any]], name: str, number: int) -> dict[int, dict[str, Any]]:
    """What `number` copies give in all, by the number of requests in all. Copies that were not measured are like the last one."""
    tables = [of_shape(copy, name) for copy in copies]
    tables += [tables[-1]] * (number - len(tables))
    found = {}
    for concurrency in sorted(set(tables[0]).intersection(*tables[1:])):
        rows = [table[concurrency] for table in tables]
        speed = sum(row["output_per_second"] for row in rows)
        row: dict[str, Any] = {"output_per_second": speed}
        for key in ("ttft_p50", "itl_p50"):
            row[key] = sum(row_[key] * row_["output_per_second"] for row_ in rows) / speed
        for key in ("ttft_p99", "itl_p99"):
            row[key] = max(row_[key] for row_ in rows)
        found[number * concurrency] = row
    return found


def compare(
    replicated: Sequence[Mapping[str, Any]],
    split: Mapping[str, Any],
    number: int,
    full_requests: float = 1.0,
    margin: float = MARGIN,
) -> dict[str, Any]:
    """Both sides at the same number of requests in all.

    Args:
        replicated: measurements of copies, one or more.
        split: the measurement of the pair.
        number: how many copies there are.
        full_requests: requests of full length that one engine must hold at once.
        margin: difference of two throughputs in percent that counts.
    """
    own = [shape["name"] for shape in split["shapes"] if shape["own"]]
    names = own or [shape["name"] for shape in split["shapes"]]
    points = []
    for name in names:
        copies, pair = together(replicated, name, number), of_shape(split, name)
        for total in sorted(copies.keys() & pair.keys()):
            ratio = copies[total]["output_per_second"] / pair[total]["output_per_second"]
            points.append({"shape": name, "concurrency": total, REPLICATED: copies[total],
                           SPLIT: {key: pair[total][key] for key in copies[total]}, "ratio": round(ratio, 4)})  # fmt: skip
    sides = {REPLICATED: _side(replicated), SPLIT: _side([split])}
    choice, reasons = _choose(points, sides, number, full_requests, margin)
    if not own:
        reasons.append("Measured with random text, not with your own mix (vllm_tune_prompts, vllm_tune_lengths).")
    return {
        "own": bool(own),
        "points": points,
        "sides": sides,
        "copies": number,
        "recommendation": choice,
        "words": reasons,
    }


def _side(measurements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    engines = [measurement["engine"] for measurement in measurements]

    def known(key: str) -> list[float]:
        return [engine[key] for engine in engines if engine.get(key)]

    loads = known("load_seconds")
    return {
        "hosts": [measurement["host"] for measurement in measurements],
        "kv_tokens": known("kv_tokens"),
        "full_requests": known("full_requests"),
        "first_seconds": min(loads, default=None),
        "all_seconds": max(loads, default=None),
        "max_num_seqs": known("max_num_seqs"),
    }


def _choose(
    points: Sequence[Mapping[str, Any]], sides: Mapping[str, Any], number: int, needed: float, margin: float
) -> tuple[str, list[str]]:
    copies, pair = sides[REPLICATED], sides[SPLIT]
    words = [*_speed(points, number, margin), *_latency(points), *_capacity(copies, pair), *_start(copies, pair)]
    least = min(copies["full_requests"], default=None)
    most = max(pair["full_requests"], default=None)
    if least is not None and most is not None and least < needed <= most:
        return SPLIT, [
            f"Split: a copy holds {least:.1f} requests of full length and {needed:g} are needed at once; the pair holds {most:.1f}.",
            *words,
        ]
    if not points:
        return NEITHER, [
            "Nothing can be recommended: there is no number of requests at which both were measured without a failure.",
            *words,
        ]
    better = {_better(point["ratio"], margin) for point in points}
    if better == {SPLIT}:
        return SPLIT, ["Split: it is faster wherever both were measured.", *words]
    if REPLICATED in better and SPLIT in better:
        last = [point for point in points if point["concurrency"] == max(point["concurrency"] for point in points)]
        choice = SPLIT if all(_better(point["ratio"], margin) == SPLIT for point in last) else REPLICATED
        head = (
            f"It depends on how many requests you have at once; at the most that was measured it is {choice}. "
            "Choose by the row of the table that is your usual load."
        )
        return choice, [head, *words]
    if SPLIT in better:
        return SPLIT, ["Split: it is faster at some loads and not slower at any.", *words]
    head = "Copies: they are faster" if REPLICATED in better else "Copies: they are as fast"
    return REPLICATED, [f"{head}, and either machine can be restarted while the other one serves.", *words]


def _better(ratio: float, margin: float) -> str:
    return REPLICATED if ratio >= 1 + margin / 100 else SPLIT if ratio <= 1 / (1 + margin / 100) else NEITHER


def _speed(points: Sequence[Mapping[str, Any]], number: int, margin: float) -> list[str]:
    found = []
    for name in dict.fromkeys(point["shape"] for point in points):
        of_name = [point for point in points if point["shape"] == name]
        point = of_name[-1]
        copies, pair = (point[side]["output_per_second"] for side in (REPLICATED, SPLIT))
        text = f"{name}, {point['concurrency']} at once: {number} copies give {copies:.0f} tokens/s in all, the pair {pair:.0f}"
        for_pair = [p["concurrency"] for p in of_name if _better(p["ratio"], margin) == SPLIT]
        for_copies = [p["concurrency"] for p in of_name if _better(p["ratio"], margin) == REPLICATED]
        if for_pair and for_copies:
            text += f"; the pair is faster at {_list(for_pair)}, the copies at {_list(for_copies)}"
        found.append(f"{text}.")
    return found


def _list(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _latency(points: Sequence[Mapping[str, Any]]) -> list[str]:
    if not points:
        return []
    point = points[0]
    copies, pair = (point[side] for side in (REPLICATED, SPLIT))
    return [
        f"At {point['concurrency']} at once ({point['shape']}) the first token comes after {copies['ttft_p50']:.0f} ms from copies and "
        f"{pair['ttft_p50']:.0f} ms from the pair, the next ones every {copies['itl_p50']:.0f} and {pair['itl_p50']:.0f} ms."
    ]


def _capacity(copies: Mapping[str, Any], pair: Mapping[str, Any]) -> list[str]:
    if not copies["kv_tokens"] or not pair["kv_tokens"]:
        return []
    each = " and ".join(_tokens(tokens) for tokens in copies["kv_tokens"])
    text = f"The pair's cache holds {_tokens(pair['kv_tokens'][0])} tokens, a copy's {each}; a request can use one engine's only"
    if copies["full_requests"] and pair["full_requests"]:
        full = " and ".join(f"{requests:.1f}" for requests in copies["full_requests"])
        text += f" ({pair['full_requests'][0]:.1f} requests of full length against {full})"
    return [f"{text}."]


def _tokens(tokens: float) -> str:
    return f"{tokens / 1e6:.2f} M" if tokens >= 1e5 else f"{tokens:,.0f}"


def _start(copies: Mapping[str, Any], pair: Mapping[str, Any]) -> list[str]:
    if copies["first_seconds"] is None or pair["first_seconds"] is None:
        return []
    return [
        f"A copy loads in {copies['first_seconds']:.0f} to {copies['all_seconds']:.0f} s while another one can serve; the pair in "
        f"{pair['first_seconds']:.0f} s, and nothing serves meanwhile."
    ]


def lines(found: Mapping[str, Any]) -> list[str]:
    """The table for a person, then the words."""
    head = f"{'shape':<8}{'in all':>7}{'copies':>9}{'pair':>9}{'ratio':>7}{'1st ms':>16}{'next ms':>15}"
    text = [head]
    for point in found["points"]:
        copies, pair = point[REPLICATED], point[SPLIT]
        first = f"{copies['ttft_p50']:.0f} / {pair['ttft_p50']:.0f}"
        after = f"{copies['itl_p50']:.1f} / {pair['itl_p50']:.1f}"
        text.append(
            f"{point['shape']:<8}{point['concurrency']:>7}{copies['output_per_second']:>9.1f}{pair['output_per_second']:>9.1f}"
            f"{point['ratio']:>7.2f}{first:>16}{after:>15}"
        )
    return [*text, *found["words"]]
