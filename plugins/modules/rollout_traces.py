#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rollout_traces
short_description: Read what a rollout left on an engine host
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the records of the releases that a rollout was about, the phases of its starts from the log of C(vllm.service), and the
    memory that these starts found.
  - Values of environment variables and arguments whose names are those of secrets are replaced on the host.
  - What is not there any more is left out. Changes nothing.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Changes nothing in any mode.
  diff_mode:
    support: N/A
    details:
      - Changes nothing.
  idempotent:
    support: full
    details:
      - Changes nothing.
  action:
    description: Runs partly on the controller.
    support: full
    details: A host that cannot be reached becomes a failed result; everything else happens on the host.
options:
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  state_dir:
    description: Folder whose subfolder C(measured) holds the figures of earlier starts.
    type: path
    default: /var/lib/gb10-vllm
  releases:
    description: Ids of the releases.
    type: list
    elements: str
    default: []
  starts:
    description: When the engine was started, in seconds since the epoch.
    type: list
    elements: float
    default: []
  stops:
    description: Stops, each a mapping with C(from) and C(to) in seconds since the epoch.
    type: list
    elements: dict
    default: []
  until:
    description: No log line after this moment belongs to the rollout, in seconds since the epoch. Without it, now.
    type: float
"""

EXAMPLES = r"""
- name: Read the releases
  gb10.vllm.rollout_traces:
    releases: [replicated-0123456789ab, split-ba9876543210]
  register: traces
"""

RETURN = r"""
records:
  description: By id the releases that are on this host.
  type: dict
  returned: success
starts:
  description: Of each start C(began) and its C(phases), each with C(phase) and C(at).
  type: list
  elements: dict
  returned: success
stops:
  description: For each stop when the unit was down, null where the log does not say.
  type: list
  elements: float
  returned: success
memory:
  description: Planned and found memory of the releases' starts, oldest first.
  type: list
  elements: dict
  returned: success
"""

import os
import re
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _memory_host, _traces

# All logs of one host together.
LOG_SECONDS = 20.0
RELEASE = re.compile(r"[A-Za-z0-9._-]+")


def records(base: str, releases: list[str]) -> dict[str, Any]:
    cover, found = _traces.Cover(), {}
    for name in releases:
        record = _host.read_json(f"{base}/releases/{name}/release.json") if RELEASE.fullmatch(name) else None
        if record:
            found[name] = _traces.readable(record, cover)
    return found


def look(options: dict[str, Any]) -> dict[str, Any]:
    until = options["until"] or time.time()
    budget = _host.Deadline(LOG_SECONDS)
    starts = []
    for place, began in enumerate(options["starts"]):
        ends = options["starts"][place + 1] if place + 1 < len(options["starts"]) else until
        lines = _traces.entries(_traces.journal(began - 1, max(ends, began), budget.left))
        starts.append({"began": began, "phases": _traces.phases(lines, began)})
    stops = []
    for stop in options["stops"]:
        lines = _traces.entries(_traces.journal(float(stop["from"]) - 1, float(stop["to"]) + 1, budget.left))
        stops.append(_traces.stopped(lines))
    folder = Path(options["state_dir"], _memory_host.MEASURED)
    stored = [_host.read_json(os.fspath(path)) or {} for path in sorted(folder.glob("[!.]*.json"))]
    return {
        "records": records(options["base_dir"], options["releases"]),
        "starts": starts,
        "stops": stops,
        "memory": _traces.measured(stored, options["releases"]),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "state_dir": {"type": "path", "default": "/var/lib/gb10-vllm"},
            "releases": {"type": "list", "elements": "str", "default": []},
            "starts": {"type": "list", "elements": "float", "default": []},
            "stops": {"type": "list", "elements": "dict", "default": []},
            "until": {"type": "float"},
        },
        supports_check_mode=True,
    )
    try:
        result = look(module.params)
    except (OSError, KeyError, TypeError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"what the rollout left on this host cannot be read: {error}")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
