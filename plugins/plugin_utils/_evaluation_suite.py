# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""tool-eval-bench, or a command of the owner's: its command line, its environment, and what it printed.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SUITE = "tool-eval-bench"
# The one whose command line and result are known here.
VERSION = "3.0.0"
SETS = {"short": ["--short"], "full": [], "hard": ["--hardmode"], "packs": ["--pack-only"]}
# How the suite names a scenario that the server, not the model, failed.
_SERVERS_FAULT = ("timeout", "connection_error", "server_error")


class SuiteError(ValueError):
    """The suite's answer cannot be used; the message says what it was."""


@dataclass(frozen=True)
class Plan:
    """What is run: `scenarios` is a key of SETS, `packs` are folders with scenarios of the owner's own."""

    model: str
    scenarios: str = "short"
    packs: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    thinking: bool = True
    temperature: float = 0.0
    request: Mapping[str, Any] | None = None
    concurrency: int = 1
    timeout: int = 120
    command: tuple[str, ...] = ()


def arguments(program: str, plan: Plan, result: str, resume: str = "") -> list[str]:
    """The command line of one run. Where the copy is and the key to it come from the environment, which nobody else sees."""
    words = [program, "run", "--model", plan.model, "--format", "openai", "--backend", "vllm"]
    words += [
        "--temperature",
        f"{plan.temperature:g}",
        "--parallel",
        str(plan.concurrency),
        "--timeout",
        str(plan.timeout),
    ]
    words += [] if plan.thinking else ["--no-think"]
    words += ["--backend-kwargs", json.dumps(dict(plan.request), sort_keys=True)] if plan.request else []
    words += SETS[plan.scenarios]
    words += ["--scenarios", *plan.only] if plan.only else []
    words += [word for pack in plan.packs for word in ("--scenario-pack", pack)]
    # The gate has asked already, and nothing but the scenarios is wanted.
    words += ["--no-warmup", "--no-preflight", "--no-probe-engine", "--no-live"]
    words += ["--json", "--json-file", result, "--output-dir", "reports"]
    return words + (["--resume", resume] if resume else [])


def environment(inherited: Mapping[str, str], url: str, token: str, plan: Plan, streamed: bool) -> dict[str, str]:
    """The environment of the suite and of an owner's command, without what would lead either of them elsewhere."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith("TOOL_EVAL_") and not name.lower().endswith("_proxy")
    }
    given = {
        "TOOL_EVAL_BASE_URL": url,
        "TOOL_EVAL_API_KEY": token,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": token,
        "GB10_VLLM_MODEL": plan.model,
        "GB10_VLLM_CONCURRENCY": str(plan.concurrency),
        "GB10_VLLM_STREAMED": "1" if streamed else "0",
        "NO_PROXY": "*",
        "HF_HUB_OFFLINE": "1",
    }
    return {**kept, **given}


def progress(line: str) -> dict[str, Any]:
    """One line of the suite's running commentary, empty when it is something else."""
    try:
        event = json.loads(line)
    except ValueError:
        return {}
    return event if isinstance(event, dict) and event.get("event") else {}


def complaint(lines: Sequence[str]) -> str:
    """Why a run ended, from the last lines that it wrote."""
    errors = [event for event in map(progress, lines) if event.get("event") == "error"]
    if errors:
        return str(errors[-1].get("message") or errors[-1].get("error"))
    plain = [line.strip() for line in lines if line.strip() and not progress(line)]
    return plain[-1] if plain else "it said nothing"


def outcome(text: str) -> dict[str, Any]:
    """The score and what belongs to it, from the file that a run wrote."""
    try:
        data = json.loads(text)
        scores, config = data["scores"], data["config"]
        results = scores["scenario_results"]
        lost = sorted(r["scenario_id"] for r in results if r.get("failure_kind") in _SERVERS_FAULT)
        return {
            "suite": SUITE,
            "version": str(data["tool_eval_bench_version"]),
            "digest": digest([config["scenario_ids"], config.get("scenario_packs")]),
            "score": None if len(lost) == len(results) else float(scores["final_score"]),
            "safety": sorted({str(warning).split(maxsplit=1)[0] for warning in data.get("safety_warnings") or []}),
            "lost": lost,
            "points": {r["scenario_id"]: int(r["points"]) for r in results},
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SuiteError(f"the result of {SUITE} has another form than that of {VERSION}: {error!r}") from None


def printed(text: str, command: Sequence[str]) -> dict[str, Any]:
    """The score that an owner's command printed on its last line: a number, or a JSON object with `score`."""
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    try:
        data = json.loads(last)
    except ValueError:
        data = None
    found = data if isinstance(data, dict) else {"score": data}
    value = found.get("score")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SuiteError(
            f"the last line of {command[0]} is no score: {last[:200]!r}; it has to be a number, or a JSON object with score"
        )
    return {
        "suite": str(found.get("suite") or command[0]),
        "version": str(found.get("version") or digest(list(command))),
        "digest": digest(found.get("scenarios")),
        "score": float(value),
        "safety": sorted(map(str, found.get("safety") or [])),
        "lost": sorted(map(str, found.get("lost") or [])),
        "points": {},
    }


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
