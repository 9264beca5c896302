#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: foreign_units
short_description: Find what could start or stop an engine behind our back
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Looks at every unit of the system and of the accounts whose manager runs, with the scripts that they name, at the containers, and at
    the cron tables.
  - A finding I(acts) when it conflicts with C(vllm.service) in either direction, runs an engine on O(port) or as a part of a pair, listens
    on O(port), starts or stops C(vllm.service) or its container, or starts what does one of these, as a timer, path, socket or script.
  - Everything else that names an engine, such as what reads its metrics or an engine on another port, is told too, and left alone. So is
    a layer that starts units which have nothing to do with an engine too; what it starts is found by itself.
  - C(vllm.service) and units whose name begins with C(gb10-vllm-) are ours and never findings.
  - Changes nothing. Never shows the text of a unit, script or table.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  base_dir:
    description: Folder of the collection's files on the host. Its record of what is silenced is read.
    type: path
    default: /etc/gb10-vllm
  port:
    description: HTTP port of the engine, 1 to 65535.
    type: int
    default: 8000
  names:
    description:
      - Units and containers that the owner knows to be of the old world, as names or shell patterns. They count as acting.
      - A unit of an account is C(ACCOUNT/NAME); C(.service) may be left out.
    type: list
    elements: str
    default: []
  accept:
    description: Units, containers and cron entries (C(FILE:LINE)) that do no harm, in the same way. They are not told.
    type: list
    elements: str
    default: []
seealso:
  - module: gb10.vllm.legacy_units
"""

EXAMPLES = r"""
- name: Look for what could start or stop an engine
  gb10.vllm.foreign_units:
    names: [old-split.service, old-split-watchdog.timer]
  register: foreign
"""

RETURN = r"""
findings:
  description:
    - What was found. C(kind) is V(unit), V(container) or V(cron), C(text) is a line for people with what it is, why it is dangerous
      and what would happen.
    - C(acts), C(live) (something can start it), C(named), C(enabled), C(active), C(startable_by), C(reasons) and C(would) are its parts.
      C(refused) says why it cannot be silenced, and what to do; empty where it can.
  type: list
  elements: dict
  returned: always
silence:
  description: Units that a switch has to silence, because they are live and act or are named.
  type: list
  elements: str
  returned: always
silence_containers:
  description: Containers, in the same way.
  type: list
  elements: str
  returned: always
gives_back:
  description: Units and containers (C(container NAME)) whose memory comes back by that.
  type: list
  elements: str
  returned: always
unnamed:
  description: Those of both that are not in O(names), as lines for people.
  type: list
  elements: str
  returned: always
refused:
  description: What would have to be silenced and cannot be, as lines for people.
  type: list
  elements: str
  returned: always
unknown:
  description: Names in O(names) that are nothing on this host.
  type: list
  elements: str
  returned: always
ours_enabled:
  description: Whether C(vllm.service) is enabled or runs.
  type: bool
  returned: always
serving:
  description: Whether something that is not ours runs an engine or listens on O(port) now.
  type: bool
  returned: always
record:
  description: What is silenced already, as M(gb10.vllm.legacy_units) returns it.
  type: dict
  returned: always
paused:
  description: Whether the old world is back on this host and keeps our own watchdog, pair and memory guard from acting.
  type: bool
  returned: always
limits:
  description: What could not be looked at, in words.
  type: list
  elements: str
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _foreign, _foreign_host, _foreign_silence, _host

PAUSE = "/var/lib/gb10-vllm/pause/legacy.json"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "port": {"type": "int", "default": 8000},
            "names": {"type": "list", "elements": "str", "default": []},
            "accept": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    base, port, names, accept = (module.params[name] for name in ("base_dir", "port", "names", "accept"))
    try:
        record = _foreign_silence.read(base)
        # One that was recorded and is not silent has to be silenced again.
        known = [*names, *(record.get("units") or {}), *(record.get("containers") or {})]
        units, containers = _foreign_host.look(port)
        crons = _foreign_host.crons()
        findings = _foreign.find(units, containers, crons, _foreign.Our(port=port), known, accept)
        ours = next((unit for unit in units if unit.name == _host.UNIT and not unit.account), _foreign.Unit(_host.UNIT))
        if not _foreign_host.our_unit_is_ours(base):
            findings.append(_foreign.not_ours(ours))
        limits = [
            f"the units of the account {account} could not be looked at: its manager does not run (`loginctl enable-linger {account}`)"
            for account in _foreign_host.sleeping_accounts()
        ]
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"what could start or stop an engine could not be looked for: {error}")
    live = [finding for finding in findings if finding.live and (finding.acts or finding.named)]
    module.exit_json(
        changed=False,
        findings=[finding.as_dict() for finding in findings],
        silence=[finding.name for finding in findings if finding.silence and finding.kind == "unit"],
        silence_containers=[finding.name for finding in findings if finding.silence and finding.kind == "container"],
        gives_back=_foreign.gives_back(findings, units, containers),
        unnamed=[finding.text for finding in findings if finding.silence and not _foreign.matches(finding.name, names)],
        refused=[finding.refused for finding in live if finding.refused],
        unknown=_foreign.unknown(names, units, containers),
        ours_enabled=ours.is_enabled or ours.is_running,
        serving=any(_foreign.serves(finding) for finding in findings),
        record=record,
        paused=os.path.exists(PAUSE),
        limits=limits,
    )


if __name__ == "__main__":
    main()
