#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: release
short_description: Put an immutable release of the engine on a host
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Describes everything that decides what runs on one host (image by digest, command line, environment, mounts, container
    options, mods, time budgets) and writes it once into a folder of its own, named after that content.
  - Reads the mods from folders on the controller; everything else comes from the options.
  - Changes only the folder of releases. Never touches the links C(current) and C(previous), the unit or a container,
    so it is safe beside a running engine.
  - A release that is on the disk already is compared byte for byte. If it was edited by hand, the module fails instead of
    repairing it, because going back must run the files that ran before.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Renders the release and names its id without writing it.
  diff_mode:
    support: full
    details: Shows the start file of the release beside the one of the current release.
  idempotent:
    support: full
options:
  base_dir:
    description: Folder of the collection's files on the host. Releases are in its subfolder C(releases).
    type: path
    default: /etc/gb10-vllm
  topology:
    description: Whether the host serves a whole copy or one rank of an engine over several hosts.
    type: str
    choices: [replicated, split]
    required: true
  rank:
    description: Rank of this host, from 0; rank 0 has the HTTP port. Always 0 for a copy.
    type: int
    default: 0
  ranks:
    description: Number of hosts that the engine spans. Always 1 for a copy.
    type: int
    default: 1
  image:
    description: The image, C(repository@sha256:digest). A tag is refused.
    type: str
    required: true
  model:
    description: Model name on the hub, or the absolute path of its folder as the container sees it.
    type: str
    required: true
  revision:
    description: Revision of the model on the hub. Empty means what the local cache calls C(main).
    type: str
    default: ""
  served_model_name:
    description: Name under which clients ask for the model. Empty means the name of the model itself.
    type: str
    default: ""
  arguments:
    description:
      - Options of C(vllm serve) by long name without dashes. V(true) gives C(--name), V(false) gives C(--no-name), a mapping
        becomes JSON, a list several values, V(null) leaves the option out.
      - Options that the collection sets itself are refused, and the message names the variable to use.
    type: dict
    default: {}
  environment:
    description: Environment of the engine. Not for secrets; these belong into O(secrets_file).
    type: dict
    default: {}
  secrets_file:
    description: File of mode 0600 on the host with C(NAME=value) lines that the container gets as environment; not part of the release.
    type: path
    default: ""
  listen_address:
    description: Address the engine listens on.
    type: str
    default: "0.0.0.0"
  port:
    description: HTTP port of the engine, 1 to 65535.
    type: int
    default: 8000
  master_address:
    description: Address of rank 0 on the link between the hosts. Required when O(ranks) is above 1.
    type: str
    default: ""
  master_port:
    description: Rendezvous port of the ranks.
    type: int
    default: 29501
  container_options:
    description: Options of C(docker run) before the image, one C(--name=value) each.
    type: list
    elements: str
    default: []
  volumes:
    description: Further mounts, C(source:target[:ro]).
    type: list
    elements: str
    default: []
  huggingface_home:
    description: Folder on the host with the downloaded models, mounted where the image expects the hub's cache.
    type: path
    default: /root/.cache/huggingface
  cache_root:
    description: Folder on the host under which each pair of image digest and topology gets its own compile caches.
    type: path
    default: /var/lib/gb10-vllm/cache
  mods:
    description:
      - Folders on the controller, each with a C(run.sh) that is run inside the container before the engine starts.
      - They are copied into the release, so a release carries the mods it was tested with.
    type: list
    elements: path
    default: []
  mods_content:
    description: The files of the mods. Set by the action, which reads O(mods) on the controller.
    type: dict
    default: {}
  expected_load_seconds:
    description: How long this engine is expected to load, in seconds. Every time budget follows from it.
    type: int
    required: true
  shutdown_seconds:
    description: How long running requests may take to end after a stop was asked for, in seconds.
    type: int
    default: 60
  made_by:
    description: Who made the release, for people. Not part of the id. Set by the action to the user on the controller.
    type: str
    default: ""
seealso:
  - module: gb10.vllm.current_release
  - module: gb10.vllm.engine_info
"""

EXAMPLES = r"""
- name: Stage the wanted release beside the running one
  gb10.vllm.release:
    topology: replicated
    image: docker.io/eugr/spark-vllm-b12x@sha256:2f6f3f1c0d7a6ad3a6c1f6d2f30a8d9d1a2c7a55d8f0ad6c6c2d3b3c1e9b7f00
    model: local-inference-lab/Qwen3.8-Flash-Next-NVFP4
    arguments:
      max-model-len: 262144
      gpu-memory-utilization: 0.78
    expected_load_seconds: 900
  register: staged
"""

RETURN = r"""
id:
  description: Name of the release, derived from its content.
  type: str
  returned: always
  sample: replicated-3fa91c2b7d10
path:
  description: Folder of the release on the host.
  type: str
  returned: always
manifest:
  description: The content that the id is derived from.
  type: dict
  returned: always
start:
  description: The start file.
  type: str
  returned: always
ran:
  description: Whether the release is the current one or the one before, so that its image has accepted its arguments already.
  type: bool
  returned: always
"""

import getpass
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _arguments, _budgets, _host, _release


def written_files(rendered: dict[str, str], mods: dict[str, dict[str, Any]]) -> dict[str, tuple[str, int]]:
    """Every file of the release but release.json: relative name to content and mode."""
    result = {"start": (rendered["start"], 0o755), "unit.conf": (rendered["unit.conf"], 0o644)}
    for mod, content in mods.items():
        for name, entry in content.items():
            result[f"mods/{mod}/{name}"] = (entry["content"], 0o755 if entry["executable"] else 0o644)
    return result


def edited(folder: Path, wanted: dict[str, tuple[str, int]]) -> list[str]:
    """Names in the folder that are missing, changed, of another mode or too many."""
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    changed = [
        name
        for name, (content, mode) in wanted.items()
        if name not in present
        or (folder / name).read_bytes() != content.encode()
        or (folder / name).stat().st_mode & 0o777 != mode
    ]
    return sorted([*changed, *(present - set(wanted) - {"release.json"})])


def write(folder: Path, wanted: dict[str, tuple[str, int]], record: dict[str, Any]) -> None:
    """Write into a folder beside the target and rename it: half a release is never seen."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".staging-"))
    try:
        temporary.chmod(0o755)
        for name, (content, mode) in {**wanted, "release.json": (json.dumps(record, indent=2) + "\n", 0o644)}.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _host.write_atomically(str(target), content, mode)
        os.rename(temporary, folder)
        _host.sync_folder(str(folder.parent))
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "topology": {"type": "str", "choices": ["replicated", "split"], "required": True},
            "rank": {"type": "int", "default": 0},
            "ranks": {"type": "int", "default": 1},
            "image": {"type": "str", "required": True},
            "model": {"type": "str", "required": True},
            "revision": {"type": "str", "default": ""},
            "served_model_name": {"type": "str", "default": ""},
            "arguments": {"type": "dict", "default": {}},
            "environment": {"type": "dict", "default": {}},
            "secrets_file": {"type": "path", "default": "", "no_log": False},
            "listen_address": {"type": "str", "default": "0.0.0.0"},
            "port": {"type": "int", "default": 8000},
            "master_address": {"type": "str", "default": ""},
            "master_port": {"type": "int", "default": 29501},
            "container_options": {"type": "list", "elements": "str", "default": []},
            "volumes": {"type": "list", "elements": "str", "default": []},
            "huggingface_home": {"type": "path", "default": "/root/.cache/huggingface"},
            "cache_root": {"type": "path", "default": "/var/lib/gb10-vllm/cache"},
            "mods": {"type": "list", "elements": "path", "default": []},
            "expected_load_seconds": {"type": "int", "required": True},
            "shutdown_seconds": {"type": "int", "default": 60},
            "made_by": {"type": "str", "default": ""},
            "mods_content": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        budgets = _budgets.derive(options["expected_load_seconds"], options["shutdown_seconds"])
        manifest = _release.manifest(
            {
                **options,
                "arguments": _arguments.merge(options["arguments"]),
                "mods": options["mods_content"],
                "budgets": budgets.as_dict(),
            }
        )
        root = f"{options['base_dir']}/releases"
        rendered = _release.files(manifest, root)
        identity = _release.release_id(manifest)
        folder = Path(root) / identity
        wanted = written_files(rendered, options["mods_content"])
        changed = not folder.exists()
        if not changed and (wrong := edited(folder, wanted)):
            module.fail_json(
                msg=f"release {identity} on this host was edited by hand ({', '.join(wrong)}). A release never changes: "
                f"put the change into the inventory, and remove {folder} if nothing runs from it (it is written again then)"
            )
        if changed and not module.check_mode:
            record = {
                "id": identity,
                "made_by": options["made_by"] or getpass.getuser(),
                "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                **manifest,
            }
            write(folder, wanted, record)
        current = _host.linked_release(options["base_dir"], "current")
        before = ""
        if current and (previous_start := Path(root) / current / "start").exists():
            before = previous_start.read_text()
    except (ValueError, OSError, _host.HostError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(
        changed=changed,
        id=identity,
        path=str(folder),
        manifest=manifest,
        start=rendered["start"],
        ran=identity in (current, _host.linked_release(options["base_dir"], "previous")),
        diff={
            "before_header": f"start of {current}" if current else "no current release",
            "after_header": f"start of {identity}",
            "before": before,
            "after": rendered["start"],
        }
        if changed
        else {"before": "", "after": ""},
    )


if __name__ == "__main__":
    main()
