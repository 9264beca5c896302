#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_soak
short_description: Watch an engine that serves for a while, and prove it once more at the end
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs on the engine's own host after it was admitted, because some releases come up well and end a little later.
  - Watches for O(soak_seconds) that the unit stays active in the same start, that its container runs, and that C(/health) answers 200;
    three misses in a row are bad. Ends at the first sign of a bad engine instead of watching on.
  - At the end the engine has to answer a completion and a streamed one, as for M(gb10.vllm.proxy_admit). An engine that answers 503
    because it is busy is asked again until O(deadline_seconds).
  - Reads the unit, its log, the container and the port; sends two small completions. Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
  - gb10.vllm._gate
attributes:
  check_mode:
    support: full
    details: Says that it would watch, and asks nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  address:
    description: Address of the engine as its own host reaches it.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
  has_port:
    description: Whether this rank has an HTTP port. Of a rank without one only the process is watched.
    type: bool
    default: true
  soak_seconds:
    description: How long to watch, in seconds, at least 0. V(0) goes straight to the proof at the end.
    type: int
    default: 60
  deadline_seconds:
    description: Budget of the proof at the end, in seconds.
    type: int
    default: 60
  invocation:
    description: Which start of the unit has to last, as M(gb10.vllm.engine_ready) returns it. Empty takes the one that runs now.
    type: str
    default: ""
seealso:
  - module: gb10.vllm.engine_ready
  - module: gb10.vllm.proxy_admit
"""

EXAMPLES = r"""
- name: Watch the copy for a minute
  gb10.vllm.engine_soak:
    soak_seconds: 60
    model: qwen3.8-flash-next
    max_model_len: 262144
"""

RETURN = r"""
verdict:
  description:
    - C(pass), C(fail) (the engine is bad), C(gone) (its process ended) or C(error) (could not be measured); C(skipped) in check mode.
  type: str
  returned: always
reason:
  description: Why, in one sentence. Empty for C(pass).
  type: str
  returned: always
failure:
  description:
    - Kind of the failure, empty for C(pass). With C(gone) one of those of M(gb10.vllm.engine_ready).
    - C(health), C(models), C(completion) or C(stream) name the proof that failed; C(unmeasured) stands for a host that did not answer.
  type: str
  returned: always
advice:
  description: What to do about it.
  type: str
  returned: always
seconds:
  description: Seconds from the first look to the verdict.
  type: float
  returned: always
log:
  description: The last log lines of this start.
  type: list
  elements: str
  returned: failure
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _failure, _gate, _gate_probe, _host, _memory_host
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER

LOOK_SECONDS = 1.0
MOST_MISSES = 3
LOG_LINES = 400
_LOOK = "look at `journalctl --unit vllm` on the host"


class Soak:
    """Looks until the time is over or something is wrong."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.invocation: str = options["invocation"]
        self.unit: dict[str, str] = {}
        self.log: list[str] = []
        self.base = _gate_probe.base_url(options["address"], options["port"])

    def process(self) -> str:
        """Empty while the unit is in the same start, else what became of it."""
        self.unit = _host.unit_state()
        self.invocation = self.invocation or self.unit.get("InvocationID", "")
        return _gate.process_step(self.unit, self.invocation)

    def miss(self) -> str:
        """Empty when container and port are well; one miss alone means nothing."""
        container = _host.container_state(CONTAINER)
        if not container or container["status"] != "running":
            return f"the container {CONTAINER} is {container['status'] if container else 'not there'}"
        if self.options["has_port"]:
            health = _gate_probe.health(self.base)
            return "" if health.good else health.reason
        return ""

    def gone(self, seen: str) -> tuple[str, _failure.Failure]:
        _host.run(["journalctl", "--sync"], check=False)
        self.log = _memory_host.log_of_start(self.invocation)[-LOG_LINES:]
        return _gate.GONE, _failure.of_end(seen, self.log, self.unit)

    def watch(self) -> tuple[str, _failure.Failure] | None:
        """None when it was well for the whole time."""
        budget, misses = _host.Deadline(self.options["soak_seconds"]), 0
        while True:
            verdict, kind = _gate.FAIL, "health"
            try:
                ended = self.process()
                missed = "" if ended else self.miss()
            except (OSError, _host.HostError) as error:
                verdict, kind, ended, missed = _gate.ERROR, "unmeasured", "", str(error)
            if ended:
                return self.gone(ended)
            misses = misses + 1 if missed else 0
            if misses >= MOST_MISSES:
                return verdict, _failure.Failure(
                    kind, f"{missed}, {misses} times in a row after it was admitted", _LOOK
                )
            # a miss at the end is looked at again, not forgotten
            if budget.left <= 0 and not missed:
                return None
            if misses:
                budget = _host.Deadline(max(budget.left, LOOK_SECONDS))
            budget.pause(LOOK_SECONDS)

    def prove(self) -> tuple[str, _failure.Failure]:
        verdict, state, _at = _gate_probe.wait(self.base, self.options, loaded=True, busy_is_bad=False)
        ended = self.process()
        if ended:
            return self.gone(ended)
        return verdict, _failure.Failure(
            state.step if state.reason else "", state.reason, _LOOK if state.reason else ""
        )

    def verdict(self) -> tuple[str, _failure.Failure]:
        found = self.watch()
        if found:
            return found
        return self.prove() if self.options["has_port"] else (_gate.PASS, _failure.Failure("", "", ""))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_gate_probe.OPTIONS,
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 8000},
            "has_port": {"type": "bool", "default": True},
            "soak_seconds": {"type": "int", "default": 60},
            "deadline_seconds": {"type": "int", "default": 60},
            "invocation": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    wanted = module.params["soak_seconds"]
    if wanted < 0:
        module.fail_json(msg=f"soak_seconds is {wanted}: must be at least 0")
    if module.check_mode:
        words = f"would watch for {wanted} s"
        module.exit_json(changed=False, verdict="skipped", reason=words, failure="", advice="", seconds=0.0)
    soak, clock = Soak(module.params), _host.Deadline(wanted)
    try:
        verdict, failure = soak.verdict()
    except (OSError, _host.HostError) as error:
        verdict, failure = _gate.ERROR, _failure.Failure("unmeasured", str(error), "look at the host")
    result: dict[str, Any] = {
        "verdict": verdict,
        "reason": failure.sentence,
        "failure": failure.kind,
        "advice": failure.advice,
    }
    result["seconds"] = round(clock.elapsed, 3)
    if verdict == _gate.PASS:
        module.exit_json(changed=False, **result)
    could = "could not be measured" if verdict == _gate.ERROR else "did not stay well"
    words = (
        f"the engine {could} after {clock.elapsed:.0f} s ({verdict}): {failure.sentence}. What to do: {failure.advice}"
    )
    module.fail_json(msg=words, log=soak.log[-30:], **result)


if __name__ == "__main__":
    main()
