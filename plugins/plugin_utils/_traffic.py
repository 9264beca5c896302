# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the copies of a site do now, each and together, as data and as cells of a table that a person reads.

Private to this collection: may change at any time. Controller only; no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._metrics.figures import IDLE, figures
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.total import per_second, total

COLUMNS = (
    "RUN",
    "WAIT",
    "KV USE",
    "TOKENS/s",
    "PROMPT/s",
    "TTFT p50",
    "p95",
    "PER TOKEN",
    "ACCEPTED",
)
_TIMES = ("ttft_p50", "ttft_p95", "inter_token_p50")


def traffic(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Each copy's figures and their sum, from the registered results of M(gb10.vllm.copy_metrics) by host.

    ``window`` is what happened between the two readings, ``life`` what happened since each engine began. The sum is None, and
    ``refused`` says why, when two hosts are one process.
    """
    copies = {
        name: {"now": result.get("reading"), "span": result.get("window"), "reason": why_not(result)}
        for name, result in found.items()
    }
    answer: dict[str, Any] = {
        "copies": {name: _copy(found[name], copy) for name, copy in copies.items()},
        "sum": None,
        "refused": "",
    }
    try:
        answer["sum"] = _sum(total(copies))
    except MetricsError as error:
        answer["refused"] = str(error)
    return answer


def why_not(result: Mapping[str, Any]) -> str:
    """Why a result has no reading; empty when it has one."""
    if not result or result.get("unreachable"):
        return "could not be reached"
    if result.get("failed"):
        return str(result.get("msg", "could not be looked at"))
    return "" if result.get("reading") else str(result.get("reason") or "not read")


def _copy(result: Mapping[str, Any], copy: Mapping[str, Any]) -> dict[str, Any]:
    reading, window = copy["now"], copy["span"]
    if not reading:
        return {"state": result.get("state", "unknown"), "reason": copy["reason"]}
    return {
        "state": "read",
        "reason": result.get("reason", ""),
        "build": reading["version"],
        "engines": reading["engines"],
        **reading["gauges"],
        "kv_use": max(reading["kv_use"]) if reading["kv_use"] else None,
        "restarted": bool(window and window["restarts"]),
        "problems": reading["problems"],
        "life": figures(reading["counters"], reading["histograms"]),
        "window": window and _window(window["counters"], window["requests"], window["histograms"], per_second(window)),
        "seconds": window and window["seconds"],
    }


def _window(
    counters: Mapping[str, Any], requests: Any, histograms: Mapping[str, Any], rates: Mapping[str, Any]
) -> dict[str, Any]:
    return {"counters": counters, "requests": requests, "per_second": rates, **figures(counters, histograms)}


def _sum(whole: Mapping[str, Any]) -> dict[str, Any]:
    span, lives = whole["span"], whole["lives"]
    return {
        **{key: whole[key] for key in ("copies", "read", "missing", "builds", "kv_use", "unknown")},
        **whole["gauges"],
        "restarted": span["restarted"],
        "life": figures(lives["counters"], lives["histograms"]),
        "window": _window(span["counters"], span["requests"], span["histograms"], span["per_second"])
        if span["of"]
        else None,
    }


UNKNOWN = ["?"] * len(COLUMNS)


def cells(of: Mapping[str, Any]) -> list[str]:
    """The cells of one copy, or of the sum."""
    if of.get("state", "read") != "read":
        return UNKNOWN
    kv_use = of["kv_use"]
    shares = (
        f"{_percent(kv_use['max'])}, mean {_percent(kv_use['mean'])}"
        if isinstance(kv_use, Mapping)
        else _percent(kv_use)
    )
    return _numbers(of, shares)


def notes(made: Mapping[str, Any]) -> list[str]:
    """What the figures do not say, one line each."""
    said = []
    for name, copy in made["copies"].items():
        again = ["restarted between the two looks"] if copy.get("restarted") else []
        said += [f"{name}: {note}" for note in (copy["reason"], *again, *copy.get("problems", [])) if note]
    whole = made["sum"]
    if whole:
        lacking = [("all figures", list(whole["missing"])), *whole["unknown"].items()]
        said += [f"the sum has {figure} without {', '.join(names)}" for figure, names in lacking if names]
    if made["refused"]:
        said.append(f"no sum: {made['refused']}")
    rows = [cells(of) for of in (*made["copies"].values(), whole) if of]
    if any(cell.startswith("(") for row in rows for cell in row):
        seconds = max((copy.get("seconds") or 0) for copy in made["copies"].values())
        why = f"the {seconds:.1f} s between two looks had too little for it" if seconds else "there were no two looks"
        said.append(f"in brackets: since the engine's start; {why}")
    return said


def _numbers(of: Mapping[str, Any], kv_use: str) -> list[str]:
    window, life = of["window"] or {}, of["life"]
    rates = window.get("per_second", {})
    return [
        _whole(of["running"]),
        _whole(of["waiting"]),
        kv_use,
        *("?" if rates.get(key) is None else f"{rates[key]:.1f}" for key in ("generation_tokens", "prompt_tokens")),
        *(_best(window.get(key), life[key], _time) for key in _TIMES),
        _best(window.get("acceptance"), life["acceptance"], _percent),
    ]


def _best(now: Any, life: Any, say: Any) -> str:
    """The figure of the window, else of the engine's life in brackets, else that there is too little or nothing."""
    if now not in (None, IDLE):
        return str(say(now))
    if life not in (None, IDLE):
        return f"({say(life)})"
    return IDLE if IDLE in (now, life) else "-"


def _time(quantile: Mapping[str, float | None]) -> str:
    value = quantile["estimate"]
    if value is None:
        return f"> {quantile['low']:g} s"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.1f} s"


def _percent(share: float | None) -> str:
    return "?" if share is None else f"{share * 100:.0f} %"


def _whole(number: int | None) -> str:
    return "?" if number is None else str(number)
