#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stable_release
short_description: Note that a release is stable, so that a rollback may bring it
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Adds the current release of a host to the host's list of stable ones, under the rollout that brought it. A rollout marks it when every
    host has passed its gate and stayed healthy for the soak time; only what was marked is the target of a rollback.
  - Changes only the file C(stable.json) in O(base_dir). Never touches a release, a link or an engine.
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
  release:
    description: Id of the release. It must be the current one.
    type: str
    required: true
  rollout:
    description: Id of the rollout.
    type: str
    required: true
  keep:
    description: How many entries the list keeps, 2 or more. Releases themselves are never removed.
    type: int
    default: 20
seealso:
  - module: gb10.vllm.current_release
"""

EXAMPLES = r"""
- name: Note that the release is stable
  gb10.vllm.stable_release:
    release: replicated-3fa91c2b7d10
    rollout: 20261022-090000-cutover
"""

RETURN = r"""
stable:
  description: The list afterwards, oldest first.
  type: list
  elements: dict
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _stable


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "release": {"type": "str", "required": True},
            "rollout": {"type": "str", "required": True},
            "keep": {"type": "int", "default": 20},
        },
        supports_check_mode=True,
    )
    base, release, rollout, keep = (module.params[name] for name in ("base_dir", "release", "rollout", "keep"))
    if keep < 2:
        module.fail_json(
            msg=f"keep is {keep}, must be 2 or more: the newest entry is what runs, and one is needed to go back to"
        )
    try:
        current = _host.linked_release(base, "current")
        # In check mode nobody has switched to it yet.
        if current != release and not module.check_mode:
            module.fail_json(
                msg=f"release {release} is not the current one of this host, that is {current}; nothing was noted"
            )
        before = _stable.read(base)
        after = _stable.added(before, rollout, release, time.time(), keep)
        if after != before and not module.check_mode:
            _stable.write(base, after)
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=after != before, stable=after)


if __name__ == "__main__":
    main()
