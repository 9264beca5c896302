#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image
short_description: Have a container image on a host, by digest
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Pulls an image by its digest if the container engine does not know it under that digest yet.
  - An image that was copied with C(docker save) and C(docker load) has lost its digest; the module says so and pulls, and
    the layers that are there already are used again.
  - Changes only the images of the container engine. Never removes one, so an older release can always be started again.
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
  name:
    description: The image, C(repository@sha256:digest).
    type: str
    required: true
  pull:
    description: Whether to pull a missing image. V(never) is for hosts that must not reach a registry, and fails instead.
    type: str
    choices: [missing, never]
    default: missing
  pull_seconds:
    description: Budget of a pull, in seconds. The image of the community build has about 11 GB.
    type: int
    default: 3600
"""

EXAMPLES = r"""
- name: Have the image on the host before anything is stopped
  gb10.vllm.image:
    name: docker.io/eugr/spark-vllm-b12x@sha256:2f6f3f1c0d7a6ad3a6c1f6d2f30a8d9d1a2c7a55d8f0ad6c6c2d3b3c1e9b7f00
"""

RETURN = r"""
id:
  description: Id of the image on the host, empty in check mode when it would be pulled.
  type: str
  returned: always
architecture:
  description: Architecture of the image, for example C(arm64).
  type: str
  returned: always
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _release


def inspect(name: str) -> dict[str, str] | None:
    """The image under that digest; None when the container engine does not know it so."""
    done = _host.run(["docker", "image", "inspect", name], check=False)
    if done.returncode != 0:
        if "No such image" in done.stderr:
            return None
        raise _host.HostError(f"docker cannot be asked for images: {done.stderr.strip()}")
    (found,) = json.loads(done.stdout)
    return {"id": found["Id"], "architecture": found["Architecture"]}


def without_digest(repository: str) -> list[str]:
    """Images of the same repository that carry no digest, as `docker load` leaves them."""
    done = _host.run(
        ["docker", "images", "--digests", "--format", "{{.Repository}}:{{.Tag}} {{.Digest}}", repository], check=False
    )
    return [line.split()[0] for line in done.stdout.splitlines() if line.endswith("<none>")]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "pull": {"type": "str", "choices": ["missing", "never"], "default": "missing"},
            "pull_seconds": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    name = module.params["name"]
    try:
        repository, _digest = _release.parse_image(name)
        found = inspect(name)
        changed = found is None
        if changed:
            copies = without_digest(repository)
            hint = f" ({', '.join(copies)} is there without a digest, as `docker load` leaves it)" if copies else ""
            if module.params["pull"] == "never":
                module.fail_json(
                    msg=f"image {name} is not on this host under its digest{hint}, and vllm_image_pull is never"
                )
            if not module.check_mode:
                _host.run(["docker", "pull", "--quiet", name], timeout=module.params["pull_seconds"])
                found = inspect(name)
                if found is None:
                    module.fail_json(msg=f"docker pulled {name} but does not know it under that digest afterwards")
    except (ValueError, OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    found = found or {"id": "", "architecture": ""}
    module.exit_json(changed=changed, **found)


if __name__ == "__main__":
    main()
