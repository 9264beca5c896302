#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memory_record
short_description: Keep what a start of the engine made of its memory, and compare it with the plan
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the engine's own figures after a start, which are the log lines of that start of C(vllm.service) and C(vllm:cache_config_info)
    of its C(/metrics). Keeps them in one file per image digest, checkpoint and topology, so that the next plan is made from them.
  - Fails with the verdict C(short) when fewer full-length requests fit than planned by more than O(shortfall), and with the verdict
    C(negative) when nothing was left for the cache, or when the estimate of the graphs is negative, which makes the cache larger
    than the memory behind it. The figures are kept in both cases. A start that does not say enough is C(unmeasured) and does not fail.
  - Compared are full-length requests, the one figure that means the same in all builds of the engine.
  - Changes only that file. Never touches the engine.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Judges the running engine and writes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A second look at the same start replaces the first, so only new figures are a change.
options:
  record:
    description: Record of the release that was started. Read from the link C(current) when not given.
    type: dict
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  state_dir:
    description: Folder whose subfolder C(measured) holds the figures.
    type: path
    default: /var/lib/gb10-vllm
  planned_requests:
    description:
      - Full-length requests that the plan promised, more than 0.
      - Without it the last good start with the same settings and utilization is what is compared with.
    type: float
  shortfall:
    description: Share below the plan that is still good, 0 to 1. 1 GiB of a cache of 13 GiB is 0.08.
    type: float
    default: 0.15
  enforce:
    description:
      - Whether the verdicts C(short) and C(negative) fail. With V(false) they are a warning, for a release that has to come back
        whatever it holds.
    type: bool
    default: true
  host:
    description: Name of the host for messages.
    type: str
    default: this host
"""

EXAMPLES = r"""
- name: Keep the figures of this start and judge them
  gb10.vllm.memory_record:
    planned_requests: 4.1
    host: "{{ inventory_hostname }}"
"""

RETURN = r"""
verdict:
  description: C(ok), C(short), C(negative) or C(unmeasured).
  type: str
  returned: always
words:
  description: The reasons, and remarks on a good start.
  type: list
  elements: str
  returned: always
share:
  description: Requests that fit as a share of the planned ones, null where nothing was planned.
  type: float
  returned: always
figures:
  description: The figures as they are kept. Sizes are in bytes; null is what the engine did not say.
  type: dict
  returned: always
file:
  description: File with the figures.
  type: str
  returned: always
"""

import os
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _http, _memory_host
from ansible_collections.gb10.vllm.plugins.module_utils._memory import (
    cache_info,
    compare,
    engine_arguments,
    records,
    startup_log,
)
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError

WAYS_OUT = {
    "short": "look for work that took memory while the engine started, then start it again; or plan with what was measured now (playbook plan.yml)",
    "negative": "raise gpu-memory-utilization, lower max-num-batched-tokens, or set VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS to 0 "
    "in vllm_environment_overrides",
}


def started_with(arguments: dict[str, Any]) -> dict[str, Any]:
    """How the engine was started; a value that no plan can be made from must not keep a good engine away."""
    try:
        return engine_arguments.engine_block(arguments)
    except PlanError as error:
        return {"max_model_len": 0, "utilization": 0.0, "unmodelled": str(error)}


def figures_of(record: dict[str, Any], invocation: str) -> tuple[startup_log.StartFigures, dict[str, Any]]:
    """What the log says, and the entry that is kept."""
    lines = _memory_host.log_of_start(invocation)
    figures = startup_log.read_start(lines)
    exposition = "" if record["rank"] else _http.get(f"http://127.0.0.1:{record['port']}/metrics", timeout=10).body
    arguments = engine_arguments.from_command(record["command"])
    entry = records.start_entry(
        figures,
        cache_info.read_cache_info(exposition),
        records.read_total(lines),
        _memory_host.engine_view()[0],
        started_with(arguments),
        byte_mode="kv-cache-memory-bytes" in engine_arguments.long_names(arguments),
    )
    return figures, entry


def look(options: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    record = options["record"] or _host.read_json(f"{options['base_dir']}/current/release.json")
    unit = _host.unit_state()
    if record is None or unit["ActiveState"] != "active":
        raise _host.HostError("no engine runs, so nothing can be measured: start it first")
    figures, entry = figures_of(record, unit["InvocationID"])
    name = records.file_name(record["digest"], record["model"], record["revision"], record["topology"])
    path = os.path.join(options["state_dir"], _memory_host.MEASURED, name)
    before = _host.read_json(path)
    entry.update(
        invocation=unit["InvocationID"],
        rank=record["rank"],
        release=_host.linked_release(options["base_dir"], "current") or "",
    )
    planned = options["planned_requests"] or records.expected_requests(before, entry)
    outcome = compare.judge_start(planned or 1e-9, figures, options["shortfall"])
    entry.update(verdict=outcome.verdict, planned_requests=planned)
    known: dict[str, Any] = next(
        (start for start in (before or {}).get("starts", []) if start["invocation"] == entry["invocation"]), {}
    )
    entry["began"] = known.get("began") or round(time.time(), 3)
    about = {key: record[key] for key in ("digest", "model", "revision", "topology", "rank", "ranks")}
    after = records.add_start(before, about, entry)
    if after != before and not check_mode:
        _memory_host.keep(options["state_dir"], name, after)
    share = round(outcome.share, 4) if planned else None
    return {
        "changed": after != before,
        "verdict": outcome.verdict,
        "words": list(outcome.words),
        "share": share,
        "figures": entry,
        "file": path,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "record": {"type": "dict"},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "state_dir": {"type": "path", "default": "/var/lib/gb10-vllm"},
            "planned_requests": {"type": "float"},
            "shortfall": {"type": "float", "default": 0.15},
            "enforce": {"type": "bool", "default": True},
            "host": {"type": "str", "default": "this host"},
        },
        supports_check_mode=True,
    )
    options = module.params
    if not 0 <= options["shortfall"] < 1:
        module.fail_json(msg=f"shortfall is {options['shortfall']}: must be at least 0 and less than 1")
    try:
        found = look(options, module.check_mode)
    except (OSError, KeyError, PlanError, _host.HostError) as error:
        module.fail_json(msg=f"the memory of the engine on {options['host']} could not be measured: {error}")
    if found["verdict"] in WAYS_OUT:
        message = (
            f"memory verdict {found['verdict']} on {options['host']}: {'; '.join(found['words'])}. The figures are kept in {found['file']}; "
            f"{WAYS_OUT[found['verdict']]}"
        )
        if options["enforce"]:
            module.fail_json(msg=message, **found)
        module.warn(message)
    # a rank without a port does not say how many requests fit; the head does
    if found["verdict"] == "unmeasured" and found["figures"]["rank"] == 0:
        module.warn(f"{options['host']}: {'; '.join(found['words'])}")
    module.exit_json(**found)


if __name__ == "__main__":
    main()
