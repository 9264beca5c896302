#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: current_release
short_description: Choose which release on a host runs at the next start
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Points the link C(current) to a release that is on the host, and C(previous) to the one that was current before; each link
    is switched in one step. Then makes systemd read the release's time budgets.
  - Changes only these two links. Never starts, stops or restarts anything; it refuses while the engine's unit runs, because
    what C(current) says and what runs would differ from then on.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  release:
    description: Id of the release that becomes current. It must be on the host.
    type: str
    required: true
  previous:
    description:
      - Id of the release that C(previous) points to afterwards. When left out it is the one that was current before.
      - Going back after a failed start sets what it was before that start, so that a failed release is never what a rollback brings.
        Empty removes the link.
    type: str
seealso:
  - module: gb10.vllm.release
"""

EXAMPLES = r"""
- name: Run the staged release from now on
  gb10.vllm.current_release:
    release: replicated-3fa91c2b7d10
"""

RETURN = r"""
current:
  description: Id of the current release.
  type: str
  returned: always
previous:
  description: Id of the release that was current before, empty if there was none.
  type: str
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _links


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "release": {"type": "str", "required": True},
            "previous": {"type": "str"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        result = _links.switch(
            options["base_dir"], options["release"], options["previous"], write=not module.check_mode
        )
    except (OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
