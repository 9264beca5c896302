# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was evaluated, from the record of a release, and an evaluation for people.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _evaluation, _evaluation_suite

# They differ from host to host and say nothing about what a copy answers.
_OF_THE_HOST = (
    "--gpu-memory-utilization",
    "--kv-cache-memory-bytes",
    "--port",
    "--host",
    "--master-addr",
    "--node-rank",
)


def described(release: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Of a release what a score depends on. `fingerprint` is the same for the copies of one release on several hosts."""
    command = [str(word) for word in release.get("command") or []]
    what = {
        "release": name,
        "topology": release.get("topology", ""),
        "image": release.get("image", ""),
        "model": release.get("model", ""),
        "revision": release.get("revision", ""),
        "served_model_name": release.get("served_model_name", ""),
        "drafting": _value(command, "--speculative-config") or "",
        "max_num_seqs": int(_value(command, "--max-num-seqs") or 0),
    }
    content = [what["topology"], what["image"], what["model"], what["revision"], _common(command)]
    content += [release.get("environment"), release.get("mods")]
    return {**what, "fingerprint": _evaluation_suite.digest(content)}


def together(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is behind a proxy: the copies' common description; what they do not share is empty."""
    if not several:
        return {}
    first = dict(several[0])
    return {key: value if all(one.get(key) == value for one in several) else "" for key, value in first.items()} | {
        "max_num_seqs": sum(int(one.get("max_num_seqs") or 0) for one in several)
    }


def scenarios(wish: str, what: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """V(auto) is the full set for a model or an image that has no accepted one yet, else the short one."""
    if wish != "auto":
        return wish
    same = ("image", "model", "revision")
    known = any(
        record.get("accepted")
        and record["how"].get("scenarios") == "full"
        and all(record["what"].get(key) == what.get(key) for key in same)
        for record in records
    )
    return "short" if known else "full"


def known(what: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> str:
    """The id of the newest accepted record of this very content, empty when there is none."""
    found = [
        record
        for record in records
        if record.get("accepted") and record["what"].get("fingerprint") == what["fingerprint"]
    ]
    return str(found[-1]["id"]) if found else ""


def lines(record: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[str]:
    """The verdict and one table."""
    wire = record["wire"]
    rows = [["answers", "trial", "score", "safety failures", "seconds"]]
    for entry in record["passes"]:
        way = "streamed" if entry["streamed"] else "whole"
        score = "none" if entry["score"] is None else f"{entry['score']:g}"
        rows.append([way, str(entry["trial"]), score, ", ".join(entry["safety"]) or "none", f"{entry['seconds']:g}"])
    if last:
        rows.append(
            [
                "last accepted",
                str(last["id"]),
                f"{_evaluation.score(last):g}",
                ", ".join(_evaluation.safety(last)) or "none",
                "",
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    how = record["how"]
    suite = f"{how['suite']} {how.get('version', '')}".strip()
    head = (
        f"{record['against']}: {record['verdict']}, {record['reason']} ({suite}, {how['scenarios']} set, "
        f"{how['concurrency']} at once, {wire.get('requests', 0)} requests, {wire.get('server_errors', 0)} server errors)"
    )
    return [head, *table]


def history(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The scores so far as the page of `_measure_page` wants them, oldest first; a record without a time is left out."""
    words = {_evaluation.PASS: "accepted", _evaluation.FAIL: "rejected"}
    told = []
    for record in sorted((one for one in records if one.get("time")), key=lambda one: float(one["time"])):
        how, score = record["how"], record.get("score")
        suite = f"{how.get('suite', '')} {how.get('version', '')}".strip()
        about = (record.get("against"), record["what"].get("release"), suite, how.get("scenarios"))
        told.append(
            {
                "time": record["time"],
                "score": score,
                "verdict": words.get(record.get("verdict", ""), "not comparable" if score is not None else "error"),
                "label": ", ".join(str(word) for word in about if word),
            }
        )
    return told


def _value(command: Sequence[str], flag: str) -> str:
    for place, word in enumerate(command):
        if word == flag and place + 1 < len(command):
            return command[place + 1]
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return ""


def _common(command: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in command:
        flag = word.partition("=")[0]
        if skip and not word.startswith("--"):
            skip = False
            continue
        skip = flag in _OF_THE_HOST and "=" not in word
        if flag not in _OF_THE_HOST:
            kept.append(word)
    return kept
