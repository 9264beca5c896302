#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sweep
short_description: Measure a copy over concurrency and prompt shapes, and propose its max_num_seqs
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs on the copy's own host and sends to its port directly, never through a proxy. Uses C(vllm bench serve) from the image of the
    release that runs, in a container of its own without a GPU, which ends after each run.
  - It does not withdraw the copy. Let nobody else send to it meanwhile (P(gb10.vllm.tune#role) sees to that).
  - Reads the host's current release, the model's tokenizer, the engine's C(/health) and C(/metrics). Needs no network. All
    that is missing is named before anything is sent.
  - Keeps each finished run below O(folder), so a sweep that was interrupted goes on where it was and measures nothing twice. The name of
    a sweep follows from the release and from what is asked for.
  - Removes a container C(gb10-vllm-bench) that an interrupted sweep has left. Never touches the engine, its unit, its container or a release.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details:
      - Looks for everything that is needed, says what would be measured and judges what was measured before. Sends nothing to the engine but
        questions about its health and its figures.
  diff_mode:
    support: full
    details:
      - Shows the runs that are there before and after.
  idempotent:
    support: full
    details:
      - A sweep that is complete is only judged. With O(again=true) it is measured again each time.
  action:
    description: Runs partly on the controller.
    support: full
    details: The action calls the module run by run, prints a line after each, and ends when O(total_seconds) are over.
options:
  state:
    description:
      - With V(measured) the runs that are missing are measured.
      - With V(ended) only a client that an interrupted sweep has left is taken away.
    type: str
    choices: [measured, ended]
    default: measured
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  folder:
    description: Folder of all sweeps on the host.
    type: path
    default: /var/lib/gb10-vllm/sweeps
  loads_file:
    description: Where the loads of releases are kept, for the time that a start takes.
    type: path
    default: /var/lib/gb10-vllm/loads.json
  image:
    description: Image with vLLM's bench client. Empty means the image of the release itself.
    type: str
    default: ""
  volumes:
    description: Further mounts of the client's container, as C(docker run --volume) takes them.
    type: list
    elements: str
    default: []
  container_options:
    description: Further options of C(docker run) for the client, for example C(--gpus=all) for a build that does not start without a GPU.
    type: list
    elements: str
    default: []
  api_key:
    description: API key of the engine. Empty means the one in the release's own secrets, if there is one.
    type: str
    default: ""
  concurrency:
    description: How many requests run at once, 1 or more each. What is above the engine's C(max-num-seqs) would only queue and is left out.
    type: list
    elements: int
    default: [1, 2, 4, 8, 12, 16]
  times:
    description: Each of O(concurrency) is multiplied by this, 1 or more; a pair takes what its copies would take together.
    type: int
    default: 1
  shapes:
    description: Random text by the name of its shape, each with C(input) and C(output) in tokens.
    type: dict
    default: {}
  mix:
    description:
      - The owner's own mix, by one of C(prompts) (a file on this host, one JSON object with C(prompt) and C(output_tokens) or one plain prompt
        per line; C(output) counts where a line does not say), C(lengths) (a list with C(input), C(output) and C(weight)) or
        C(histograms) (true, the lengths of the requests that this engine has served since its start).
    type: dict
    default: {}
  repeats:
    description: How often each point is measured, 1 or more; the median counts.
    type: int
    default: 3
  prompts_per_slot:
    description: Requests of a run for each one that runs at once.
    type: int
    default: 5
  least_prompts:
    description: Requests of a run at least.
    type: int
    default: 20
  warmups:
    description: Requests before each run that do not count, for each one that runs at once.
    type: int
    default: 1
  point_seconds:
    description: How long one run may take, in seconds. One that takes longer is ended and noted as too slow.
    type: int
    default: 900
  total_seconds:
    description: How long all runs of this call may take together, in seconds. What is left then is measured by the next call.
    type: int
    default: 10800
  slice_seconds:
    description: No run is begun after so many seconds of one call of the module; 0 means no bound. Set by the action.
    type: int
    default: 0
  tolerance:
    description: Of two concurrencies whose throughput differs by at most this many percent, the lower one is better. 0 to 20.
    type: float
    default: 1.0
  limits:
    description: What a concurrency may cost at most, in milliseconds, by C(ttft_p50), C(ttft_p99), C(itl_p50) and C(itl_p99); 0 is no limit.
    type: dict
    default: {}
  bound:
    description: The most sequences that the memory plan allows; a proposal is never above it. 0 means not known.
    type: int
    default: 0
  again:
    description: Measure anew what was measured completely before. The earlier runs are kept beside it.
    type: bool
    default: false
seealso:
  - module: gb10.vllm.memory_plan
"""

EXAMPLES = r"""
- name: Measure this copy with two shapes
  gb10.vllm.sweep:
    concurrency: [1, 2, 4, 8, 16]
    shapes:
      short: {input: 128, output: 128}
      long: {input: 4096, output: 256}
  register: sweep
"""

RETURN = r"""
id:
  description: Name of the sweep.
  type: str
  returned: with O(state=measured)
complete:
  description: Whether every run is there.
  type: bool
  returned: with O(state=measured)
done:
  description: Number of runs that are there.
  type: int
  returned: with O(state=measured)
left:
  description: Number of runs that are missing.
  type: int
  returned: with O(state=measured)
last:
  description: The run that was measured last, in words.
  type: str
  returned: with O(state=measured)
left_out:
  description: Concurrencies above the engine's C(max-num-seqs).
  type: list
  elements: int
  returned: with O(state=measured)
lengths:
  description: The lengths of the mix, empty without one of lengths.
  type: list
  elements: dict
  returned: with O(state=measured)
shapes:
  description: Per shape C(name), C(words), C(own), C(rows) (medians by concurrency) and C(knee).
  type: list
  elements: dict
  returned: with O(state=measured)
proposal:
  description: C(max_num_seqs), null when nothing could be judged, with C(reason), C(kind), C(by), C(current) and C(bound).
  type: dict
  returned: with O(state=measured)
table:
  description: The same for a person, line by line.
  type: list
  elements: str
  returned: with O(state=measured)
engine:
  description: The release, its image and model, C(max_num_seqs), C(kv_tokens), C(full_requests) and C(load_seconds).
  type: dict
  returned: with O(state=measured)
"""

import hashlib
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _sweep, _sweep_host, _sweep_mix, _sweep_plan
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

LEAST = {
    "times": 1,
    "repeats": 1,
    "prompts_per_slot": 1,
    "least_prompts": 1,
    "warmups": 0,
    "point_seconds": 10,
    "total_seconds": 1,
}


def check(options: dict[str, Any]) -> None:
    """Refuse what cannot be meant."""
    for name, least in LEAST.items():
        if options[name] < least:
            raise SweepError(f"{name} is {options[name]}: {least} or more")
    if not 0 <= options["tolerance"] <= 20:
        raise SweepError(f"tolerance is {options['tolerance']}: 0 to 20 percent")
    for name, limit in options["limits"].items():
        if name not in _sweep.LIMITS or isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0:
            raise SweepError(f"limits has {name} {limit!r}: use {', '.join(_sweep.LIMITS)}, in milliseconds from 0 on")


def wish_of(options: dict[str, Any], record: dict[str, Any], numbers: list[int], shapes: list[Any]) -> dict[str, Any]:
    """What makes a sweep this one; another wish is another sweep."""
    own = next((shape["prompts"] for shape in shapes if "prompts" in shape), "")
    counted = {name: options[name] for name in ("repeats", "prompts_per_slot", "least_prompts", "warmups", "image")}
    digest = hashlib.sha256(Path(own).read_bytes()).hexdigest() if own else ""
    named = [{key: value for key, value in shape.items() if key != "prompts"} for shape in shapes]
    return {**counted, "concurrency": numbers, "shapes": named, "prompts": digest, "port": record["port"]}


class Sweep:
    """What is asked for, what is there, and what is missing."""

    def __init__(self, options: dict[str, Any], write: bool) -> None:
        check(options)
        self.options, self.write = options, write
        self.record, missing = _sweep_host.look(options)
        self.shapes = _sweep_plan.shapes(options["shapes"], options["mix"])
        missing += [
            f"the file of prompts {shape['prompts']} is not on this host"
            for shape in self.shapes
            if "prompts" in shape and not Path(shape["prompts"]).is_file()
        ]
        self.refuse(missing)
        self.key = _sweep_host.key_of(options, self.record)
        most = _sweep_plan.max_num_seqs(self.record["command"])
        self.current = most
        wanted = [number * options["times"] for number in options["concurrency"]]
        self.numbers, self.left_out = _sweep_plan.concurrencies(wanted, most)
        self.wanted = _sweep_plan.runs(self.shapes, self.numbers, options["repeats"])
        self.id = _sweep_plan.identity(self.record["id"], wish_of(options, self.record, self.numbers, self.shapes))
        self.folder = f"{options['folder']}/{self.id}"
        begun = _sweep_host.read_plan(self.folder)
        self.runs = _sweep_host.measured(self.folder, self.wanted) if begun else []
        if options["again"] and len(self.runs) == len(self.wanted):
            if write:
                _sweep_host.put_aside(self.folder)
            begun, self.runs = None, []
        self.plan = begun or self.prepare()
        if begun:
            self.shapes = begun["shapes"]
            if not write and self.missing():
                self.look_into_the_image(begun)

    def refuse(self, missing: list[str]) -> None:
        if missing:
            raise SweepError(f"nothing was measured, because something is missing: {'; '.join(missing)}")

    def look_into_the_image(self, plan: dict[str, Any]) -> None:
        words = _sweep_plan.needs(plan["shapes"], plan["settings"])
        lacks = _sweep_host.lacks(plan, words)
        self.refuse([lacks] if lacks else [])

    def prepare(self) -> dict[str, Any]:
        """Everything that must be known before the first run, kept for the later ones."""
        most = int(self.record.get("max_model_len") or 0)
        for shape in self.shapes:
            if shape.get("histograms"):
                shape["lengths"] = _sweep_host.own_lengths(self.options, self.record, self.key, self.write)
                shape["words"] = f"the requests that this copy has served, {_sweep_mix.say(shape['lengths'])}"
            if problem := _sweep_plan.too_long(shape, most):
                raise SweepError(problem)
            if "prompts" in shape:
                _sweep_host.check_prompts(shape)
        settings = {name: self.options[name] for name in ("prompts_per_slot", "least_prompts", "warmups")}
        for name in ("port", "served_model_name", "tokenizer"):
            settings[name] = self.record[name]
        settings["trust_remote_code"] = _sweep_plan.argument(self.record["command"], "--trust-remote-code") is not None
        plan = {
            "id": self.id,
            "release": self.record["id"],
            "bench_image": self.record["bench_image"],
            "volumes": _sweep_plan.volumes(self.record["volumes"], self.options["volumes"]),
            "options": self.options["container_options"],
            "settings": settings,
            "shapes": self.shapes,
        }
        self.look_into_the_image(plan)
        return _sweep_host.begin(self.folder, plan) if self.write else plan

    def missing(self) -> list[dict[str, Any]]:
        there = {_sweep_plan.file_name(run) for run in self.runs}
        return [run for run in self.wanted if _sweep_plan.file_name(run) not in there]

    def measure(self) -> str:
        """Measure what is missing, as far as the slice goes; the last run in words."""
        began, last = time.monotonic(), ""
        for run in self.missing():
            if last and self.options["slice_seconds"] and time.monotonic() - began >= self.options["slice_seconds"]:
                break
            found = _sweep_host.measure(self.folder, self.plan, run, self.key, self.options["point_seconds"])
            self.runs.append(found)
            said = (
                found["error"]
                or f"{found['output_per_second']:.1f} tokens/s, first token after {found['ttft_p50']:.0f} ms"
            )
            last = f"{run['shape']}, {run['concurrency']} at once: {said}"
        return last

    def result(self, last: str) -> dict[str, Any]:
        options = self.options
        judged = _sweep.judge(
            self.runs,
            self.shapes,
            {name: float(limit) for name, limit in options["limits"].items()},
            options["tolerance"],
            self.current,
            options["bound"],
            max([*self.numbers, *self.left_out]),
        )
        left = len(self.missing())
        engine = {
            name: self.record.get(name) for name in ("id", "topology", "image", "model", "revision", "max_model_len")
        }
        engine.update(_sweep_host.engine_facts(self.record, self.key, options["loads_file"]), max_num_seqs=self.current)
        return {
            "id": self.id,
            "began": self.plan.get("began"),
            "ended": max((run["time"] for run in self.runs), default=None),
            "complete": left == 0,
            "done": len(self.runs),
            "left": left,
            "last": last,
            "left_out": self.left_out,
            "lengths": next((shape["lengths"] for shape in self.shapes if "lengths" in shape), []),
            "engine": engine,
            "tolerance": options["tolerance"],
            "repeats": options["repeats"],
            "table": _sweep.lines(judged),
            **judged,
        }


def main() -> None:
    integers = {"repeats": 3, "prompts_per_slot": 5, "least_prompts": 20, "warmups": 1, "point_seconds": 900,
                "total_seconds": 10800, "slice_seconds": 0, "bound": 0, "times": 1}  # fmt: skip
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["measured", "ended"], "default": "measured"},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "folder": {"type": "path", "default": _sweep_host.FOLDER},
            "loads_file": {"type": "path", "default": "/var/lib/gb10-vllm/loads.json"},
            "image": {"type": "str", "default": ""},
            "volumes": {"type": "list", "elements": "str", "default": []},
            "container_options": {"type": "list", "elements": "str", "default": []},
            "api_key": {"type": "str", "default": "", "no_log": True},
            "concurrency": {"type": "list", "elements": "int", "default": [1, 2, 4, 8, 12, 16]},
            "shapes": {"type": "dict", "default": {}},
            "mix": {"type": "dict", "default": {}},
            "tolerance": {"type": "float", "default": _sweep.TOLERANCE},
            "limits": {"type": "dict", "default": {}},
            "again": {"type": "bool", "default": False},
            **{name: {"type": "int", "default": value} for name, value in integers.items()},
        },
        supports_check_mode=True,
    )
    options, write = module.params, not module.check_mode
    try:
        if options["state"] == "ended":
            there = _host.container_state(_sweep_plan.CONTAINER) is not None
            if there and write:
                _sweep_host.end_client()
            module.exit_json(changed=there)
        sweep = Sweep(options, write)
        before = len(sweep.runs)
        last = sweep.measure() if write else ""
        found = sweep.result(last)
    except (OSError, _host.HostError, SweepError) as error:
        module.fail_json(msg=str(error))
    after = found["done"] if write else len(sweep.wanted)
    text = {
        name: f"{count} of {len(sweep.wanted)} runs of sweep {sweep.id}\n"
        for name, count in (("before", before), ("after", after))
    }
    module.exit_json(changed=after != before, diff=text, **found)


if __name__ == "__main__":
    main()
