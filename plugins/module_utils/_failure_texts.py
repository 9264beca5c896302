# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts in which engines, docker and CUDA name the cause of a failed start.

Private to this collection: may change at any time. Pure: no Ansible, no I/O; `_failure` reads them.
Read in vLLM 0.11 to 0.33, most of them in the source of 0.32.
"""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """`sentence` is a template for the named groups of its pattern; a group that is absent is empty."""

    kind: str
    pattern: str
    sentence: str
    advice: str


_LESS_CONTEXT = "lower max-model-len or raise gpu-memory-utilization; plan.yml shows what fits"

# In the order of how exactly a text names a cause: what stands further down is often only the consequence of something above.
RULES: tuple[Rule, ...] = (
    Rule(
        "memory_refused",
        r"Free memory on device\s*(?P<device>\S*) \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than .*?"
        r"\((?P<share>[\d.]+), (?P<asked>[\d.]+) GiB\)",
        "the memory was refused: {free} of {total} GiB were free, gpu-memory-utilization {share} asks for {asked} GiB",
        "free memory on this host (another process, a model that is still loaded) or lower gpu-memory-utilization; plan.yml shows what fits",
    ),
    Rule(
        "memory_refused",
        r"Free memory on device.* on startup is less than|desired \w+ memory utilization .*(Decrease|reduce)",
        "the memory was refused: less is free than gpu-memory-utilization asks for",
        "free memory on this host or lower gpu-memory-utilization; plan.yml shows what fits",
    ),
    Rule(
        "memory_changed",
        r"Error in memory profiling\.",
        "another process released memory while the engine measured it",
        "start again when nothing else on this host allocates or releases memory",
    ),
    Rule(
        "kv_too_small",
        r"max seq len \((?P<length>\d+)\).*maximum model length is (?P<most>\d+)",
        "the KV cache is too small for one request of max-model-len {length}: {most} tokens would fit",
        _LESS_CONTEXT,
    ),
    Rule(
        "kv_too_small",
        r"max seq len \((?P<length>\d+)\)",
        "the KV cache is too small for one request of max-model-len {length}",
        _LESS_CONTEXT,
    ),
    Rule(
        "kv_too_small",
        r"No available memory for the cache blocks|Cannot auto-fit max_model_len|KV cache.*\(-[\d.]+ GiB\)",
        "nothing was left for the KV cache after the weights and the work area",
        "raise gpu-memory-utilization, lower max-num-batched-tokens or max-num-seqs; plan.yml shows what fits",
    ),
    Rule(
        "parser_refused",
        r"invalid (?P<what>tool call|reasoning) parser: (?P<name>\S+)|(?P<what2>Tool|Reasoning) parser '(?P<name2>[^']+)' not found",
        "this build has no {what}{what2} parser named {name}{name2}",
        "choose a parser that this image has: its message in `journalctl --unit vllm` names those that it knows",
    ),
    Rule(
        "bad_argument",
        r"(?:^|\s)(?:vllm(?: serve)?|[\w.]+\.py): error: (?P<error>.+)|(?P<error2>unrecognized arguments: .+)|"
        r"(?P<error3>Error: --[\w-]+ requires .+)",
        "the engine refused its arguments: {error}{error2}{error3}",
        "correct the arguments of the release; the module arguments_check asks the image without a start",
    ),
    Rule(
        "bad_argument",
        r"validation errors? for (?P<config>\w+)|(?P<error>(?:Value)?[Ee]rror, .+\[type=value_error.*)",
        "the engine refused its configuration: {config}{error}",
        "correct the arguments of the release; the engine's log says which value it does not take",
    ),
    Rule(
        "port_taken",
        r"[Aa]ddress already in use|EADDRINUSE|port is already allocated",
        "a port that the engine needs is taken by another process",
        "find it on this host with `ss --listening --tcp --processes --numeric` and end it, or change vllm_port",
    ),
    Rule(
        "offline_lookup",
        r"(?:Failed to resolve|name resolution|Name or service not known|Max retries).*(?:huggingface\.co|hf\.co)|"
        r"(?:huggingface\.co|hf\.co).*(?:Failed to resolve|name resolution|Name or service not known|unreachable|Max retries)|"
        r"OfflineModeIsEnabled|offline mode is enabled|outgoing traffic has been disabled|LocalEntryNotFoundError|"
        r"couldn't connect to '?https?://(?:huggingface|hf)",
        "the engine looked for a file of the model on the network, where it may not or cannot go",
        "have the whole model on this host (tokenizer, configuration, processor too) and give its folder as the model; "
        "weights_info lists what is missing",
    ),
    Rule(
        "weights_incomplete",
        r"Cannot find any model weights|does not appear to have a file named|Invalid repository ID or local directory|"
        r"SafetensorError|HFValidationError|Incomplete ?Snapshot",
        "the model's files are missing or damaged on this host",
        "compare the folder with the repository (weights_info does) and fetch the model again",
    ),
    Rule(
        "image_missing",
        r"manifest (?:for \S+ )?(?:unknown|not found)|pull access denied|No such image|repository does not exist|"
        r"failed to resolve reference|[Ee]rror pulling image",
        "docker has no such image here and could not fetch it",
        "check vllm_image and whether this host reaches the registry; a cutover pulls the image before it stops anything",
    ),
    Rule(
        "disk_full",
        r"No space left on device",
        "a disk of this host is full",
        "make room (`df --human-readable`; docker's images and the compile cache are the usual ones)",
    ),
    Rule(
        "device_memory",
        r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|CUDA error: out of memory|cudaErrorMemoryAllocation|"
        r"NVML?.*out of memory|NVRM:.*out of memory|CUBLAS_STATUS_ALLOC_FAILED",
        "the GPU ran out of memory while the engine worked",
        "lower gpu-memory-utilization, so that more stays outside of the engine's share, or max-num-batched-tokens; "
        "on this machine the GPU and all processes share one memory",
    ),
    Rule(
        "device",
        r"CUDA driver version is insufficient|no CUDA-capable device|could not select device driver|nvidia-container-cli|"
        r"CUDA error: (?P<error>[\w ]+)",
        "the GPU or its driver could not be used {error}",
        "look at `nvidia-smi` and the kernel's log on this host; the image may need a newer driver",
    ),
    Rule(
        "pair",
        r"DistNetworkError|DistStoreError|NCCL error|ncclUnhandledSystemError|ncclSystemError|ncclRemoteError|"
        r"Timed out after \d+ seconds waiting for clients",
        "the ranks of the pair did not find or lost each other",
        "check the link and that both ranks were started with the same release; the pair starts and stops as one",
    ),
)
