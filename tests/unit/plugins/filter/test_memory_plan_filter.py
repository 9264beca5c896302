# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter hands its inputs to the plan and turns refusals into errors."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gb10.vllm.plugins.filter import memory_plan
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

HOSTS = [{"name": "spark1", "total_gib": 121.69}]
ENGINE = {"max_model_len": 262144, "weights_gib": 71, "kv_cache_dtype": "fp8", "num_speculative_tokens": 4}


def test_plan() -> None:
    plan = memory_plan.FilterModule().filters()["memory_plan"](
        models.FLASH_NEXT, HOSTS, ENGINE, demand={"full_requests": 2}
    )
    assert plan["verdict"] == "replicate"
    assert plan["copies"][0]["utilization"] == 0.78


def test_refusal() -> None:
    with pytest.raises(AnsibleFilterError, match="memory_plan: config.json: num_hidden_layers is missing"):
        memory_plan.memory_plan({}, HOSTS, ENGINE)
