#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memory_info
short_description: Tell what a host's memory is, and who holds it
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Reads what a memory plan needs of one host. These are the total as the engine sees it, what is available, what the running engine
    gives back when it stops, and what every other unit and container holds.
  - The total is that of the last start's own log, else asked of CUDA inside the image where there is a GPU, else C(MemTotal) (of the
    memory node on a host without a GPU). It is never the nominal 128 GB and never a figure of C(nvidia-smi), which does not know the
    memory of a GB10.
  - Memory of a process is its part of the pages in C(/proc/PID/smaps_rollup) without the page cache, which the kernel gives up by
    itself. On a GB10 GPU allocations are neither in there nor in any cgroup; they are taken from the list of compute processes of
    C(nvidia-smi). Where there is a GPU and that list does not know the engine, everything that no process and no part of the kernel
    accounts for is taken for the engine's, and RV(engine.source) says so; with a second GPU process that figure is too high.
  - Changes nothing. With O(image) it may run a container for a moment, which reads the device's total and takes no GPU memory.
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
  state_dir:
    description: Folder with the figures of earlier starts, in the subfolder C(measured).
    type: path
    default: /var/lib/gb10-vllm
  image:
    description: Image to ask for the total when no start was measured; not asked when empty.
    type: str
    default: ""
  container_options:
    description: Options of C(docker run); those that give a container the GPU are used to ask the image.
    type: list
    elements: str
    default: []
  sample_seconds:
    description: For how many seconds the other work is watched for its peak, 0 to 3600. With 0 it is looked at once.
    type: float
    default: 0
  sample_interval:
    description: Seconds between two looks, at least 0.5. Each costs about a millisecond of CPU per process of the host.
    type: float
    default: 2
  gives_back:
    description: Further units or containers (as C(container NAME)) that a rollout stops before it starts the engine.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Look at the memory, and watch the other work for a minute
  gb10.vllm.memory_info:
    sample_seconds: 60
  register: memory
"""

RETURN = r"""
total_bytes:
  description: Memory as the engine sees it, in bytes.
  type: int
  returned: always
total_source:
  description: Where it is from, C(last start), C(image), C(MemTotal), or C(memory node 0) on a host without a GPU.
  type: str
  returned: always
available_bytes:
  description:
    - What is available now, in bytes, as the engine's own check counts it.
    - This is C(MemAvailable) on a host with a GPU. Without a GPU the engine looks at its memory node, and so does this.
  type: int
  returned: always
free_bytes:
  description: C(MemFree) now, in bytes. The driver refuses allocations when this is near 3 GiB, whatever is available.
  type: int
  returned: always
swap_total_bytes:
  description: Size of the swap, in bytes.
  type: int
  returned: always
swap_free_bytes:
  description: Free swap, in bytes.
  type: int
  returned: always
unaccounted_bytes:
  description: What no process and no part of the kernel accounts for, in bytes. On a GB10 mostly memory of the GPU's driver.
  type: int
  returned: always
engine:
  description: What the running engine holds.
  type: dict
  returned: always
  contains:
    running:
      description: Whether there is a process of it.
      type: bool
    process_bytes:
      description: Memory of its processes, in bytes.
      type: int
    device_bytes:
      description: GPU memory of its processes, in bytes.
      type: int
    gives_back_bytes:
      description: Both, and that of O(gives_back), in bytes. What is available once all of it has stopped is this much more.
      type: int
    source:
      description: Where the GPU part is from, C(processes), C(unaccounted) or C(none).
      type: str
others:
  description:
    - Units and containers that hold memory beside the engine, each at its peak while it was watched, the largest first. An entry has
      C(name), C(bytes) (with GPU memory), C(process) and C(pid) of its largest process. Those below 256 MiB are only in the sums.
  type: list
  elements: dict
  returned: always
others_bytes:
  description: What all of RV(others) hold, in bytes.
  type: int
  returned: always
system_bytes:
  description: What units below 256 MiB hold together, in bytes.
  type: int
  returned: always
samples:
  description: How often was looked.
  type: int
  returned: always
drift_bytes:
  description: Largest less smallest RV(available_bytes) while the host was watched, in bytes.
  type: int
  returned: always
measured:
  description: Content of the files with figures of earlier starts.
  type: list
  elements: dict
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _memory_host
from ansible_collections.gb10.vllm.plugins.module_utils._memory import holders
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import PlanError
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER


def engine_part(own: list[holders.Holder], more: list[holders.Holder], unaccounted: int) -> dict[str, Any]:
    """What the engine gives back. `own` are its unit and container, `more` what is stopped with it."""
    device, source = sum(holder.device for holder in own), "processes"
    if not device:
        device, source = (unaccounted, "unaccounted") if own and _memory_host.has_gpu() else (0, "none")
    process = sum(holder.size for holder in own)
    return {
        "running": bool(own),
        "process_bytes": process,
        "device_bytes": device,
        "gives_back_bytes": process + device + sum(holder.held for holder in more),
        "source": source,
    }


def look(options: dict[str, Any]) -> dict[str, Any]:
    ours = {_host.UNIT, f"container {CONTAINER}"}
    budget = _host.Deadline(options["sample_seconds"])
    names = _memory_host.container_names()
    samples, available = [_memory_host.sample(names)], [_memory_host.engine_view()[1]]
    while budget.left > 0:
        budget.pause(options["sample_interval"])
        samples.append(_memory_host.sample(_memory_host.container_names()))
        available.append(_memory_host.engine_view()[1])
    now = _memory_host.meminfo()
    stopped = {*ours, *options["gives_back"]}
    others = [holder for holder in holders.peak(samples) if holder.name not in stopped]
    notable = [holder for holder in others if holder.held >= _memory_host.NOTABLE]
    measured = _memory_host.stored(options["state_dir"])
    total, source = _memory_host.total(measured, options["image"], options["container_options"])
    unaccounted = holders.unaccounted(now)
    return {
        "total_bytes": total,
        "total_source": source,
        "available_bytes": _memory_host.engine_view()[1],
        "free_bytes": now["MemFree"],
        "swap_total_bytes": now.get("SwapTotal", 0),
        "swap_free_bytes": now.get("SwapFree", 0),
        "unaccounted_bytes": unaccounted,
        "engine": engine_part(
            [holder for holder in samples[-1] if holder.name in ours],
            [holder for holder in samples[-1] if holder.name in stopped - ours],
            unaccounted,
        ),
        "others": [
            {"name": holder.name, "bytes": holder.held, "process": holder.process, "pid": holder.pid}
            for holder in notable
        ],
        "others_bytes": sum(holder.held for holder in notable),
        "system_bytes": sum(holder.held for holder in others if holder not in notable),
        "samples": len(samples),
        "drift_bytes": max(available) - min(available),
        "measured": measured,
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": "/var/lib/gb10-vllm"},
            "image": {"type": "str", "default": ""},
            "container_options": {"type": "list", "elements": "str", "default": []},
            "sample_seconds": {"type": "float", "default": 0},
            "sample_interval": {"type": "float", "default": 2},
            "gives_back": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    for name, least, most in (("sample_seconds", 0, 3600), ("sample_interval", 0.5, 3600)):
        if not least <= module.params[name] <= most:
            module.fail_json(msg=f"{name} is {module.params[name]}: must be {least} to {most}")
    try:
        found = look(module.params)
    except (OSError, PlanError, _host.HostError) as error:
        module.fail_json(msg=f"the memory of this host could not be read: {error}")
    module.exit_json(changed=False, **found)


if __name__ == "__main__":
    main()
