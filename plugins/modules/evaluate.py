#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: evaluate
short_description: Test how a copy calls tools, and judge it by the last accepted score
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Runs the suite C(tool-eval-bench) against one copy, or against what is behind a proxy, once with streamed answers and once with whole
    ones, and returns a record of how it was measured, what was measured, what was found, and what it comes to.
  - The suite runs on the controller in a virtual environment of its own and needs no network but the way to the copy. That way is a port
    forwarded over the task's own SSH connection, so a copy that is not admitted, and whose port is open for proxies only, is reached too.
  - Every exchange goes through a relay on the controller's loopback, which counts what a suite does not see or tries to mend, that is server
    errors that a second try hides, calls that came as text, arguments that are no JSON, calls that no tool has asked for, streams with
    missing parts, and answers that ended at the limit of tokens. It also keeps the copy's key off every command line.
  - Server errors fail, however few. So does a share of malformed answers above O(fault_percent) and above that of the last accepted
    record, more safety failures than there, and a score that is more than O(drop) points lower.
  - Only what was measured in the same way is compared, that is with the same suite, version, scenarios, trials, thinking, temperature,
    additions to the requests, modes, and about as many requests at once. Image, model, revision, arguments and drafting may differ, for they
    are what is judged.
  - Reads nothing but O(release_path) on the host and changes nothing there. What an interrupted run had done is kept in O(work_dir) on the controller, and the
    next one goes on there; when it is complete, nothing is left.
requirements:
  - tool-eval-bench == 3.0.0 (on the controller, in O(venv))
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Checks what V(ready) checks and asks the copy nothing.
  diff_mode:
    support: none
  idempotent:
    support: none
    details: Each call measures, unless O(skip_known) finds a record.
  action:
    description: Runs on the controller.
    support: full
options:
  state:
    description:
      - V(evaluated) measures.
      - V(ready) only checks that everything is there and that the score could be judged, and fails with the way out where it could not.
    type: str
    choices: [evaluated, ready]
    default: evaluated
  against:
    description: Name of what is tested, a host or C(proxy); part of the record's id.
    type: str
    required: true
  kind:
    description: What the record is made for.
    type: str
    choices: [evaluate, gate]
    default: evaluate
  port:
    description: Port on the loopback of the task's host.
    type: int
    default: 8000
  url:
    description: Address that the controller reaches by itself, for example C(http://192.0.2.11:8000). Empty means through the connection.
    type: str
    default: ""
  api_key:
    description: Key of the copy. Only the relay has it.
    type: str
    default: ""
  releases:
    description: What is tested, each with C(name) and C(record), the content of its C(release.json). Behind a proxy there are several.
    type: list
    elements: dict
    default: []
  release_path:
    description: The C(release.json) on the host instead. A host that cannot be reached is then a failure, which a C(rescue) sees.
    type: str
    default: ""
  take:
    description:
      - File on the controller with the RV(record) that another site has made, for example a spare host with the same release. It is judged by
        O(records), and nothing is measured. One that was not measured to its end, cannot be compared, or is in O(records) already is refused.
    type: path
    default: ""
  records:
    description: RV(gb10.vllm.evaluation_record#module:records) so far.
    type: list
    elements: dict
    default: []
  skip_known:
    description: Measure nothing when there is an accepted record of the same content, whatever host it was measured on.
    type: bool
    default: false
  scenarios:
    description:
      - V(short) is the suite's core of 15 scenarios, V(full) its standard set, V(hard) that and its hard ones, V(packs) only O(packs).
      - V(auto) is V(full) for a model, revision or image that has no accepted record of it, else V(short).
    type: str
    choices: [auto, short, full, hard, packs]
    default: short
  only:
    description: Ids of single scenarios of that set, for example V(TC-01). Empty means all.
    type: list
    elements: str
    default: []
  packs:
    description: Folders on the controller with scenarios of the owner's own, in the suite's YAML.
    type: list
    elements: path
    default: []
  modes:
    description: Whether answers are asked for as a stream, whole, or both, one after the other.
    type: list
    elements: str
    choices: [streamed, whole]
    default: [streamed, whole]
  trials:
    description: How often each mode is run; the score is the mean.
    type: int
    default: 1
  thinking:
    description: Whether the model may think.
    type: bool
    default: true
  temperature:
    description: Temperature of the requests, from 0.
    type: float
    default: 0.0
  request:
    description: Further fields of every request, for example C(max_tokens) or C(tool_choice).
    type: dict
    default: {}
  concurrency:
    description: Requests at once. V(0) means as many as the release serves at once (C(max-num-seqs)), or 8 where it does not say.
    type: int
    default: 0
  request_seconds:
    description: How long the copy may be silent within one request, in seconds.
    type: int
    default: 120
  seconds:
    description: Budget of the whole evaluation, in seconds. When it is over the verdict is C(error).
    type: int
    default: 1800
  venv:
    description: Virtual environment of the suite on the controller.
    type: path
    default: ~/.cache/gb10-vllm/tool-eval-bench-3.0.0
  command:
    description:
      - A command of the owner's own instead of the suite. It finds the copy in E(OPENAI_BASE_URL) and E(OPENAI_API_KEY), the model in
        E(GB10_VLLM_MODEL), and E(GB10_VLLM_CONCURRENCY) and E(GB10_VLLM_STREAMED), and prints on its last line a number, or a JSON object with
        C(score) and, where it knows them, C(suite), C(version), C(scenarios), C(safety) and C(lost).
    type: list
    elements: str
    default: []
  work_dir:
    description: Folder on the controller for what an interrupted run had done.
    type: path
    default: ~/.cache/gb10-vllm/evaluations
  drop:
    description: Points that a score may be below the last accepted one.
    type: float
    default: 3.0
  gap:
    description: Points that may lie between streamed answers and whole ones.
    type: float
    default: 10.0
  fault_percent:
    description: Share of malformed answers, in percent, that is put down to chance.
    type: float
    default: 5.0
  minimum:
    description: Lowest score that passes, whatever was before.
    type: float
    default: 0.0
  accept_incomparable:
    description: Take a score that cannot be compared with the last accepted one as a new beginning.
    type: bool
    default: false
seealso:
  - module: gb10.vllm.evaluation_record
"""

EXAMPLES = r"""
- name: Test the copy on this host
  gb10.vllm.evaluate:
    against: "{{ inventory_hostname }}"
    releases:
      - name: "{{ release_id }}"
        record: "{{ release }}"
    records: "{{ kept.records }}"
    scenarios: short
  register: evaluated
"""

RETURN = r"""
record:
  description:
    - What M(gb10.vllm.evaluation_record) keeps. C(how) and C(what) are the two halves of a comparison, C(passes) has the score of each mode
      and trial, C(wire) what was counted on the way.
    - C(score) is the lower one of both modes, C(accepted) whether it is the measure for those that follow.
  type: dict
  returned: always
lines:
  description: The verdict and one table, for people.
  type: list
  elements: str
  returned: always
scores:
  description: Every score of the site so far with its time, verdict and what it is of, oldest first, for M(gb10.vllm.sweep_report).
  type: list
  elements: dict
  returned: always
verdict:
  description: C(pass), C(fail) when the copy is bad, C(gone) when its process ended, C(error) when it could not be measured; empty when nothing was.
  type: str
  returned: always
reason:
  description: Why, in a sentence.
  type: str
  returned: always
skipped_for:
  description: Id of the record that made a measurement needless, empty when there was none.
  type: str
  returned: always
"""
