#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_admit
short_description: Prove that a copy is fit to serve, and admit it in the same breath
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs on a proxy host, which is where clients' requests will come from. Proves in this order that C(/health) answers, that
    C(/v1/models) shows the right name and length, and that a real completion and a streamed one have the expected content, several
    times in a row. Then admits the copy as M(gb10.vllm.proxy_server) does.
  - Both happen in one process, so no client waits for the controller between the last proof and the admission.
  - At last it asks through the proxy until an answer has come from this copy (O(through)), which proves the way clients go.
  - An answer is bad when it is empty, repeats itself, holds characters that are no text, ends with C(abort), or does not match
    O(expect); a stream also when it carries an error event or breaks off. What a thinking model thought counts as its answer when
    it gave no other.
  - A copy that does not pass is not admitted, and the module fails with the verdict and the reason.
  - Sends small completions to the copy; changes C(gb10-vllm/servers.conf) in O(conf_dir) only, and keeps beside it, in
    C(gb10-vllm/gates/), what was asked (without O(api_key)), so that the proxy can prove the copy again after its watchdog restarted it.
extends_documentation_fragment:
  - gb10.vllm._attributes
  - gb10.vllm._nginx
  - gb10.vllm._nginx.change
  - gb10.vllm._nginx.limits
  - gb10.vllm._gate
  - gb10.vllm._gate.series
attributes:
  check_mode:
    support: full
    details: Asks the copy nothing and predicts that it is admitted.
  diff_mode:
    support: full
  idempotent:
    support: full
    details: A copy that is admitted already is proven again; nothing changes.
options:
  name:
    description: The inventory name of the copy.
    type: str
    required: true
  server:
    description: Where the copy listens, as C(IP:PORT) or C([IPv6]:PORT).
    type: str
    required: true
  loaded:
    description: Whether the copy is known to have loaded, so that a refused connection means that its process ended. V(false) waits.
    type: bool
    default: false
  through:
    description: The proxy's own address as this host reaches it, for example C(http://127.0.0.1:8080). Empty leaves the last proof out.
    type: str
    default: ""
  copy_header:
    description: Response header in which the proxy names the copy. Empty accepts an answer of any copy as the last proof.
    type: str
    default: X-Vllm-Copy
  through_seconds:
    description: Budget of the last proof, in seconds.
    type: int
    default: 20
seealso:
  - module: gb10.vllm.engine_ready
  - module: gb10.vllm.proxy_server
"""

EXAMPLES = r"""
- name: Prove the copy and admit it
  gb10.vllm.proxy_admit:
    name: spark1
    server: 192.0.2.11:8000
    model: qwen3.8-flash-next
    max_model_len: 262144
    loaded: true
    deadline_seconds: 120
  delegate_to: proxy1
"""

RETURN = r"""
verdict:
  description:
    - C(pass), C(fail) (the copy is bad), C(gone) (its process ended) or C(error) (the proofs could not be made, for example because
      the copy does not take O(api_key)).
  type: str
  returned: unless in check mode
reason:
  description: Why the copy did not pass, in one sentence.
  type: str
  returned: failure
proof:
  description: The last proof that was looked at, C(health), C(models), C(completion) or C(stream).
  type: str
  returned: failure
passed_at:
  description: When the last proof was there, in seconds since the epoch.
  type: float
  returned: when passed
done_at:
  description: When the copy was admitted, in seconds since the epoch.
  type: float
  returned: success
admitted:
  description: The admitted servers after the change, sorted by name.
  type: list
  elements: dict
  returned: success
"""

import random
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import (
    _gate,
    _gate_memory,
    _gate_probe,
    _http,
    _nginx_membership,
)
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError


def not_proven_through(options: dict[str, Any]) -> str:
    """Empty when an answer of this copy came through the proxy, else the last answer; least_conn may give a request to any copy."""
    end, last = time.monotonic() + options["through_seconds"], "none"
    while time.monotonic() < end:
        answer = _http.get(f"{options['through']}/v1/models", timeout=5, token=options["api_key"])
        name = answer.headers.get(options["copy_header"].lower(), "") if options["copy_header"] else options["name"]
        if answer.status == 200 and name == options["name"]:
            return ""
        last = f"{answer.status} from {name or 'no copy'}" if answer.status else answer.problem
        # Two hosts that prove themselves in step would each get the other's copy for ever.
        time.sleep(random.uniform(0.01, 0.1))
    return last


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_nginx_membership.OPTIONS,
            **_gate_probe.OPTIONS,
            **_gate_probe.SERIES,
            "server": {"type": "str", "required": True},
            "loaded": {"type": "bool", "default": False},
            "through": {"type": "str", "default": ""},
            "copy_header": {"type": "str", "default": "X-Vllm-Copy"},
            "through_seconds": {"type": "int", "default": 20},
        },
        supports_check_mode=True,
    )
    options = module.params
    program = module.get_bin_path("nginx", opt_dirs=["/usr/sbin", "/sbin"])
    proven: dict[str, object] = {}
    if not module.check_mode:
        verdict, state, at = _gate_probe.wait(f"http://{options['server']}", options, options["loaded"])
        if verdict != _gate.PASS:
            could = "could not be proven" if verdict == _gate.ERROR else "did not pass the gate"
            module.fail_json(
                msg=f"{options['name']} {could}: {state.reason}. It was not admitted",
                verdict=verdict,
                reason=state.reason,
                proof=state.step,
            )
        proven = {"verdict": verdict, "passed_at": at}
    try:
        result = _nginx_membership.change(
            {**options, "state": "admitted", "drain_seconds": 0}, module.check_mode, program
        )
    except NginxError as error:
        module.fail_json(msg=str(error))
    if not module.check_mode:
        _gate_memory.remember(options["conf_dir"], options["name"], options)
    last = not_proven_through(options) if options["through"] and not module.check_mode else ""
    if last:
        module.fail_json(
            msg=f"{options['name']} is admitted, but within {options['through_seconds']} s no answer of it came through the proxy "
            f"{options['through']} (the last one: {last}): look at the proxy's error log"
        )
    module.exit_json(**result, **proven)


if __name__ == "__main__":
    main()
