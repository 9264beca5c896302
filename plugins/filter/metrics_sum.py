# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of several copies as one sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.plugin_utils._traffic import traffic

DOCUMENTATION = r"""
name: metrics_sum
short_description: Sum the metrics of a site's copies
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Makes one sum of what M(gb10.vllm.copy_metrics) found on each host. Differences are taken per copy and then added, so a
    restart of one copy leaves the figures of the others alone.
  - A copy that could not be read is missing and not 0. Shares are never added but given as maximum and mean, histograms are added
    by bucket, and a share or a quantile is V(idle) where too little was counted for one.
  - There is no sum when two hosts turn out to be the same process; C(refused) says which.
options:
  _input:
    description: The registered results of M(gb10.vllm.copy_metrics) by host. An empty or failed one is a copy that is missing.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how much the site does
  ansible.builtin.debug:
    msg: "{{ metrics | gb10.vllm.metrics_sum }}"
  vars:
    metrics: "{{ dict(groups['engines'] | zip(groups['engines'] | map('extract', hostvars) | map(attribute='metrics', default={}))) }}"
"""

RETURN = r"""
_value:
  description:
    - C(copies), the figures of each host; C(sum), all together; C(refused), why there is no sum.
    - C(window) is what happened between the two readings, C(life) what happened since each engine began.
  type: dict
"""


def metrics_sum(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Each copy and their sum."""
    if not isinstance(results, Mapping):
        raise AnsibleFilterError("metrics_sum needs a dictionary: the results of gb10.vllm.copy_metrics by host")
    return traffic(results)


class FilterModule:
    """What Ansible asks this file for."""

    def filters(self) -> dict[str, Any]:
        return {"metrics_sum": metrics_sum}
