# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dimensions of layers that keep a state instead of keys and values. Private to this collection: may change at any time.

Sources of the rules: the engine's state shape calculators of 0.21 to 0.33, confirmed by the block sizes that its logs print.
"""

from __future__ import annotations

from dataclasses import dataclass

from .config_keys import Config, needed, whole
from .units import LayoutUnknown, ShapeRefused

_WIDTH = {"float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2}


@dataclass(frozen=True)
class StateLayers:
    """Layers of one recurrent kind.

    Attributes:
        kind: ``gdn`` (gated delta net), ``mamba2``, ``kda`` or ``ple`` (short convolution beside the layers).
        count: layers of this kind.
        channels: width of the convolution state, whole model.
        taps: rows of the convolution state without drafting, the kernel size minus 1.
        cells: elements of the recurrent state of one layer, whole model.
        cell_bytes: bytes of one such element; 0 means as wide as the model's own type.
        heads: what tensor parallelism must divide; 0 if every rank keeps the whole state.
    """

    kind: str
    count: int
    channels: int
    taps: int
    cells: int
    cell_bytes: int
    heads: int

    def bytes_per_layer(self, ranks: int, draft_tokens: int, model_bytes: int = 2) -> int:
        """State of one layer and request on one rank, in bytes.

        Args:
            ranks: tensor parallel size, at least 1.
            draft_tokens: tokens drafted per step, 0 without drafting; each adds a row to the convolution state.
            model_bytes: bytes of one element of the model's own type (2, or 4 with float32).

        Raises:
            ShapeRefused: the heads do not divide by ``ranks``.
        """
        if not self.heads:
            ranks = 1
        elif self.heads % ranks:
            raise ShapeRefused(
                f"{self.heads} {self.kind} heads do not divide over {ranks} ranks", "tensor_parallel_size"
            )
        convolution = self.channels // ranks * (self.taps + draft_tokens) * model_bytes
        return convolution + self.cells // ranks * (self.cell_bytes or model_bytes)


def state_layers(block: Config, count: int) -> StateLayers:
    """The recurrent layers of a model.

    Args:
        block: the language model's block of ``config.json``.
        count: how many layers keep a state, at least 1.

    Raises:
        ShapeRefused: a dimension is missing or malformed.
        LayoutUnknown: the kind of state is not modelled.
    """
    if block.get("linear_attn_config") is not None:
        return _kda(block["linear_attn_config"], count)
    if block.get("linear_num_value_heads") is not None:
        return _gdn(block, count)
    if block.get("linear_num_heads") is not None:
        heads, dim = needed(block, "linear_num_heads"), needed(block, "linear_head_dim")
        return _kda_layers(count, heads, heads, dim, needed(block, "linear_conv_kernel_dim"))
    if any(block.get(name) is not None for name in ("mamba_num_heads", "mamba_n_heads")):
        return _mamba2(block, count)
    raise LayoutUnknown(
        f"config.json: {count} layers keep a state, but none of linear_num_value_heads, mamba_num_heads and "
        "linear_attn_config says how large it is",
        "linear_num_value_heads",
    )


def _gdn(block: Config, count: int) -> StateLayers:
    value_heads, value_dim = needed(block, "linear_num_value_heads"), needed(block, "linear_value_head_dim")
    key_heads, key_dim = needed(block, "linear_num_key_heads"), needed(block, "linear_key_head_dim")
    return StateLayers(
        "gdn",
        count,
        2 * key_heads * key_dim + value_heads * value_dim,
        needed(block, "linear_conv_kernel_dim") - 1,
        value_heads * value_dim * key_dim,
        _cell_bytes(block, "mamba_ssm_dtype"),
        value_heads,
    )


def _mamba2(block: Config, count: int) -> StateLayers:
    heads = needed(block, "mamba_num_heads", "mamba_n_heads")
    dim = needed(block, "mamba_head_dim", "mamba_d_head")
    size = needed(block, "ssm_state_size", "mamba_d_state")
    groups = needed(block, "n_groups", "mamba_n_groups")
    return StateLayers(
        "mamba2",
        count,
        heads * dim + 2 * groups * size,
        needed(block, "conv_kernel", "mamba_d_conv") - 1,
        heads * dim * size,
        _cell_bytes(block, "mamba_ssm_cache_dtype"),
        heads,
    )


def _kda(block: Config, count: int) -> StateLayers:
    heads, dim = needed(block, "num_heads"), needed(block, "head_dim")
    key_heads = whole(block, "num_k_heads", "num_key_heads") or heads
    return _kda_layers(count, heads, key_heads, dim, needed(block, "short_conv_kernel_size"))


def _kda_layers(count: int, heads: int, key_heads: int, dim: int, kernel: int) -> StateLayers:
    return StateLayers("kda", count, heads * dim + 2 * key_heads * dim, kernel - 1, heads * dim * dim, 4, heads)


def _cell_bytes(block: Config, key: str) -> int:
    name = block.get(key)
    if name is None or name == "auto":
        return 0
    if name not in _WIDTH:
        raise ShapeRefused(f"config.json: {key} is {name!r}, expected one of {', '.join(_WIDTH)}", key)
    return _WIDTH[name]
