# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes of recurrent states, by hand from the published dimensions."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import state_layers, units
from ansible_collections.gb10.vllm.tests.unit.plugins.module_utils.memory import models

SUPER = {
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "mamba_ssm_cache_dtype": "float32",
}
NANO = {**SUPER, "mamba_num_heads": 96, "mamba_head_dim": 80}
BAMBA = {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_d_conv": 4}
KDA = {"linear_attn_config": {"num_heads": 32, "head_dim": 128, "short_conv_kernel_size": 4}}

# configuration, ranks, drafts, bytes of the model's type -> convolution + recurrent bytes
STATES: list[tuple[str, dict[str, Any], int, int, int, int]] = [
    ("delta net", models.gated(64, 4, 48), 1, 0, 2, 10240 * 3 * 2 + 48 * 128 * 128 * 4),
    ("delta net, two ranks, 3 drafts", models.gated(64, 4, 48), 2, 3, 2, 5120 * 6 * 2 + 24 * 128 * 128 * 4),
    ("delta net in the model's type", models.gated(64, 4, 48, mamba_ssm_dtype="auto"), 1, 0, 2,
     10240 * 3 * 2 + 48 * 128 * 128 * 2),
    ("delta net of a float32 model", models.gated(64, 4, 48, mamba_ssm_dtype=None), 1, 0, 4,
     10240 * 3 * 4 + 48 * 128 * 128 * 4),
    ("Mamba 2, 3 drafts", SUPER, 1, 3, 2, 8432 * 512),
    ("Mamba 2, heads of 80", NANO, 1, 0, 2, (96 * 80 + 2 * 8 * 128) * 3 * 2 + 96 * 80 * 128 * 4),
    ("Mamba 2, other names, model's type", BAMBA, 1, 0, 2, (32 + 64) * 3 * 2 + 4 * 8 * 16 * 2),
    ("KDA", KDA, 1, 0, 2, 3 * 32 * 128 * 3 * 2 + 32 * 128 * 128 * 4),
    ("KDA, newer names, two ranks", {"linear_num_heads": 32, "linear_head_dim": 128, "linear_conv_kernel_dim": 4}, 2, 0, 2,
     3 * 16 * 128 * 3 * 2 + 16 * 128 * 128 * 4),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "ranks", "drafts", "width", "size"), [case[1:] for case in STATES], ids=[case[0] for case in STATES]
)
def test_state_bytes(config: dict[str, Any], ranks: int, drafts: int, width: int, size: int) -> None:
    assert state_layers.state_layers(config, 3).bytes_per_layer(ranks, drafts, width) == size


def test_a_state_kept_whole_ignores_the_ranks() -> None:
    state = state_layers.StateLayers("ple", 1, 10240, 3, 0, 0, 0)
    assert state.bytes_per_layer(1, 2) == state.bytes_per_layer(2, 2) == 10240 * 5 * 2


def test_heads_must_divide() -> None:
    with pytest.raises(units.ShapeRefused, match="32 kda heads do not divide over 3 ranks"):
        state_layers.state_layers(KDA, 3).bytes_per_layer(3, 0)
