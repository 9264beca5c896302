# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner's own mix of prompts: lengths from a copy's request histograms, and prompts of given lengths or from a file.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A length is `{"input": tokens, "output": tokens, "weight": share}`.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._metrics.histogram import Histogram
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

PROMPT, GENERATION = "vllm:request_prompt_tokens", "vllm:request_generation_tokens"
GROUPS = 3
# Fewer requests than this are no traffic of anybody's.
LEAST_REQUESTS = 50
# Tokens of text that the client makes from one id of a trace.
PIECE_TOKENS = 64
# Room for what a chat template or a tokenizer adds.
SPARE_TOKENS = 16


def groups(histogram: Histogram, most: int = GROUPS) -> list[tuple[int, float]]:
    """A few values with their weights that stand for a histogram: about equally heavy, and with its exact mean."""
    edges = [0.0, *histogram["bounds"]]
    counts = [*histogram["counts"], histogram["count"]]
    parts: list[tuple[float, int]] = []
    below = 0
    for place, upto in enumerate(counts):
        low = edges[place]
        high = edges[place + 1] if place + 1 < len(edges) else 2 * low
        if upto > below:
            parts.append((max(1.0, (low + high) / 2), upto - below))
        below = upto
    total = sum(count for _middle, count in parts)
    if not total:
        raise SweepError("the histogram is empty")
    heap: list[list[tuple[float, int]]] = [[]]
    done = 0
    for middle, count in parts:
        # A bucket goes where its own middle falls, so that one that is heavy is not cut.
        wanted = min(most - 1, int((done + count / 2) * most / total))
        if heap[-1] and wanted >= len(heap):
            heap.append([])
        heap[-1].append((middle, count))
        done += count
    scale = histogram["sum"] / sum(middle * count for middle, count in parts)
    found = []
    for group in heap:
        weight = sum(count for _middle, count in group)
        mean = sum(middle * count for middle, count in group) / weight
        found.append((max(1, round(mean * scale)), weight / total))
    return found


def lengths(prompt: Histogram, generation: Histogram, most_tokens: int) -> list[dict[str, Any]]:
    """Lengths from the two histograms. They say nothing of which answer belongs to which prompt, so each goes with each.

    Raises:
        SweepError: there are too few requests to speak of a mix.
    """
    seen = min(prompt["count"], generation["count"])
    if seen < LEAST_REQUESTS:
        raise SweepError(
            f"the engine has answered {seen} requests since it started, too few for a mix (at least {LEAST_REQUESTS}): let it serve "
            "for a while first, or say the mix yourself (vllm_tune_lengths, or vllm_tune_prompts for a file of prompts)"
        )
    found: dict[tuple[int, int], float] = {}
    for wanted_input, input_weight in groups(prompt):
        for wanted_output, output_weight in groups(generation):
            pair = fitted(wanted_input, wanted_output, most_tokens)
            found[pair] = found.get(pair, 0) + input_weight * output_weight
    return [{"input": i, "output": o, "weight": round(weight, 4)} for (i, o), weight in sorted(found.items())]


def fitted(wanted_input: int, wanted_output: int, most_tokens: int) -> tuple[int, int]:
    """The pair of lengths, cut to what the engine accepts; 0 means that the bound is not known."""
    room = most_tokens - SPARE_TOKENS if most_tokens else 0
    if room <= 0 or wanted_input + wanted_output <= room:
        return wanted_input, wanted_output
    output = min(wanted_output, max(1, room // 2))
    return max(1, room - output), output


def say(mix: Sequence[Mapping[str, Any]]) -> str:
    """The mix in words."""
    whole = sum(length["weight"] for length in mix)
    parts = [f"{length['input']}+{length['output']} ({length['weight'] / whole:.0%})" for length in mix]
    return "prompt+answer tokens " + ", ".join(parts)


def apportion(mix: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """So many lengths, each as often as its weight says, the largest remainders first; every run has the same ones."""
    whole = sum(length["weight"] for length in mix)
    shares = [count * length["weight"] / whole for length in mix]
    given = [math.floor(share) for share in shares]
    order = sorted(range(len(mix)), key=lambda place: shares[place] - given[place], reverse=True)
    for place in order[: count - sum(given)]:
        given[place] += 1
    return [length for length, times in zip(mix, given, strict=True) for _time in range(times)]


def of_lengths(mix: Sequence[Mapping[str, Any]], count: int, seed: str) -> list[dict[str, Any]]:
    """A trace of these lengths for one run. The client makes the text from the ids of its pieces, so no two prompts begin alike."""
    dice = random.Random(seed)
    found = []
    for length in apportion(mix, count):
        pieces = [dice.getrandbits(48) for _piece in range(math.ceil(length["input"] / PIECE_TOKENS))]
        found.append(
            {"timestamp": 0, "input_length": length["input"], "output_length": length["output"], "hash_ids": pieces}
        )
    dice.shuffle(found)
    return found


def read_prompts(text: str, output: int) -> list[dict[str, Any]]:
    """The owner's file: one JSON object with `prompt` (and `output_tokens`) per line, or one plain prompt per line.

    Raises:
        SweepError: a line cannot be read, or there is none.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        content: Any = {"prompt": line.strip()}
        if line.lstrip().startswith("{"):
            try:
                content = json.loads(line)
            except ValueError as error:
                raise SweepError(f"line {number} of the prompts is no JSON: {error}") from None
        prompt, wanted = content.get("prompt"), content.get("output_tokens", output)
        if not isinstance(prompt, str) or not prompt:
            raise SweepError(f"line {number} of the prompts has no text under the key prompt")
        if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
            raise SweepError(
                f"line {number} of the prompts has output_tokens {wanted!r}: write a whole number from 1 on"
            )
        found.append({"prompt": prompt, "output_tokens": wanted})
    if not found:
        raise SweepError("the file of prompts is empty")
    return found


def of_file(prompts: Sequence[Mapping[str, Any]], count: int, seed: str) -> list[dict[str, Any]]:
    """Prompts of the file for one run: other ones each run as far as the file reaches, so that no cache helps."""
    dice = random.Random(seed)
    found: list[dict[str, Any]] = []
    while len(found) < count:
        found += dice.sample([dict(prompt) for prompt in prompts], min(len(prompts), count - len(found)))
    return found
