# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep measures, in which order, and with which command.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A shape has a `name`, `words`, `own` (whether it is the owner's mix) and one of: `input` and `output` (random text of these lengths),
`lengths` (a mix, see `_sweep_mix`) or `prompts` (a file of the owner's prompts, with `output` where a line does not say).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _sweep_mix
from ansible_collections.gb10.vllm.plugins.module_utils._release import CACHE_FOLDERS
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

CONTAINER = "gb10-vllm-bench"
MIX = "mix"
# Folder of one run, inside the container.
INSIDE = "/sweep"
HUB = "/root/.cache/huggingface"
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,11}")
# A tokenizer with code of its own writes that code somewhere; the model's folder is mounted read-only.
ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_MODULES_CACHE": "/tmp/huggingface-modules",
}


def shapes(wanted: Mapping[str, Any], mix: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The shapes in the order of their names in the wish, the owner's mix last.

    Raises:
        SweepError: a shape says nothing, or the mix says two things.
    """
    found = []
    for name, lengths in wanted.items():
        if not _NAME.fullmatch(name) or name == MIX:
            raise SweepError(f"shape {name!r}: use up to 12 small letters, digits and _-, and not the name {MIX}")
        sizes = [_tokens(f"shape {name}", lengths, key) for key in ("input", "output")]
        words = f"random text, {sizes[0]} tokens of prompt and {sizes[1]} of answer"
        found.append({"name": name, "own": False, "words": words, "input": sizes[0], "output": sizes[1]})
    ways = [way for way in ("prompts", "lengths", "histograms") if mix.get(way)]
    if len(ways) > 1:
        raise SweepError(f"the mix is given by {' and by '.join(ways)}: choose one")
    if ways:
        found.append({"name": MIX, "own": True, **_mix(ways[0], mix)})
    if not found:
        raise SweepError("no shape of prompts is given, so there is nothing to measure")
    return found


def _mix(way: str, mix: Mapping[str, Any]) -> dict[str, Any]:
    if way == "prompts":
        return {"words": "your own prompts", "prompts": mix["prompts"], "output": _tokens("the mix", mix, "output")}
    if way == "histograms":
        return {"words": "lengths of the requests that this copy has served", "histograms": True}
    lengths = []
    for length in mix["lengths"]:
        weight = length.get("weight", 1)
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
            raise SweepError(f"a length of the mix has the weight {weight!r}: write a number above 0")
        sizes = {key: _tokens("a length of the mix", length, key) for key in ("input", "output")}
        lengths.append({**sizes, "weight": weight})
    return {"words": _sweep_mix.say(lengths), "lengths": lengths}


def _tokens(what: str, lengths: Any, key: str) -> int:
    value = lengths.get(key) if isinstance(lengths, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SweepError(f"{what} has {key} {value!r}: write a number of tokens, 1 or more")
    return value


def too_long(shape: Mapping[str, Any], most_tokens: int) -> str:
    """Why the engine would refuse this shape, empty when it would not."""
    for length in shape.get("lengths") or ([shape] if "input" in shape else []):
        needed = length["input"] + length["output"] + _sweep_mix.SPARE_TOKENS
        if most_tokens and needed > most_tokens:
            return (
                f"the shape {shape['name']} wants {length['input']} tokens of prompt and {length['output']} of answer, with "
                f"{_sweep_mix.SPARE_TOKENS} to spare more than the {most_tokens} that this engine takes (max-model-len)"
            )
    return ""


def identity(release: str, wish: Mapping[str, Any]) -> str:
    """Name of the sweep: the same wish for the same release is the same sweep, so it can go on where it was left."""
    text = json.dumps(wish, sort_keys=True, separators=(",", ":"))
    return f"{release}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def concurrencies(wanted: Sequence[int], most: int) -> tuple[list[int], list[int]]:
    """Those to measure, and those that the engine would only queue; `most` is its max_num_seqs, 0 when not known.

    Raises:
        SweepError: there is none, or one is no number of requests.
    """
    found = sorted(set(wanted))
    if not found or found[0] < 1:
        raise SweepError(f"concurrency is {list(wanted)}: give whole numbers from 1 on")
    measured = [number for number in found if not most or number <= most]
    if not measured:
        raise SweepError(
            f"concurrency is {list(wanted)}, but this engine takes {most} requests at once (max-num-seqs): measure at {most} or below"
        )
    return measured, found[len(measured) :]


def runs(shapes_: Sequence[Mapping[str, Any]], numbers: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """Every run in its order. A repeat comes after all others were measured once: what drifts must not look like an effect."""
    return [
        {"shape": shape["name"], "concurrency": number, "repeat": repeat}
        for repeat in range(1, repeats + 1)
        for shape in shapes_
        for number in numbers
    ]


def file_name(run: Mapping[str, Any]) -> str:
    return f"{run['shape']}-c{run['concurrency']}-r{run['repeat']}.json"


def argument(command: Sequence[Sequence[str]], name: str) -> str | None:
    """The value of an engine's argument in its release, `""` for a switch, None without it."""
    for line in command:
        if line and line[0] == name:
            return line[1] if len(line) > 1 else ""
        if line and line[0].startswith(f"{name}="):
            return line[0].partition("=")[2]
    return None


def max_num_seqs(command: Sequence[Sequence[str]]) -> int:
    value = argument(command, "--max-num-seqs")
    return int(value) if value and value.isdigit() else 0


def volumes(record_volumes: Sequence[str], more: Sequence[str]) -> list[str]:
    """The engine's mounts that hold models, read-only; its caches are none of the client's business."""
    found = []
    for volume in record_volumes:
        source, _colon, rest = volume.partition(":")
        target = rest.partition(":")[0]
        if target and target not in CACHE_FOLDERS.values():
            found.append(f"{source}:{target}:ro")
    return list(dict.fromkeys([*found, *more]))


def container(image: str, mounts: Sequence[str], folder: str, options: Sequence[str] = ()) -> list[str]:
    """`docker run` up to the image. The client is a container of its own: it must not live in the engine's memory, it can be ended
    without a trace, and it needs no GPU. Where memory runs out it goes first."""
    command = ["docker", "run", "--rm", "--name", CONTAINER, "--network", "host", "--pull", "never"]
    command += ["--oom-score-adj", "1000", "--env", "OPENAI_API_KEY"]
    for name, value in ENVIRONMENT.items():
        command += ["--env", f"{name}={value}"]
    for mount in [*mounts, f"{folder}:{INSIDE}"]:
        command += ["--volume", mount]
    return [*command, *options, "--entrypoint", "vllm", image]


def client(shape: Mapping[str, Any], run: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> list[str]:
    """The arguments of vLLM's client for one run. Answers have a fixed length, or a faster engine would be one that says less."""
    number = int(run["concurrency"])
    command = ["bench", "serve", "--backend", "openai", "--endpoint", "/v1/completions"]
    command += ["--base-url", f"http://127.0.0.1:{settings['port']}", "--model", settings["served_model_name"]]
    command += ["--tokenizer", settings["tokenizer"], "--max-concurrency", str(number), "--seed", str(seed)]
    command += ["--num-prompts", str(prompts_of(number, settings)), "--num-warmups", str(number * settings["warmups"])]
    command += ["--ignore-eos", "--temperature", "0", "--percentile-metrics", "ttft,tpot,itl,e2el"]
    command += ["--metric-percentiles", "50,99", "--disable-tqdm"]
    command += ["--save-result", "--result-dir", INSIDE, "--result-filename", "result.json"]
    if settings["trust_remote_code"]:
        command.append("--trust-remote-code")
    if "input" in shape:
        command += ["--dataset-name", "random", "--random-input-len", str(shape["input"])]
        return [*command, "--random-output-len", str(shape["output"])]
    command += ["--dataset-path", f"{INSIDE}/prompts.jsonl"]
    if "prompts" in shape:
        # Sent with the chat template, as clients do.
        return [*command, "--dataset-name", "custom", "--custom-output-len", "-1"]
    # A trace has lengths request by request; when they are sent is for the concurrency to say, not for the trace.
    command += ["--dataset-name", "timed_trace", "--timed-trace-chunk-hash-size", str(_sweep_mix.PIECE_TOKENS)]
    return [*command, "--no-self-timed"]


def needs(shapes_: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[str]:
    """What the client in the image has to know: each option, each kind of prompts, and what it reads files with."""
    run = {"concurrency": 1}
    words = [word for shape in shapes_ for word in client(shape, run, settings, 0)]
    options = [word for word in words if word.startswith("--")]
    kinds = [after for word, after in zip(words, words[1:], strict=False) if word == "--dataset-name"]
    # The negative of a switch is not written out anywhere.
    found = {"--self-timed" if option == "--no-self-timed" else option for option in options} | set(kinds)
    return sorted(found | ({"pandas"} if "custom" in kinds else set()))


def prompts_of(number: int, settings: Mapping[str, Any]) -> int:
    """Requests of one run: enough that the begin and the end, where fewer run at once, do not count much."""
    return max(int(settings["least_prompts"]), number * int(settings["prompts_per_slot"]))


def seed_of(salt: str, run: Mapping[str, Any]) -> int:
    """Other prompts for each run, so that none is answered from the cache of another."""
    return int(hashlib.sha256(f"{salt}/{file_name(run)}".encode()).hexdigest()[:7], 16)
