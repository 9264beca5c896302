#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_gate
short_description: Wait until an engine is proven fit to serve
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Proves in this order that the engine's process lives, that C(/health) answers, that C(/v1/models) shows the right name and
    length, and that a real completion has the expected content. C(/health) alone is not enough, because it stays 200 with a
    hung engine and with a broken build.
  - While the engine loads, the terminal shows a heartbeat per host with phase, seconds and the engine's last log line.
  - Ends at once when the engine's process ends, instead of waiting for the deadline.
  - A rank without an HTTP port (O(headless=true)) watches its own process and asks rank 0.
  - Reads the engine's log, unit and HTTP port; sends small completions; changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Says that it would wait, and asks nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
  action:
    description: Runs partly on the controller.
    support: full
    details: The action asks the module on the host again and again and prints the heartbeat; a look happens on the host.
options:
  address:
    description: Address to ask, the host itself or for a headless rank the host of rank 0.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
  headless:
    description: Whether this host's rank has no HTTP port of its own.
    type: bool
    default: false
  model:
    description: Name that C(/v1/models) must show.
    type: str
    required: true
  max_model_len:
    description: Shortest acceptable length in tokens; not looked at when left out.
    type: int
  prompt:
    description: Prompt of the completion.
    type: str
    default: What is the capital of France? Answer with one word.
  expect:
    description: Regular expression that the answer must match.
    type: str
    default: (?i)\bparis\b
  max_tokens:
    description: Bound of the answer in tokens. A thinking model that ignores the request not to think needs room.
    type: int
    default: 64
  completion_seconds:
    description: How long one completion may take, in seconds.
    type: float
    default: 60
  successes:
    description: Good completions in a row.
    type: int
    default: 2
  minimum_healthy_seconds:
    description: Time between the first and the last of them, in seconds.
    type: float
    default: 1
  deadline_seconds:
    description: Budget of the whole gate, in seconds.
    type: int
    required: true
  started_at:
    description: When the engine was started, in seconds since the epoch; bounds the log that is read. The action sets it to now.
    type: float
  secrets_file:
    description: File on the host with the line C(VLLM_API_KEY=...) that the engine was started with.
    type: path
    default: ""
  heartbeat_seconds:
    description: Time between two heartbeats on the terminal, in seconds.
    type: float
    default: 10
seealso:
  - module: gb10.vllm.engine
"""

EXAMPLES = r"""
- name: Prove that the copy is fit to serve
  gb10.vllm.engine_gate:
    model: qwen3.8-flash-next
    max_model_len: 262144
    deadline_seconds: 1800
"""

RETURN = r"""
verdict:
  description: C(pass), C(fail) (the engine is bad), C(gone) (its process ended) or C(error) (could not be measured).
  type: str
  returned: always
reason:
  description: Why, in one sentence. Empty for C(pass).
  type: str
  returned: always
passed_at:
  description: When the gate was passed, in seconds since the epoch by the host's clock.
  type: float
  returned: when passed
seconds:
  description: Seconds from the start to the verdict.
  type: float
  returned: always
phase:
  description: Where the start was.
  type: str
  returned: always
log:
  description: The engine's last log lines.
  type: list
  elements: str
  returned: unless passed
"""

import time
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _gate, _host, _http, _phase

LOOK_INTERVAL = 0.25


def api_key(path: str) -> str:
    """The key from the secrets file, so that it stands on no command line and in no log."""
    if not path:
        return ""
    try:
        with open(path) as lines:
            for line in lines:
                name, _separator, value = line.rstrip("\n").partition("=")
                if name == "VLLM_API_KEY":
                    return value
    except FileNotFoundError:
        pass
    return ""


def look(options: dict[str, object], rules: _gate.Rules, state: _gate.State, key: str) -> _gate.Look:
    """Ask everything in order, and stop at the first proof that fails."""
    seen = _gate.Look(at=time.time())
    unit = _host.unit_state()
    state.invocation = state.invocation or unit.get("InvocationID", "")
    seen.gone = _gate.process_step(unit, state.invocation)
    if seen.gone:
        return seen
    base = f"http://{options['address']}:{options['port']}"
    health = _http.get(f"{base}/health", timeout=5)
    if health.status != 200:
        seen.steps.append(_gate.Step("health", good=False, reason=f"/health: {health.status or health.problem}"))
        return seen
    models = _http.get(f"{base}/v1/models", timeout=5, token=key)
    seen.steps.append(_gate.models_step(models.json(), rules))
    if not seen.steps[-1].good:
        return seen
    answer = _http.post(
        f"{base}/v1/chat/completions",
        {
            "model": rules.model,
            "messages": [{"role": "user", "content": options["prompt"]}],
            "max_tokens": options["max_tokens"],
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False},
        },
        timeout=float(str(options["completion_seconds"])),
        token=key,
    )
    seen.steps.append(_gate.completion_step(answer.status, answer.json(), answer.problem or answer.body[:200], rules))
    seen.at = time.time()
    return seen


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 8000},
            "headless": {"type": "bool", "default": False},
            "model": {"type": "str", "required": True},
            "max_model_len": {"type": "int"},
            "prompt": {"type": "str", "default": "What is the capital of France? Answer with one word."},
            "expect": {"type": "str", "default": r"(?i)\bparis\b"},
            "max_tokens": {"type": "int", "default": 64, "no_log": False},
            "completion_seconds": {"type": "float", "default": 60},
            "successes": {"type": "int", "default": 2},
            "minimum_healthy_seconds": {"type": "float", "default": 1},
            "deadline_seconds": {"type": "int", "required": True},
            "started_at": {"type": "float"},
            "secrets_file": {"type": "path", "default": "", "no_log": False},
            "heartbeat_seconds": {"type": "float", "default": 10},
            # what the action remembers between two calls
            "_state": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    options = module.params
    started = options["started_at"] or time.time()
    rules = _gate.Rules(
        model=options["model"],
        max_model_len=options["max_model_len"],
        expect=options["expect"],
        successes=options["successes"],
        minimum_healthy=options["minimum_healthy_seconds"],
    )
    state = _gate.State.of(options["_state"])
    verdict = _gate.PENDING
    budget = _host.Deadline(options["heartbeat_seconds"])
    try:
        key = api_key(options["secrets_file"])
        while True:
            verdict, state = _gate.judge(state, look(options, rules, state, key), rules)
            if verdict != _gate.PENDING or budget.left <= 0 or time.time() - started >= options["deadline_seconds"]:
                break
            budget.pause(LOOK_INTERVAL)
        lines = _host.last_log_lines(200, started - 1)
    except (OSError, _host.HostError) as error:
        verdict, lines = _gate.ERROR, []
        state.reason = str(error)
    now = time.time()
    result: dict[str, object] = {
        "verdict": verdict,
        "reason": state.reason,
        "seconds": round(now - started, 3),
        "phase": _phase.phase(lines),
        "log": lines[-30:],
        "last_log_line": _phase.short(lines[-1]) if lines else "",
        "_state": asdict(state),
    }
    if verdict == _gate.PASS:
        result["passed_at"] = now
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
