# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests how a copy calls tools, from the controller; the parts are in plugin_utils/_evaluation*.py."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible_collections.gb10.vllm.plugins.plugin_utils import (
    _evaluation,
    _evaluation_run,
    _evaluation_suite,
    _evaluation_table,
    _evaluation_tunnel,
)

HEARTBEAT_SECONDS = 10.0
ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["evaluated", "ready"], "default": "evaluated"},
    "against": {"type": "str", "required": True},
    "kind": {"type": "str", "choices": ["evaluate", "gate"], "default": "evaluate"},
    "port": {"type": "int", "default": 8000},
    "url": {"type": "str", "default": ""},
    "api_key": {"type": "str", "default": "", "no_log": True},
    "releases": {"type": "list", "elements": "dict", "default": []},
    "release_path": {"type": "str", "default": ""},
    "take": {"type": "path", "default": ""},
    "records": {"type": "list", "elements": "dict", "default": []},
    "skip_known": {"type": "bool", "default": False},
    "scenarios": {"type": "str", "choices": ["auto", *_evaluation_suite.SETS], "default": "short"},
    "only": {"type": "list", "elements": "str", "default": []},
    "packs": {"type": "list", "elements": "path", "default": []},
    "modes": {"type": "list", "elements": "str", "choices": ["streamed", "whole"], "default": ["streamed", "whole"]},
    "trials": {"type": "int", "default": 1},
    "thinking": {"type": "bool", "default": True},
    "temperature": {"type": "float", "default": 0.0},
    "request": {"type": "dict", "default": {}},
    "concurrency": {"type": "int", "default": 0},
    "request_seconds": {"type": "int", "default": 120},
    "seconds": {"type": "int", "default": 1800},
    "venv": {"type": "path", "default": "~/.cache/gb10-vllm/tool-eval-bench-3.0.0"},
    "command": {"type": "list", "elements": "str", "default": []},
    "work_dir": {"type": "path", "default": "~/.cache/gb10-vllm/evaluations"},
    "drop": {"type": "float", "default": 3.0},
    "gap": {"type": "float", "default": 10.0},
    "fault_percent": {"type": "float", "default": 5.0},
    "minimum": {"type": "float", "default": 0.0},
    "accept_incomparable": {"type": "bool", "default": False},
}


def missing(options: dict[str, Any]) -> str:
    """What is not there and how it gets there, empty when the test can begin."""
    absent = [pack for pack in options["packs"] if not os.path.isdir(pack)]
    if absent:
        return f"vllm_evaluation_packs names {', '.join(absent)}, which is no folder on the controller"
    if options["scenarios"] == "packs" and not options["packs"]:
        return "vllm_evaluation_scenarios is packs, but vllm_evaluation_packs names none"
    if options["command"]:
        found = shutil.which(options["command"][0])
        return (
            ""
            if found
            else f"vllm_evaluation_command names {options['command'][0]}, which is no program on the controller"
        )
    version = _evaluation_run.version_of(program(options))
    if version == _evaluation_suite.VERSION:
        return ""
    what = f"version {version}" if version else "nothing that runs"
    return (
        f"the suite {_evaluation_suite.SUITE} {_evaluation_suite.VERSION} is not in {options['venv']} on the controller (there is {what}). Install it "
        f"with playbook gb10.vllm.evaluate and -e vllm_evaluation_install=true, or make that virtual environment by hand: python3 -m venv "
        f"{options['venv']} && {options['venv']}/bin/pip install {_evaluation_suite.SUITE}=={_evaluation_suite.VERSION}. Nothing was started"
    )


def program(options: dict[str, Any]) -> str:
    return os.path.join(options["venv"], "bin", _evaluation_suite.SUITE)


def planned(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], _evaluation_suite.Plan]:
    """What is evaluated, how, and as the suite wants it."""
    what = _evaluation_table.together(
        [
            _evaluation_table.described(one.get("record") or {}, str(one.get("name") or ""))
            for one in options["releases"]
        ]
    )
    chosen = _evaluation_table.scenarios(options["scenarios"], what, options["records"])
    plan = _evaluation_suite.Plan(
        model=what.get("served_model_name") or what.get("model") or "",
        scenarios=chosen,
        packs=tuple(options["packs"]),
        only=tuple(options["only"]),
        thinking=options["thinking"],
        temperature=options["temperature"],
        request=options["request"],
        concurrency=options["concurrency"] or int(what.get("max_num_seqs") or 0) or 8,
        timeout=options["request_seconds"],
        command=tuple(options["command"]),
    )
    how = {
        "suite": os.path.basename(plan.command[0]) if plan.command else _evaluation_suite.SUITE,
        "scenarios": "command" if plan.command else chosen,
        "trials": options["trials"],
        "thinking": plan.thinking,
        "temperature": plan.temperature,
        "request": dict(plan.request or {}),
        "modes": sorted(options["modes"]),
        "concurrency": plan.concurrency,
    }
    return what, how if plan.command else {**how, "version": _evaluation_suite.VERSION}, plan


def judged(record: dict[str, Any], options: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """The complete record, and the one of this site that it was compared with."""
    last = _evaluation.reference(record, options["records"])
    rules = _evaluation.Rules(
        **{name: options[name] for name in ("drop", "gap", "fault_percent", "minimum", "accept_incomparable")}
    )
    verdict = _evaluation.judge(record, last, rules)
    complete = {
        **record,
        "score": _evaluation.score(record),
        "safety_failures": _evaluation.safety(record),
        "server_errors": record["wire"].get("server_errors", 0),
        "verdict": verdict.name,
        "reason": verdict.reason,
        "compared_with": verdict.against,
        "accepted": verdict.name == _evaluation.PASS,
    }
    return complete, last


def outcome(record: dict[str, Any], last: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Of a record that is to be kept, what the task returns."""
    return {
        "changed": True,
        "record": record,
        "lines": _evaluation_table.lines(record, last),
        "scores": _evaluation_table.history([*options["records"], record]),
        "verdict": record["verdict"],
        "reason": record["reason"],
    }


def taken(options: dict[str, Any]) -> dict[str, Any]:
    """A record that another site made, for example that of a spare host, judged by the records of this one."""
    path = options["take"]
    try:
        with open(os.path.expanduser(path), encoding="utf-8") as stream:
            record = json.load(stream)
        problem = _evaluation.malformed(record)
    except (OSError, ValueError) as error:
        record, problem = {}, f"it cannot be read: {error}"
    if not problem and any(record["id"] == one["id"] for one in options["records"]):
        problem = f"record {record['id']} is here already"
    if not problem:
        record, last = judged({**record, "kind": "taken"}, options)
        if record["verdict"] in (_evaluation.PASS, _evaluation.FAIL):
            return outcome(record, last, options)
        problem = record["reason"]
    message = f"vllm_evaluation_take is {path} on the controller: {problem}. Nothing was kept"
    return {"failed": True, "verdict": _evaluation.ERROR, "reason": message, "msg": message}


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=ARGUMENTS)
        for name in ("venv", "work_dir"):
            options[name] = os.path.abspath(os.path.expanduser(options[name]))
        empty = {
            **result,
            "changed": False,
            "record": {},
            "lines": [],
            "scores": [],
            "verdict": "",
            "reason": "",
            "skipped_for": "",
        }
        if options["take"]:
            return {**empty, **taken(options)}
        try:
            options["releases"] += self.read(options["release_path"], task_vars or {})
        except OSError as error:
            return {**empty, "failed": True, "verdict": _evaluation.ERROR, "reason": str(error), "msg": str(error)}
        what, how, plan = planned(options)
        before = _evaluation_table.known(what, options["records"]) if options["skip_known"] and what else ""
        if before:
            reason = f"this release was tested before and accepted, see record {before}"
            return {**empty, "verdict": _evaluation.PASS, "reason": reason, "skipped_for": before}
        problem = missing(options)
        if not problem and not plan.model:
            problem = f"nothing is known about a release of {options['against']}, so there is no model to ask for. Nothing was started"
        if not problem and not options["accept_incomparable"]:
            against, differences = _evaluation.wanted({"how": how}, options["records"])
            problem = f"{_evaluation.incomparable(against, differences)}. Nothing was started" if differences else ""
        if problem:
            return {**empty, "failed": True, "verdict": _evaluation.ERROR, "reason": problem, "msg": problem}
        if options["state"] == "ready" or self._task.check_mode:
            return empty
        return {**empty, **outcome(*self.evaluate(options, what, how, plan), options)}

    def read(self, path: str, variables: dict[str, Any]) -> list[dict[str, Any]]:
        """The release in a file on the task's host. A host that is lost is a failure like any other, which a rollout judges."""
        if not path:
            return []
        try:
            found = self._execute_module(
                module_name="ansible.legacy.slurp", module_args={"src": path}, task_vars=variables
            )
        except AnsibleConnectionFailure as error:
            raise OSError(f"the host could not be reached: {error}") from None
        if found.get("failed"):
            raise OSError(f"the release cannot be read: {found.get('msg')}")
        return [{"name": path.split("/")[-2], "record": json.loads(base64.b64decode(found["content"]))}]

    def evaluate(
        self, options: dict[str, Any], what: dict[str, Any], how: dict[str, Any], plan: _evaluation_suite.Plan
    ) -> tuple[dict[str, Any], Any]:
        """What `judged` returns of a measurement."""
        began = time.time()
        key = _evaluation_suite.digest(
            [options["against"], options["port"], options["url"], what, how, list(plan.only), list(plan.packs)]
        )
        try:
            with self.way(options) as url:
                run = _evaluation_run.Evaluation(
                    plan,
                    program(options),
                    os.path.join(options["work_dir"], key),
                    url,
                    options["api_key"],
                    options["seconds"],
                    self.teller(options["against"]),
                )
                found = run.measure(options["modes"], options["trials"])
        except (_evaluation_tunnel.TunnelError, OSError) as error:
            run, found = None, {"passes": [], "wire": {}, "problem": str(error), "gone": "", "resumed": False}
        for entry in found["passes"]:
            # The suite itself says which one it is.
            how |= {key: entry.pop(key) for key in ("suite", "version", "digest") if key in entry}
        record = {
            "schema": _evaluation.SCHEMA,
            "id": f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began))}-{options['against']}",
            "time": round(began, 3),
            "seconds": round(time.time() - began, 1),
            "kind": options["kind"],
            "against": options["against"],
            "what": what,
            "how": how,
            **found,
        }
        # What was not finished goes on the next time.
        if run and not found["problem"]:
            run.forget()
        return judged(record, options)

    @contextlib.contextmanager
    def way(self, options: dict[str, Any]) -> Iterator[str]:
        if options["url"]:
            yield options["url"]
            return
        with _evaluation_tunnel.opened(self._connection, options["port"]) as url:
            yield url

    def teller(self, against: str) -> Callable[[str], None]:
        """Say where the test is, now and then."""
        said = 0.0

        def tell(words: str) -> None:
            nonlocal said
            if time.monotonic() - said >= HEARTBEAT_SECONDS:
                said = time.monotonic()
                self._display.display(f"[{against}] tool calls: {words}")

        return tell
