# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a model's shape to the groups of its cache. Private to this collection: may change at any time.

Rules of the engine's releases 0.10.2 to 0.33.0, checked against the start-up logs in ``tests/benchmarks`` and, for dense,
windowed, chunked and gated delta net layers, against the grouping functions of release 0.32.0 with 590 random models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .kv_dtype import release, token_bytes
from .layout import Group, Layout, Settings
from .shape import AttentionLayers, ModelShape
from .state_layers import StateLayers
from .units import LayoutUnknown, ShapeRefused, ceil_div

_LATENT_ALIGNMENT = 128
_CLOSE, _CLOSE_BEFORE = (3, 2), (5, 4)
_CLOSE_SINCE = (0, 20, 2)


@dataclass(frozen=True)
class _Kind:
    """Layers with one form of block: the members of a future group."""

    kind: str
    count: int
    token_bytes: int
    side_bytes: int
    block_size: int
    window: int = 0
    latent: bool = False
    apart: bool = False

    @property
    def page(self) -> int:
        return self.block_size * self.token_bytes


def make_layout(shape: ModelShape, settings: Settings) -> Layout:
    """The cache layout of a model, on each rank.

    Raises:
        ShapeRefused: heads do not divide over the ranks.
        LayoutUnknown: the combination is not modelled.
    """
    own = len(shape.attention)
    kinds = [
        replace(_kind(layers, settings), apart=position >= own)
        for position, layers in enumerate(_with_drafts(shape, settings))
    ]
    if any(layers.index_ratio > 1 for layers in shape.attention):
        return _indexed(shape, kinds, settings)
    if shape.state:
        return _hybrid(shape.state[0], kinds, settings)
    if all(kind.kind == "full" for kind in kinds):
        block_bytes = sum(kind.count * kind.block_size * (kind.token_bytes + kind.side_bytes) for kind in kinds)
        return Layout((Group("full", settings.block_size),), block_bytes, settings)
    kinds = _same_page(kinds)
    return _grouped(kinds, 0, max(kind.page for kind in kinds), settings)


def _with_drafts(shape: ModelShape, settings: Settings) -> list[AttentionLayers]:
    """The attention layers, with the draft layers in the kind that they equal, else as a kind of their own at the end."""
    draft = (settings.drafter or shape.draft) if settings.draft_tokens else None
    layers = list(shape.attention)
    if draft is None:
        return layers
    for position, own in enumerate(layers):
        if replace(own, count=draft.count) == draft:
            layers[position] = replace(own, count=own.count + draft.count)
            return layers
    return [*layers, draft]


def _kind(layers: AttentionLayers, settings: Settings) -> _Kind:
    heads = layers.kv_heads
    if not layers.latent:
        if heads > settings.ranks and heads % settings.ranks:
            raise ShapeRefused(f"{heads} KV heads do not divide over {settings.ranks} ranks", "tensor_parallel_size")
        heads = max(1, heads // settings.ranks)
    side = 0
    if layers.index_dim and layers.index_ratio == 1:
        # an fp8 key with one float32 scale for every 128 elements
        side = layers.index_dim + ceil_div(layers.index_dim, 128) * 4
    elif layers.index_dim:
        if layers.index_dim * 2 % layers.index_ratio:
            raise LayoutUnknown("indexer keys do not divide by their compression", "indexer_compress_ratio")
        side = layers.index_dim * 2 // layers.index_ratio
    size = token_bytes(settings.kv_dtype, heads, layers.dims, layers.latent)
    return _Kind(layers.kind, layers.count, size, side, settings.block_size, layers.window, layers.latent)


def _aligned_block(states: Sequence[StateLayers], kinds: Sequence[_Kind], settings: Settings) -> int:
    """The attention block, raised until its page holds the widest state of a layer."""
    size = max(one.bytes_per_layer(settings.ranks, settings.draft_tokens, settings.model_bytes) for one in states)
    step = max(settings.block_size, _LATENT_ALIGNMENT if kinds[0].latent else 1)
    return step * ceil_div(size, step * kinds[0].token_bytes)


def _hybrid(state: StateLayers, kinds: list[_Kind], settings: Settings) -> Layout:
    """Attention beside recurrent layers: one page size for both."""
    main = [kind for kind in kinds if not kind.apart]
    if len({kind.token_bytes for kind in main}) > 1 or any(kind.side_bytes for kind in main):
        raise LayoutUnknown(
            "recurrent layers beside attention layers of different form are not modelled", "layer_types"
        )
    block = _aligned_block([state], main, settings)
    page = block * main[0].token_bytes
    sized = [replace(kind, block_size=block) for kind in main]
    for kind in kinds:
        if kind.apart:
            fits, rest = divmod(page, kind.page)
            sized.append(replace(kind, block_size=block if rest else kind.block_size * fits))
    evidence = "rule" if state.kind == "kda" or main[0].latent or settings.cache_mode == "all" else "exact"
    return _grouped(sized, state.count, page, settings, evidence)


def _indexed(shape: ModelShape, kinds: list[_Kind], settings: Settings) -> Layout:
    """Compressed indexed attention: attention and its indexer keys are one group, the widest; states share its bytes."""
    if len(kinds) != 1 or not shape.state or shape.state[0].kind == "ple":
        raise LayoutUnknown("indexed attention without recurrent layers or beside other attention", "indexer_head_dim")
    kind = kinds[0]
    block = _aligned_block(shape.state, kinds, settings)
    page = block * kind.token_bytes
    block_bytes = kind.count * block * (kind.token_bytes + kind.side_bytes)
    states = [Group("state", block, times=ceil_div(layers.count, block_bytes // page)) for layers in shape.state]
    return Layout((Group("full", block), *states, Group("ring", block)), block_bytes, settings, "ratio")


def _same_page(kinds: list[_Kind]) -> list[_Kind]:
    """Smaller pages grow by a whole factor of their block; where that is impossible they are padded."""
    if any(kind.side_bytes for kind in kinds):
        raise LayoutUnknown("an indexer beside windowed layers is not modelled", "index_head_dim")
    widest = max(kind.page for kind in kinds)
    return [
        kind if widest % kind.page else replace(kind, block_size=kind.block_size * (widest // kind.page))
        for kind in kinds
    ]


def _grouped(kinds: list[_Kind], states: int, page: int, settings: Settings, evidence: str = "exact") -> Layout:
    """Cuts every kind into groups of one size; missing members are padding."""
    counts = [kind.count for kind in kinds] + ([states] if states else [])
    build = release(settings.version)
    above, below = _CLOSE_BEFORE if build is not None and build < _CLOSE_SINCE else _CLOSE
    size = max(counts) if max(counts) * below < min(counts) * above else min(counts)
    groups = [Group(kind.kind, kind.block_size, kind.window, ceil_div(kind.count, size)) for kind in kinds]
    if states:
        groups.append(Group("state", kinds[0].block_size, times=ceil_div(states, size)))
    return Layout(tuple(groups), size * page, settings, evidence)
