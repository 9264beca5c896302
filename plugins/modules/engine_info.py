#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: engine_info
short_description: Tell what a host's engine is and does
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the unit, the container, the links to the releases and their records, the engine's port and the host's memory.
  - Changes nothing, and asks the engine nothing that costs it work.
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
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
"""

EXAMPLES = r"""
- name: Look at the engine
  gb10.vllm.engine_info:
  register: engine
"""

RETURN = r"""
unit:
  description: State of the unit as systemd names it, for example C(ActiveState) and C(UnitFileState).
  type: dict
  returned: always
running:
  description: Whether the unit is active.
  type: bool
  returned: always
container:
  description: The engine's container, null when there is none.
  type: dict
  returned: always
current:
  description: Record of the current release, null when there is none.
  type: dict
  returned: always
previous:
  description: Record of the release before, null when there is none.
  type: dict
  returned: always
records:
  description: Of every release on the host what a rollout has to know, by id.
  type: dict
  returned: always
stable:
  description: Releases that became stable here, oldest first, with the rollout that each belongs to. See M(gb10.vllm.stable_release).
  type: list
  elements: dict
  returned: always
loading:
  description: Whether the engine does not answer yet and is still within the time that its release gives it.
  type: bool
  returned: always
port_open:
  description: Whether something listens on the engine's port.
  type: bool
  returned: always
healthy:
  description: Whether C(/health) answers 200. Not a proof that the engine can generate; that is the gate's work.
  type: bool
  returned: always
phase:
  description: Where the start is, from the engine's own log; empty when its last lines do not say.
  type: str
  returned: when the unit is active
last_log_line:
  description: The engine's last log line.
  type: str
  returned: when the unit is active
memory_available_bytes:
  description: MemAvailable of the host in bytes.
  type: int
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _engine_look, _host


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "port": {"type": "int", "default": 8000},
        },
        supports_check_mode=True,
    )
    try:
        result = _engine_look.look(module.params["base_dir"], module.params["port"])
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
