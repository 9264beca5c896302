#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declare that requests may wait at this proxy, or that they may no longer."""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_hold
short_description: Let requests wait at the proxy while no copy can take them
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Runs on a proxy host. Declares for a time that requests without a copy wait instead of being turned away, or ends that.
  - The declaration by itself changes nothing for a request that a copy can take. The helper that the role
    P(gb10.vllm.proxy#role) installs lets the waiting requests go when the proxy reaches a copy again.
  - The declaration outlives a reboot and ends by itself, so that a rollout whose controller died does not hold for ever.
  - Reads and writes O(file) and asks the helper on O(socket). Never touches nginx, its configuration, or a request.
options:
  state:
    description:
      - V(armed) declares the hold for O(seconds) from now, also when it was declared already.
      - V(disarmed) ends it. Requests that still wait are let go when a copy is there, else they get 503.
      - V(read) changes nothing and returns the counts.
    type: str
    choices: [armed, disarmed, read]
    default: read
  seconds:
    description: For how long the hold is declared, in seconds, 1 to 86400. Required with O(state=armed).
    type: int
  why:
    description: What for, for people who look at the file, such as the id of a rollout.
    type: str
    default: ""
  file:
    description: The declaration.
    type: path
    default: /var/lib/gb10-vllm-proxy/hold.json
  socket:
    description: The socket of the helper.
    type: path
    default: /run/gb10-vllm-hold.sock
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Nothing is written.
  diff_mode:
    support: none
    details:
      - The declaration is only a time.
  idempotent:
    support: partial
    details:
      - Arming again extends the time and counts as a change. Disarming twice changes nothing.
  action:
    description: Runs partly on the controller.
    support: full
    details: A proxy that cannot be reached becomes a failed result; everything else happens on the host.
seealso:
  - module: gb10.vllm.proxy_server
"""

EXAMPLES = r"""
- name: Let clients wait for up to half an hour
  gb10.vllm.proxy_hold:
    state: armed
    seconds: 1800
    why: new model

- name: End that, and see how many have waited
  gb10.vllm.proxy_hold:
    state: disarmed
  register: hold
"""

RETURN = r"""
armed:
  description: Whether the hold is declared now. In check mode, whether it would be.
  returned: success
  type: bool
helper:
  description: Whether the helper answers. Without it requests get 503 instead of waiting.
  returned: success
  type: bool
counts:
  description:
    - What the helper has counted since the hold was declared with another O(why), or since it started. Empty without the helper.
    - C(waiting) now, C(held) in all, of these C(released), C(gone) (hung up), C(too_long) and C(ended) (503 because the hold ended);
      never held were C(full), C(too_large) and C(not_declared). C(turned_away) is the sum of C(too_long), C(ended), C(full) and C(too_large).
      C(longest_seconds) is the longest wait that is over.
  returned: success
  type: dict
  sample: {waiting: 0, held: 41, released: 41, gone: 0, too_long: 0, ended: 0, full: 0, too_large: 0, turned_away: 0, not_declared: 3, longest_seconds: 9.3}
"""

import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _hold_counts

LONGEST_SECONDS = 86400


def declared_until(file: Path) -> float:
    """Until when the file declares the hold; 0 without a readable file."""
    try:
        return float(json.loads(file.read_text(encoding="utf-8"))["until"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def declare(file: Path, until: float, why: str) -> None:
    """Write the declaration so that a reader sees the old or the new one, never half of it."""
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump({"until": until, "why": why}, stream)
            stream.flush()
            os.fchmod(stream.fileno(), 0o644)
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise


def run(params: dict[str, Any], check_mode: bool, now: float) -> dict[str, Any]:
    """The whole module on plain values."""
    file, seconds = Path(params["file"]), params["seconds"]
    if params["state"] == "armed" and not 1 <= seconds <= LONGEST_SECONDS:
        raise ValueError(f"seconds is {seconds}, must be 1 to {LONGEST_SECONDS}")
    armed = declared_until(file) > now
    changed = params["state"] == "armed" or (params["state"] == "disarmed" and armed)
    if changed and not check_mode:
        if params["state"] == "armed":
            declare(file, now + seconds, params["why"])
        else:
            file.unlink(missing_ok=True)
    counts = _hold_counts.ask(params["socket"])
    return {
        "changed": changed,
        "armed": armed if params["state"] == "read" else params["state"] == "armed",
        "helper": counts is not None,
        "counts": counts or {},
    }


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["armed", "disarmed", "read"], "default": "read"},
            "seconds": {"type": "int"},
            "why": {"type": "str", "default": ""},
            "file": {"type": "path", "default": "/var/lib/gb10-vllm-proxy/hold.json"},
            "socket": {"type": "path", "default": "/run/gb10-vllm-hold.sock"},
        },
        required_if=[("state", "armed", ["seconds"])],
        supports_check_mode=True,
    )
    try:
        result = run(module.params, module.check_mode, time.time())
    except (ValueError, OSError) as error:
        module.fail_json(msg=f"proxy_hold: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
