# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an engine ended or does not come up, in one sentence, with the way out.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

Two witnesses: what the engine logged (texts of vLLM 0.11 to 0.33, of docker and of CUDA), and how systemd saw its process end.
The engine's own words win, because an exit status names a cause only roughly; the exceptions are a kill and a stop from
outside, of which the engine knows nothing or logs only the consequences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.gb10.vllm.plugins.module_utils import _failure_texts, _phase

UNKNOWN = "unknown"


class Failure(NamedTuple):
    """`kind` is for programs, `sentence` (no full stop) and `advice` are for people."""

    kind: str
    sentence: str
    advice: str


_SHUTDOWN = re.compile(r"\[shutdown\] .*shutdown triggered")
_ENGINE_DEAD = re.compile(
    r"EngineDeadError|EngineCore encountered an issue|[Ee]ngine core proc.*died|proc \S+ died unexpectedly"
)
_DAEMON = re.compile(r"docker: (?:Error response from daemon: )?(.+)")
_ERROR = re.compile(r"\b(?:ERROR|CRITICAL|FATAL)\b|\b\w*(?:Error|Exception)\b(?::|$)|^error:", re.I)
_NAMED_ERROR = re.compile(r"^[\w.]*(?:Error|Exception)\b(?:: .+)?$")
# Announcements of an error that stands elsewhere, and the frames of a stack.
_EMPTY_WORDS = re.compile(
    r"See root cause above|failed to start|See stack trace|Traceback \(most recent|^\s*File \"|^\s*raise |^[\s^~]*$|"
    r"resource_tracker|leaked \w+ objects|destroy_process_group|Application shutdown|Finished server process|"
    r"systemd\[|: Main process exited|: Failed with result|Scheduled restart job|^(?:Started|Starting|Stopped|Stopping) "
)


def last_words(lines: Sequence[str]) -> str:
    """The line that says most about an end: the last named error, else the last error, else the last line that is not noise."""
    said = [short for line in lines if (short := _phase.short(line, 200)) and not _EMPTY_WORDS.search(short)]
    for pattern in (_NAMED_ERROR, _ERROR):
        found = [line for line in said if pattern.search(line)]
        if found:
            return found[-1]
    return said[-1] if said else ""


def _named(lines: Sequence[str]) -> Failure | None:
    """What the engine, docker or CUDA named as the cause."""
    for rule in _failure_texts.RULES:
        pattern = re.compile(rule.pattern)
        for line in reversed(lines):
            match = pattern.search(line)
            if match:
                groups = {name: (value or "").strip()[:160] for name, value in match.groupdict().items()}
                return Failure(rule.kind, " ".join(rule.sentence.format(**groups).split()).rstrip(".: "), rule.advice)
    return None


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> int:
    return next((number for number, line in enumerate(lines) if pattern.search(line)), len(lines))


def _by_unit(lines: Sequence[str], status: str, unit: Mapping[str, str]) -> Failure | None:
    """What the end of the process says, where no text named the cause."""
    said = last_words(lines)
    result, active = unit.get("Result", ""), unit.get("ActiveState", "")
    ends = f"exit status {status}"
    if _ENGINE_DEAD.search("\n".join(lines)):
        return Failure(
            "engine_dead",
            f"the engine's core died and the server ended with {ends}" + (f": {said}" if said else ""),
            "look for the first error in `journalctl --unit vllm`; systemd starts it again as often as the release allows",
        )
    if status == "2":
        return Failure(
            "bad_argument", f"the engine refused its arguments ({ends}): {said}", "correct the arguments of the release"
        )
    if status in ("125", "126", "127"):
        daemon = next((match[1] for line in reversed(lines) if (match := _DAEMON.search(line))), said)
        advice = "look at `docker ps --all` and at the container options of the release"
        return Failure("container", f"docker could not start the container ({ends}): {daemon}", advice)
    if active == "failed" and result == "start-limit-hit":
        return Failure(
            "gave_up", f"systemd gave up after several failed starts: {said}", "correct the cause, then start it again"
        )
    return None


def classify(
    lines: Sequence[str], unit: Mapping[str, str] | None = None, container: Mapping[str, Any] | None = None
) -> Failure:
    """`lines` of this start, oldest first; `unit` as systemd shows it; `container` as docker inspects it, where it is still there."""
    unit = unit or {}
    status, result, active = unit.get("ExecMainStatus", ""), unit.get("Result", ""), unit.get("ActiveState", "")
    if result == "oom-kill" or (container or {}).get("oom_killed"):
        return Failure(
            "killed",
            "the kernel killed the engine because this host ran out of memory",
            "lower gpu-memory-utilization or end what else uses memory on this host; plan.yml shows what fits",
        )
    named = _named(lines)
    if named:
        return named
    if status == "137" or (result == "signal" and status in ("9", "6", "7", "11")):
        return Failure(
            "killed",
            f"the engine was killed ({'by SIGKILL' if status in ('137', '9') else f'signal {status}'}), by the kernel for want of memory or from outside",
            "look at the kernel's log (`journalctl --dmesg`) for who killed it and why",
        )
    told = _first(_SHUTDOWN, lines)
    asked = told < len(lines) and told < _first(_ENGINE_DEAD, lines)
    if (
        asked
        or active == "deactivating"
        or status == "143"
        or (result == "signal" and status == "15")
        or (active == "inactive" and result == "success")
    ):
        return Failure(
            "stopped",
            "the engine was stopped from outside (a `docker stop`, a `systemctl stop` or a shutdown of the host)",
            "find out who stopped it (`journalctl` around that time), then start it again",
        )
    seen = _by_unit(lines, status, unit)
    if seen:
        return seen
    if status == "0" and active != "active":
        return Failure(
            "ended",
            "the engine ended with exit status 0 though nobody stopped it",
            "look at its last lines in `journalctl --unit vllm`",
        )
    return Failure(UNKNOWN, last_words(lines), "read the log of this start: `journalctl --unit vllm`")


def of_end(gone: str, lines: Sequence[str], unit: Mapping[str, str]) -> Failure:
    """Why the process ended; `gone` is what was seen of its end."""
    failure = classify(lines, unit)
    if failure.kind != UNKNOWN:
        return failure._replace(sentence=f"{failure.sentence} ({gone})")
    return failure._replace(sentence=gone + (f"; its last words: {failure.sentence}" if failure.sentence else ""))


def of_deadline(seconds: int, expected: float | None, lines: Sequence[str], last: str) -> Failure:
    """Why an engine whose process lives is not ready after `seconds`; `last` is the outcome of the last look."""
    failure = classify(lines)
    if failure.kind != UNKNOWN:
        return failure._replace(sentence=f"{failure.sentence} (not ready after {seconds} s)")
    usual = f", where its loads here take {expected:.0f} s" if expected else ""
    return Failure(
        "deadline",
        f"not ready after {seconds} s{usual}, the start is at {_phase.phase(lines)!r} ({last})",
        "if it is slow but works, raise vllm_replicated_expected_load_seconds or vllm_split_expected_load_seconds, from which "
        "this budget follows; if the log stands still, look at the host",
    )
