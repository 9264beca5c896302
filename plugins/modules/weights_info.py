#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: weights_info
short_description: Tell whether a model's weights are complete on a host
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Finds the folder of a model as the engine would without a network, in the hub's cache by name and revision or by its path,
    and compares every shard that the model's index names with the length that the shard's own header asks for.
  - Reads headers only, never the tensors. Changes nothing.
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
  model:
    description: Model name on the hub, or an absolute path on the host.
    type: str
    required: true
  revision:
    description: Revision on the hub, a commit or a name. Empty means C(main).
    type: str
    default: ""
  huggingface_home:
    description: Folder with the downloaded models, with the subfolder C(hub).
    type: path
    default: /root/.cache/huggingface
  sizes:
    description: Also return what a memory plan needs, RV(weights) and RV(config).
    type: bool
    default: false
  elsewhere:
    description:
      - Regular expressions of tensor names that the engine leaves on disk, such as an n-gram table, and that are not counted.
      - Used with O(sizes=true).
    type: list
    elements: str
    default: []
  vision:
    description: Whether the vision tower is loaded; V(false) for an engine with C(--language-model-only). Used with O(sizes=true).
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Look whether the weights are complete
  gb10.vllm.weights_info:
    model: local-inference-lab/Qwen3.8-Flash-Next-NVFP4
  register: weights
"""

RETURN = r"""
complete:
  description: Whether nothing is missing.
  type: bool
  returned: always
path:
  description: Folder of the model, empty when there is none.
  type: str
  returned: always
shards:
  description: Number of weight files that the index names.
  type: int
  returned: always
missing:
  description: Files that are not there.
  type: list
  elements: str
  returned: always
partial:
  description: Files that are shorter or longer than their header says, as an interrupted download leaves them.
  type: list
  elements: str
  returned: always
weights:
  description: Bytes of the tensors that an engine loads, null when the files are not complete.
  type: dict
  returned: with O(sizes=true)
  contains:
    bytes:
      description: Without the model's own draft layers.
      type: int
    bytes_drafting:
      description: With them.
      type: int
    source:
      description: C(headers), summed over the files' headers.
      type: str
    note:
      description: What was left out or cannot be told, may be empty.
      type: str
config:
  description: Content of C(config.json), null without one.
  type: dict
  returned: with O(sizes=true)
hf_quant_config:
  description: Content of C(hf_quant_config.json), null without one.
  type: dict
  returned: with O(sizes=true)
"""

import json
import os
import re
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _weights
from ansible_collections.gb10.vllm.plugins.module_utils._memory import config_keys, weights
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError

# Headers of the largest models are a few megabytes; a corrupt length must not make us read a whole shard.
MOST_HEADER_BYTES = 64 * 1024 * 1024


def model_folder(model: str, revision: str, home: str) -> Path | None:
    """The folder the engine would load offline; None when the cache does not know the model or the revision."""
    if model.startswith("/"):
        return Path(model) if os.path.isdir(model) else None
    repository = Path(home) / "hub" / f"models--{model.replace('/', '--')}"
    wanted = revision or "main"
    reference = repository / "refs" / wanted
    commit = reference.read_text().strip() if reference.is_file() else wanted
    folder = repository / "snapshots" / commit
    return folder if folder.is_dir() else None


def judge(folder: Path) -> _weights.Completeness:
    def read(name: str) -> str | None:
        return (folder / name).read_text() if (folder / name).is_file() else None

    def length(name: str) -> int | None:
        return (folder / name).stat().st_size if (folder / name).is_file() else None

    def header(name: str) -> bytes:
        with open(folder / name, "rb") as stream:
            start = stream.read(8)
            return start + stream.read(min(int.from_bytes(start, "little"), MOST_HEADER_BYTES))

    return _weights.judge(read, length, header)


def json_file(folder: Path, name: str) -> dict[str, Any] | None:
    path = folder / name
    return json.loads(path.read_text()) if path.is_file() else None


def tensors_of(folder: Path) -> list[weights.Tensor]:
    """The tensors of all files that the index names, from their headers."""
    index = json_file(folder, _weights.INDEX)
    found: list[weights.Tensor] = []
    for name in weights.index_files(index) if index else (_weights.SINGLE,):
        with open(folder / name, "rb") as stream:

            def read(offset: int, count: int, stream: Any = stream) -> bytes:
                stream.seek(offset)
                return stream.read(count)

            found += weights.read_header(read, name)
    return found


def layer_count(config: dict[str, Any]) -> int | None:
    """Layers of the language model; those numbered from there on are a draft head's. None if the file does not say."""
    try:
        return config_keys.whole(config_keys.language_block(config), "num_hidden_layers", "num_layers", "n_layer")
    except PlanError:
        return None


def sizes(folder: Path | None, complete: bool, elsewhere: list[str], vision: bool) -> dict[str, Any]:
    """What a memory plan needs of the model's folder."""
    config = json_file(folder, "config.json") if folder else None
    found: dict[str, Any] = {"weights": None, "config": config, "hf_quant_config": None}
    if folder and complete and config is not None:
        layers, tensors = layer_count(config), tensors_of(folder)
        plain, drafting = (
            weights.sum_tensors(tensors, layers or len(tensors), drafts, vision, tuple(elsewhere))
            for drafts in (False, True)
        )
        note = (
            plain.note
            if layers
            else "; ".join(filter(None, [plain.note, "config.json does not say how many layers there are"]))
        )
        found["weights"] = {"bytes": plain.size, "bytes_drafting": drafting.size, "source": plain.source, "note": note}
        found["hf_quant_config"] = json_file(folder, "hf_quant_config.json")
    return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "model": {"type": "str", "required": True},
            "revision": {"type": "str", "default": ""},
            "huggingface_home": {"type": "path", "default": "/root/.cache/huggingface"},
            "sizes": {"type": "bool", "default": False},
            "elsewhere": {"type": "list", "elements": "str", "default": []},
            "vision": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        folder = model_folder(options["model"], options["revision"], options["huggingface_home"])
        found = judge(folder) if folder else _weights.Completeness(missing=["the model's folder"])
        more = sizes(folder, found.complete, options["elsewhere"], options["vision"]) if options["sizes"] else {}
    except re.error as error:
        module.fail_json(msg=f"elsewhere is {options['elsewhere']}: not regular expressions: {error}")
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the weights of {options['model']} cannot be read: {error}")
    module.exit_json(
        changed=False,
        complete=found.complete,
        path=str(folder or ""),
        shards=found.shards,
        missing=found.missing,
        partial=found.partial,
        **more,
    )


if __name__ == "__main__":
    main()
