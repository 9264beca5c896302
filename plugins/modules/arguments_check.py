#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: arguments_check
short_description: Let an image's own vLLM judge a release's arguments
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs the argument parser of the image that a staged release names on that release's command line, in a container without
    network and GPU that ends right away. An option that this build does not know is found before anything is stopped.
  - Judges names and values of options only, not the files of the model and not the memory.
  - Changes nothing; beside the running engine it takes some seconds of CPU and less than a gigabyte of memory.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Says nothing about a release that check mode did not write.
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
    description: Id of a release on the host.
    type: str
    required: true
  seconds:
    description: Budget of the check, in seconds.
    type: int
    default: 300
"""

EXAMPLES = r"""
- name: Let the image judge the arguments
  gb10.vllm.arguments_check:
    release: replicated-3fa91c2b7d10
"""

RETURN = r"""
checked:
  description: Whether the release was there to be checked.
  type: bool
  returned: always
"""

import json
import subprocess
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _argument_check, _host


def command(record: dict[str, Any]) -> list[str]:
    """The container that judges: of the release only what is read-only, so that the check cannot change anything."""
    volumes = [volume for volume in record["volumes"] if volume.endswith(":ro")]
    arguments = [word for line in record["command"] for word in line][1:]
    return [
        *("docker", "run", "--rm", "--interactive", "--network", "none", "--entrypoint", "python3"),
        *(word for volume in volumes for word in ("--volume", volume)),
        str(record["image"]),
        "-",
        *arguments,
    ]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "release": {"type": "str", "required": True},
            "seconds": {"type": "int", "default": 300},
        },
        supports_check_mode=True,
    )
    release = module.params["release"]
    try:
        record = _host.read_json(f"{module.params['base_dir']}/releases/{release}/release.json") or {}
        if not record:
            if module.check_mode:
                module.exit_json(changed=False, checked=False)
            module.fail_json(msg=f"release {release} is not on this host; stage it first (playbook site.yml)")
        done = subprocess.run(
            command(record),
            input=_argument_check.check_script(),
            capture_output=True,
            text=True,
            timeout=module.params["seconds"],
            check=False,
        )
        words = done.stdout.strip().splitlines()
        verdict = json.loads(words[-1]) if words else {"ok": False, "message": done.stderr.strip()[-400:]}
    except subprocess.TimeoutExpired:
        module.fail_json(
            msg=f"the image of release {release} did not judge its arguments within {module.params['seconds']} s"
        )
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"the arguments of release {release} could not be checked: {error}")
    if not verdict["ok"]:
        module.fail_json(
            msg=f"the image does not accept the arguments of release {release}: {verdict['message']}. Correct "
            f"vllm_{record['topology']}_arguments or vllm_{record['topology']}_overrides. Nothing was stopped"
        )
    module.exit_json(changed=False, checked=True)


if __name__ == "__main__":
    main()
