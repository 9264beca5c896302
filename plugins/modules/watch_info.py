#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: watch_info
short_description: Tell what watches this host, and what it has done
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads the files in which the programs that watch a host say what they see and did, who pauses them, which units of others were
    silenced, which copies were withdrawn from the proxy without a rollout, and whether requests may wait there.
  - None of these files has to be there. One that cannot be read is told as such, and is no reason to fail.
  - Changes nothing, and asks no program anything.
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
options:
  base_dir:
    description: Folder of the collection's files on the host. The list of silenced units is there.
    type: path
    default: /etc/gb10-vllm
  run_dir:
    description: Folder in which each program keeps its state, one JSON file per program.
    type: path
    default: /run/gb10-vllm
  state_dir:
    description: Folder of the collection's state. The folder with what pauses the programs is there.
    type: path
    default: /var/lib/gb10-vllm
  proxy_dir:
    description: Folder of the proxy's state, on proxies.
    type: path
    default: /var/lib/gb10-vllm-proxy
"""

EXAMPLES = r"""
- name: Look at what watches the host
  gb10.vllm.watch_info:
  register: watch

- name: Say why nothing is done automatically
  ansible.builtin.debug:
    msg: "{{ watch.paused }}"
  when: watch.paused | length > 0
"""

RETURN = r"""
programs:
  description:
    - What each program last wrote, by its name. C(age_seconds) is how long ago that was by its own C(time), null when it says none.
    - A file that cannot be read has only C(trouble).
  type: dict
  returned: success
paused:
  description: Why nothing is done automatically on this host, in words; empty when nothing pauses.
  type: str
  returned: success
silenced:
  description: Names of the units and containers of others that were silenced.
  type: list
  elements: str
  returned: success
withdrawn:
  description: Copies that were withdrawn from this proxy without a rollout, with C(since) and C(reason).
  type: dict
  returned: success
hold:
  description: Whether requests may wait at this proxy, with C(armed), C(until) in seconds since the epoch, and C(why). Null where it was never said.
  type: dict
  returned: success
trouble:
  description: Files that are there and cannot be read, and why.
  type: list
  elements: str
  returned: success
"""

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _watch_files


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "run_dir": {"type": "path", "default": "/run/gb10-vllm"},
            "state_dir": {"type": "path", "default": "/var/lib/gb10-vllm"},
            "proxy_dir": {"type": "path", "default": "/var/lib/gb10-vllm-proxy"},
        },
        supports_check_mode=True,
    )
    folders: dict[str, Any] = {name: Path(path) for name, path in module.params.items()}
    module.exit_json(changed=False, **_watch_files.look(now=time.time(), **folders))


if __name__ == "__main__":
    main()
