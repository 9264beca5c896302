#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_ready
short_description: Wait until an engine has loaded, with a heartbeat
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Waits on the engine's own host until C(/health) answers 200. While the engine loads, the terminal shows a heartbeat per host with
    phase, seconds and the engine's last log line.
  - Ends at once when the engine's process ends, instead of waiting for the deadline, and says why it ended in one sentence.
  - This is not the gate, because C(/health) stays 200 with a hung engine and with a broken build. The proofs that admit a copy
    are those of M(gb10.vllm.proxy_admit).
  - A rank without an HTTP port watches its own process and asks rank 0 (O(address)).
  - Learns how long the release takes to load on this host, cold (its first start since the host booted) and warm, and keeps the last
    of both in O(loads_file). Once known, three times the longest of them and 60 seconds more are waited for, but never less than a
    quarter of O(deadline_seconds) and never more than it.
  - A host that cannot be reached or asked for up to 30 seconds while it waits is no failure; after that the verdict is C(error).
  - Reads the engine's log, unit and port. Writes O(loads_file) when a start that it was told the moment of was good; never touches
    the engine.
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
  deadline_seconds:
    description: Budget of the wait, in seconds. Shorter once it is known how long O(release) takes.
    type: int
    required: true
  started_at:
    description:
      - When the engine was started, in seconds since the epoch of the host; bounds the log that is read. Without it the clock starts
        with the wait, and nothing is learned.
    type: float
  release:
    description: Id of the release that was started. Without it nothing is learned or expected.
    type: str
    default: ""
  loads_file:
    description: File with what was learned.
    type: path
    default: /var/lib/gb10-vllm/loads.json
  heartbeat_seconds:
    description: Time between two heartbeats on the terminal, in seconds.
    type: float
    default: 10
  invocation:
    description: Which start of the unit is waited for. Set by the action, from the first look.
    type: str
    default: ""
seealso:
  - module: gb10.vllm.engine
  - module: gb10.vllm.proxy_admit
"""

EXAMPLES = r"""
- name: Wait until the engine has loaded
  gb10.vllm.engine_ready:
    deadline_seconds: 1800

- name: Wait for a start, no longer than this release needs
  gb10.vllm.engine_ready:
    deadline_seconds: "{{ record.budgets.gate_deadline }}"
    release: "{{ record.id }}"
    started_at: "{{ started.started_at }}"
"""

RETURN = r"""
verdict:
  description: C(pass), C(fail) (not in time), C(gone) (its process ended) or C(error) (could not be measured).
  type: str
  returned: always
reason:
  description: Why, in one sentence. Empty for C(pass).
  type: str
  returned: always
failure:
  description:
    - Kind of the failure, empty for C(pass).
    - C(memory_refused), C(memory_changed), C(kv_too_small), C(bad_argument), C(parser_refused), C(port_taken), C(offline_lookup),
      C(weights_incomplete), C(image_missing), C(container), C(disk_full), C(device), C(device_memory), C(pair), C(stopped) (from
      outside), C(killed), C(engine_dead), C(ended) (with status 0 though nobody stopped it), C(gave_up) (systemd), C(deadline),
      C(unreachable), C(unmeasured) or C(unknown).
  type: str
  returned: always
advice:
  description: What to do about it.
  type: str
  returned: always
seconds:
  description: Seconds from the start to the verdict.
  type: float
  returned: always
deadline_seconds:
  description: The budget that was in force, in seconds.
  type: int
  returned: always
expected_seconds:
  description: Seconds that such a start took last time on this host, null where that is not known.
  type: float
  returned: always
started_at:
  description: When the clock started, in seconds since the epoch.
  type: float
  returned: always
phase:
  description: Where the start was.
  type: str
  returned: always
last_log_line:
  description: The engine's last log line, shortened.
  type: str
  returned: always
log:
  description: The engine's last log lines.
  type: list
  elements: str
  returned: unless passed
invocation:
  description: Which start of the unit was waited for.
  type: str
  returned: always
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import (
    _budgets,
    _failure,
    _gate,
    _gate_probe,
    _host,
    _loads,
    _phase,
)

# A whole stack trace of the engine and one of the server above it are less than this.
LOG_LINES = 400
# A first look this soon after the start measures the load well enough even when the engine is ready already.
SOON_SECONDS = 30


class Wait:
    """One slice of a wait: looks until there is a verdict or the slice is over."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.started: float = options["started_at"] or time.time()
        self.invocation: str = options["invocation"]
        # a slice before this one did not see it ready
        self.watched = bool(self.invocation) or time.time() - self.started < SOON_SECONDS
        self.unit: dict[str, str] = {}
        self.boot = _loads.boot_id()
        known = _loads.read(options["loads_file"]) if options["release"] else {}
        self.expected = _loads.expectation(known, options["release"], self.boot)
        self.deadline = _budgets.learned_deadline(options["deadline_seconds"], self.expected.longest)

    def look(self) -> tuple[str, str]:
        """One look: verdict and reason."""
        self.unit = _host.unit_state()
        self.invocation = self.invocation or self.unit.get("InvocationID", "")
        gone = _gate.process_step(self.unit, self.invocation)
        if gone:
            return _gate.GONE, gone
        health = _gate_probe.health(_gate_probe.base_url(self.options["address"], self.options["port"]))
        if health.good:
            return _gate.PASS, ""
        over = time.time() - self.started >= self.deadline
        return (_gate.FAIL if over else _gate.PENDING), health.reason

    def slice(self) -> dict[str, Any]:
        budget = _host.Deadline(self.options["heartbeat_seconds"])
        verdict, reason = self.look()
        while verdict == _gate.PENDING and budget.left > 0:
            self.watched = True
            budget.pause(_gate_probe.LOOK_INTERVAL)
            verdict, reason = self.look()
        seconds = round(time.time() - self.started, 3)
        if verdict == _gate.GONE:
            _host.run(["journalctl", "--sync"], check=False)
        lines = _host.last_log_lines(LOG_LINES, self.started - 1)
        failure = _failure.Failure("", reason, "")
        if verdict == _gate.GONE:
            failure = _failure.of_end(reason, lines, self.unit)
        elif verdict == _gate.FAIL:
            failure = _failure.of_deadline(self.deadline, self.expected.seconds, lines, reason)
        return {**self.outcome(verdict, failure), **self.words(lines), "seconds": seconds}

    def outcome(self, verdict: str, failure: _failure.Failure) -> dict[str, Any]:
        return {
            "verdict": verdict,
            "failure": failure.kind,
            "reason": failure.sentence,
            "advice": failure.advice,
            "deadline_seconds": self.deadline,
            "expected_seconds": self.expected.seconds,
            "seconds": round(time.time() - self.started, 3),
            "started_at": self.started,
            "invocation": self.invocation,
        }

    def words(self, lines: list[str]) -> dict[str, Any]:
        last = _phase.short(lines[-1]) if lines else ""
        return {"phase": _phase.phase(lines), "last_log_line": last, "log": lines[-30:]}

    def learn(self, seconds: float) -> None:
        if self.options["release"] and self.options["started_at"] and self.watched and self.invocation:
            path = self.options["loads_file"]
            known = _loads.read(path)
            learned = _loads.learn(known, self.options["release"], seconds, self.boot, self.invocation, time.time())
            if learned != known:
                _loads.write(path, learned)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 8000},
            "deadline_seconds": {"type": "int", "required": True},
            "started_at": {"type": "float"},
            "release": {"type": "str", "default": ""},
            "loads_file": {"type": "path", "default": "/var/lib/gb10-vllm/loads.json"},
            "heartbeat_seconds": {"type": "float", "default": 10},
            "invocation": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    wait = Wait(module.params)
    try:
        result = wait.slice()
    except (OSError, _host.HostError) as error:
        result = {**wait.outcome(_gate.ERROR, _failure.Failure("unmeasured", str(error), "")), **wait.words([])}
    if result["verdict"] == _gate.PASS and not module.check_mode:
        try:
            wait.learn(result["seconds"])
        except OSError as error:
            module.warn(f"the load time could not be kept in {module.params['loads_file']}: {error}")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
