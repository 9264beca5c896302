# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes of a model's weights, without reading them. Private to this collection: may change at any time.

A safetensors file begins with the length of its header (8 bytes, little endian) and the header itself (JSON: name, type, form
and place of every tensor). That is all that is read, through a function that the caller hands in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from .units import PlanError, ceil_div

Reader = Callable[[int, int], bytes]
"""Reads from one file: offset and count in bytes, answers with at most so many bytes."""

_LONGEST_HEADER = 100_000_000
_BITS = {"F64": 64, "I64": 64, "U64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
         "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4}  # fmt: skip
_DRAFT_NAME = re.compile(r"(^|\.)mtp(_layers|_block)?\.|(^|\.)nextn\.")
_LAYER_NAME = re.compile(r"(?:^|\.)layers\.(\d+)\.")
_VISION_NAME = re.compile(
    r"(^|\.)(visual|vision_tower|vision_model|vision_encoder|audio_tower|multi_modal_projector)\."
)


@dataclass(frozen=True)
class Tensor:
    """One stored tensor: its name and its bytes in the file."""

    name: str
    size: int


@dataclass(frozen=True)
class Weights:
    """What the weights of one rank take.

    Attributes:
        size: bytes.
        source: ``measured`` (the engine's own figure for this image, checkpoint and topology), ``headers``, ``index``
            or ``declared``.
        note: what a person should know about the figure, may be empty.
    """

    size: int
    source: str
    note: str = ""


def read_header(read: Reader, name: str = "model.safetensors") -> tuple[Tensor, ...]:
    """The tensors of one safetensors file, from its header alone.

    Args:
        read: reads from that file.
        name: the file's name, for messages.

    Raises:
        PlanError: the file is truncated or not a safetensors file; ``key`` is its name.
    """
    start = read(0, 8)
    if len(start) != 8:
        raise _broken(name, f"it ends after {len(start)} bytes")
    length = int.from_bytes(start, "little")
    if not 2 <= length <= _LONGEST_HEADER:
        raise _broken(name, f"its header would be {length} bytes long")
    raw = read(8, length)
    if len(raw) != length:
        raise _broken(name, f"its header ends after {len(raw)} of {length} bytes")
    try:
        header = json.loads(raw)
    except ValueError as error:
        raise _broken(name, f"its header is not JSON: {error}") from error
    if not isinstance(header, dict):
        raise _broken(name, "its header is not an object")
    return tuple(_tensor(name, key, entry) for key, entry in header.items() if key != "__metadata__")


def _tensor(name: str, key: str, entry: Any) -> Tensor:
    try:
        begin, end = entry["data_offsets"]
        bits = _BITS.get(entry["dtype"])
        stated = None if bits is None else ceil_div(prod(entry["shape"]) * bits, 8)
        size = end - begin
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(name, f"the entry of {key} is malformed") from error
    if begin < 0 or size < 0 or stated not in (None, size):
        raise _broken(name, f"{key} takes {size} bytes, its form and type {stated}")
    return Tensor(key, size)


def _broken(name: str, what: str) -> PlanError:
    return PlanError(f"{name} is not a whole safetensors file: {what}; copy the model again", name)


def sum_tensors(
    tensors: Iterable[Tensor], layers: int, drafting: bool, vision: bool = True, elsewhere: tuple[str, ...] = ()
) -> Weights:
    """Bytes of the tensors that the engine will load.

    Args:
        tensors: those of all files; a name that comes twice counts once.
        layers: layer count of the language model; layers numbered from there on belong to the draft head.
        drafting: True if the model's own draft head is used; without it the engine skips those tensors.
        vision: False with ``--language-model-only``.
        elsewhere: regular expressions of names that stay on disk, such as an n-gram table.
    """
    outside = [re.compile(pattern) for pattern in elsewhere]
    total, drafts, left = 0, 0, 0
    for tensor in {tensor.name: tensor for tensor in tensors}.values():
        if any(pattern.search(tensor.name) for pattern in outside) or (not vision and _VISION_NAME.search(tensor.name)):
            left += tensor.size
            continue
        if _is_draft(tensor.name, layers):
            drafts += tensor.size
            if not drafting:
                continue
        total += tensor.size
    note = f"{drafts} bytes of draft layers {'included' if drafting else 'left out'}" if drafts else ""
    if left:
        note = "; ".join(filter(None, [note, f"{left} bytes are not loaded"]))
    return Weights(total, "headers", note)


def _is_draft(name: str, layers: int) -> bool:
    if _VISION_NAME.search(name):
        return False
    number = _LAYER_NAME.search(name)
    return bool(_DRAFT_NAME.search(name)) or (number is not None and int(number[1]) >= layers)


def index_files(index: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the shards that ``model.safetensors.index.json`` lists, sorted.

    Raises:
        PlanError: there is no ``weight_map``.
    """
    table = index.get("weight_map")
    if not isinstance(table, Mapping) or not table:
        raise PlanError("model.safetensors.index.json has no weight_map", "weight_map")
    return tuple(sorted({str(name) for name in table.values()}))


def index_weights(index: Mapping[str, Any]) -> Weights:
    """The index's own total. Draft layers are always in it, and some exports leave a stale figure: headers are better.

    Raises:
        PlanError: ``total_size`` is absent or not a size.
    """
    metadata = index.get("metadata")
    size = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if isinstance(size, float) and size.is_integer():
        size = int(size)
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0:
        raise PlanError(f"model.safetensors.index.json: total_size is {size!r}; read the headers instead", "total_size")
    return Weights(size, "index", "draft layers included, not checked against the files")


def per_rank(weights: Weights, ranks: int, shared: int = 0) -> Weights:
    """An estimate for one of several ranks: an even share of everything that is not kept whole on each of them.

    Args:
        weights: the whole model, of one rank.
        ranks: tensor parallel size.
        shared: bytes that every rank keeps (norms, routers, indexers); 0 if unknown.
    """
    if ranks == 1:
        return weights
    size = shared + ceil_div(weights.size - shared, ranks)
    return Weights(
        size, weights.source, f"an even share over {ranks} ranks, to be replaced by the first start's figure"
    )


def store_key(image_digest: str, checkpoint: str, topology: str) -> str:
    """The name under which measured figures are stored: they hold for one image, one checkpoint and one topology.

    Raises:
        PlanError: a part is empty.
    """
    for name, value in (("image_digest", image_digest), ("checkpoint", checkpoint), ("topology", topology)):
        if not value:
            raise PlanError(f"measured figures need a {name}", name)
    return "|".join((image_digest.removeprefix("sha256:"), checkpoint, topology))
