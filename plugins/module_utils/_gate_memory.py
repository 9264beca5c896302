# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a copy was proven when it was last admitted, kept so that it can be proven in the same way again.

Private to this collection: may change at any time. Host-side, standard library only.

The questions belong to the release that the copy runs. The variables of the site may be ahead of it, so what a rollout asked
when it admitted the copy is the truth: `<conf_dir>/gb10-vllm/gates/<name>.json`, without the key.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _gate_probe, _host

_KEPT = [name for name in _gate_probe.OPTIONS if name != "api_key"]


def _path(conf_dir: str, name: str) -> str:
    return f"{conf_dir}/gb10-vllm/gates/{name}.json"


def remember(conf_dir: str, name: str, options: Mapping[str, Any]) -> None:
    """Keep the questions; where the role has never run there is nobody who would ask them again."""
    if not os.path.isdir(f"{conf_dir}/gb10-vllm"):
        return
    path = _path(conf_dir, name)
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    content = {option: options[option] for option in _KEPT}
    if _host.read_json(path) != content:
        _host.write_atomically(path, json.dumps(content, indent=2, sort_keys=True) + "\n")


def recall(conf_dir: str, name: str, otherwise: Mapping[str, Any]) -> dict[str, Any]:
    """The questions for this copy; without a model in them they are not known."""
    usual = {option: _gate_probe.OPTIONS[option].get("default") for option in _KEPT}
    said = _host.read_json(_path(conf_dir, name))
    return {**usual, **{key: value for key, value in (said or otherwise).items() if key in _KEPT}}
