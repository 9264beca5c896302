#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: copy_metrics
short_description: Read the metrics of the engine on this host
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads C(/metrics) of the host's own engine, twice, and tells what it did in between, in the same words for every version of vLLM.
  - A page that is cut off, is not an engine's, or contradicts itself is refused as a whole; a single figure that cannot be
    trusted is null, and C(problems) of RV(reading) says why. A figure that is not there is null as well, and never 0.
  - Fails when a proxy answers. It passes each question to another copy, so its figures would be of no engine.
  - Changes nothing, and asks the engine nothing that costs it work. Counters of several copies are summed by
    P(gb10.vllm.metrics_sum#filter).
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
  address:
    description: Address of the engine. It must be one of this host.
    type: str
    default: 127.0.0.1
  port:
    description: HTTP port of the engine.
    type: int
    default: 8000
  interval_seconds:
    description:
      - Time between the two readings, in seconds. Range 0 to 60; with 0 there is one reading, and no RV(window).
      - The longer it is, the more requests are in it for quantiles and shares.
    type: float
    default: 1
  timeout_seconds:
    description: How long one page may take, in seconds. Range 0.1 to 60.
    type: float
    default: 2
  proxy_copy_header:
    description:
      - Header by which the proxy's answers are known, see C(vllm_proxy_copy_header) of the role P(gb10.vllm.proxy#role).
      - Other proxies are known by their name in the header C(Server).
    type: str
    default: X-Vllm-Copy
seealso:
  - plugin: gb10.vllm.metrics_sum
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the metrics of every copy
  gb10.vllm.copy_metrics:
    interval_seconds: 2
  register: metrics

- name: Say how fast it writes
  ansible.builtin.debug:
    msg: "{{ metrics.window.counters.generation_tokens / metrics.window.seconds }} tokens per second"
  when: metrics.window is not none
"""

RETURN = r"""
state:
  description:
    - V(read); V(off), the engine runs without metrics; V(absent), nobody answers; V(unreadable), the answer is no whole page.
  type: str
  returned: success
reason:
  description: Why there is no reading, or no window; empty when there are both.
  type: str
  returned: success
reading:
  description:
    - The newest figures, null unless RV(state) is V(read).
    - C(at), seconds since the epoch; C(version) of vLLM; C(engines), how many the process has.
    - C(counters) since the process began, C(requests) by the reason for their end, C(gauges), C(kv_use) of each engine (0 to 1).
    - C(histograms) of C(ttft), C(inter_token), C(e2e) and C(queue) in seconds. Their counts are cumulative.
    - C(started), C(born), C(listener) and C(instance) tell this process from others.
    - C(problems), figures that are on the page and are not trusted.
  type: dict
  returned: success
window:
  description:
    - What the engine did between the two readings, null when there is one or none.
    - C(seconds), C(counters), C(requests), C(histograms), C(restarts), and C(partial), the figures that do not cover all of it.
  type: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch, window

LIMITS = {"interval_seconds": (0, 60), "timeout_seconds": (0.1, 60), "port": (1, 65535)}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "default": "127.0.0.1"},
            "port": {"type": "int", "default": 8000},
            "interval_seconds": {"type": "float", "default": 1},
            "timeout_seconds": {"type": "float", "default": 2},
            "proxy_copy_header": {"type": "str", "default": "X-Vllm-Copy"},
        },
        supports_check_mode=True,
    )
    asked = module.params
    for name, (least, most) in LIMITS.items():
        if not least <= asked[name] <= most:
            module.fail_json(msg=f"{name} is {asked[name]}, it must be {least} to {most}")
    address, port = asked["address"], asked["port"]
    if not fetch.is_own_address(address):
        module.fail_json(
            msg=f"address is {address}, which is not an address of this host: each host reads its own engine, usually at 127.0.0.1"
        )
    try:
        result = window.look_twice(
            address, port, asked["interval_seconds"], asked["timeout_seconds"], asked["proxy_copy_header"]
        )
    except fetch.ProxyError as error:
        module.fail_json(
            msg=f"{address}:{port} is a proxy, not an engine ({error}). It would give another copy's figures each time: "
            "set port to that of the engine (vllm_port)."
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
