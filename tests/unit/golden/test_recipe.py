# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start files of inventories/two-sparks against the facts of the published recipes, and byte for byte.

Ansible renders them for real, through the role's variables and checks; no host is contacted. After a wanted change
write the new files with `UPDATE_GOLDEN=1 pytest tests/unit/golden` and read the difference.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gb10.vllm.tests.unit.playbooks import ROOT, connections, play

HERE = Path(__file__).parent
DIGEST = "60b0d2e8a57c91f4" * 4
IMAGE = f"eugr/spark-vllm-b12x@sha256:{DIGEST}"
HOSTS = ("spark1", "spark2")
# The two topologies as the example site has them, and a copy without the site's own overrides: the bare recipe.
CASES: dict[str, dict[str, Any]] = {
    "replicated": {"vllm_topology": "replicated"},
    "split": {"vllm_topology": "split"},
    "recipe": {"vllm_topology": "replicated", "vllm_replicated_overrides": {}},
}


@functools.cache
def start_files(case: str) -> dict[str, str]:
    """The rendered start file by host."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mod = folder / "fix-qwen3.8-ple-dtype"
        mod.mkdir()
        (mod / "run.sh").write_text("echo a mod of the test\n")
        variables = {
            **CASES[case],
            "vllm_image": IMAGE,
            "vllm_replicated_mods": [str(mod)],
            "golden_folder": str(folder),
            "ansible_become": False,
            "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        }
        done = play(folder, HERE / "render.yml", "inventories/two-sparks", variables)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert connections(folder) == []
        return {host: (folder / host).read_text() for host in HOSTS}


def command(text: str) -> tuple[list[str], list[str]]:
    """The words for docker, and the words for vllm from `serve` on."""
    words = shlex.split(text.partition("exec docker run")[2].replace("\\\n", " "))
    at = words.index("serve")
    return words[:at], words[at:]


def stands_in(words: Sequence[str], part: Sequence[str]) -> bool:
    return any(list(words[i : i + len(part)]) == list(part) for i in range(len(words)))


# Name of the fact and the words it comes out as; the numbers are sections of the notes on the upstream build and its recipes.
CONTAINER = {
    "1.3 removed when it ends, so no docker restart policy": "--rm",
    "1.3 an init as process 1": "--init",
    "1.3 host network": "--network host",
    "1.3 host IPC": "--ipc host",
    "1.3 all GPUs": "--gpus all",
    "1.3 shared memory of 64 GB": "--shm-size 64g",
    "1.3 may lock memory": "--cap-add IPC_LOCK",
    "1.3 unlimited memlock, else NCCL falls back to sockets": "--ulimit memlock=-1",
    "1.3 stack limit of the manual form": "--ulimit stack=67108864",
    "1.3 open files": "--ulimit nofile=1048576",
    "1.3 CPU affinity ignored by NCCL": "--env NCCL_IGNORE_CPU_AFFINITY=1",
    "1.3 expandable segments": "--env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "1.3 models of the hub": "--volume /home/nvidia/.cache/huggingface:/root/.cache/huggingface",
    "5 io_uring of the b12x loader is not blocked": "--security-opt seccomp=unconfined",
    "5 offline": "--env HF_HUB_OFFLINE=1",
}
CACHES = {
    "1.3 cache of vllm": "vllm:/root/.cache/vllm",
    "1.3 cache of flashinfer": "flashinfer:/root/.cache/flashinfer",
    "1.3 cache of triton": "triton:/root/.triton",
    "1.3 cache of tilelang": "tilelang:/root/.tilelang",
    "5 cache of b12x, which the launcher forgets": "b12x:/root/.cache/b12x",
}
BOTH_ENVIRONMENTS = {
    "2.1 PLE table on disk": "--env VLLM_PLE_TABLE_MEMORY=disk",
    "2.1 DSL architecture": "--env CUTE_DSL_ARCH=sm_121a",
    "2.1 safetensors to the GPU": "--env SAFETENSORS_FAST_GPU=1",
    "2.1 spawned workers": "--env VLLM_WORKER_MULTIPROC_METHOD=spawn",
    "2.1 layout of the convolution state": "--env VLLM_SSM_CONV_STATE_LAYOUT=DS",
    "2.1 AOT compile": "--env VLLM_USE_AOT_COMPILE=1",
    "2.1 mega AOT artifact": "--env VLLM_USE_MEGA_AOT_ARTIFACT=1",
    "2.1 model runner": "--env VLLM_USE_V2_MODEL_RUNNER=1",
    "2.1 b12x policy": "--env B12X_POLICY_MODE=auto",
    "2.1 MXFP8 head": "--env VLLM_MXFP8_LM_HEAD=1",
    "2.1 FP4 MoE input scale": "--env VLLM_B12X_MOE_FP4_LAYER_MAX_INPUT_SCALE=w13",
}
BOTH_ENGINES = {
    "2.1 pipeline of one": "--pipeline-parallel-size 1",
    "2.1 context": "--max-model-len 262144",
    "2.1 batched tokens": "--max-num-batched-tokens 4096",
    "2.1 chunked prefill": "--enable-chunked-prefill",
    "2.1 prefix caching": "--enable-prefix-caching",
    "2.1 mamba cache": "--mamba-cache-mode align",
    "2.1 block size": "--block-size 16",
    "2.1 dtype": "--dtype bfloat16",
    "2.1 KV cache in FP8": "--kv-cache-dtype fp8",
    "2.1 quantization": "--quantization modelopt_mixed",
    "2.1 linear backend": "--linear-backend b12x",
    "2.1 MoE backend": "--moe-backend b12x",
    "2.1 GDN decode kernel": "--gdn-decode-kernel b12x",
    "2.1 no flashinfer autotune": "--no-enable-flashinfer-autotune",
    "2.1 reasoning parser": "--reasoning-parser qwen3",
    "2.1 tool parser": "--tool-call-parser qwen3_xml",
    "2.1 tools by choice of the model": "--enable-auto-tool-choice",
    "2.1 encoder in data parallel": "--mm-encoder-tp-mode data",
    "2.1 fused activation and quantization": """--compilation-config '{"pass_config":{"fuse_act_quant":true}}'""",
    "2.1 trust in the model's code": "--trust-remote-code",
    "one name for clients": "--served-model-name qwen3.8-flash-next",
    "1.5 running requests may end": "--shutdown-timeout 60",
}
COPY = {
    "2.1 model": "serve local-inference-lab/Qwen3.8-Flash-Next-NVFP4",
    "2.1 tensor parallel of one": "--tensor-parallel-size 1",
    "2.1 loader": "--load-format b12x",
    "2.1 four draft tokens": """--speculative-config '{"method":"mtp","num_speculative_tokens":4}'""",
    "1.4 HTTP on every copy": "--host 0.0.0.0 --port 8000",
}
PAIR = {
    "2.2 model": "serve nvidia/Qwen3.8-Flash-Next-NVFP4",
    "2.2 tensor parallel of two": "--tensor-parallel-size 2",
    "2.2 sixteen sequences": "--max-num-seqs 16",
    "2.2 utilization": "--gpu-memory-utilization 0.7",
    "2.2 loader": "--load-format safetensors",
    "2.2 drafter on triton": """--speculative-config '{"method":"mtp","moe_backend":"triton","num_speculative_tokens":4}'""",
    "1.4 no Ray": "--distributed-executor-backend mp",
    "1.4 two nodes": "--nnodes 2",
    "1.4 address of the head on the link": "--master-addr 192.168.177.11",
    "1.4 rendezvous port": "--master-port 29501",
}
PAIR_CONTAINER = {
    "1.3 RDMA devices": "--device /dev/infiniband",
    "2.2 all-reduce over RoCE": "--env VLLM_ENABLE_ROCE_ALLREDUCE=1",
    "2.2 its largest message": "--env VLLM_ROCE_ALLREDUCE_MAX_SIZE=2MB",
    "1.3 InfiniBand not disabled": "--env NCCL_IB_DISABLE=0",
    "4 RDMA on both halves of the port": "--env NCCL_IB_HCA=rocep1s0f1,roceP2p1s0f1",
    "4 NCCL on the link": "--env NCCL_SOCKET_IFNAME=enp1s0f1np1",
    "4 Gloo on the link": "--env GLOO_SOCKET_IFNAME=enp1s0f1np1",
    "4 tensor pipe on the link": "--env TP_SOCKET_IFNAME=enp1s0f1np1",
    "4 UCX on the link": "--env UCX_NET_DEVICES=enp1s0f1np1",
    "1.3 MN_IF_NAME": "--env MN_IF_NAME=enp1s0f1np1",
    "1.3 OpenMPI on the link": "--env OMPI_MCA_btl_tcp_if_include=enp1s0f1np1",
}
# By case and host: what only this host has.
OWN_ENGINE = {
    ("replicated", "spark1"): {"share of spark1": "--gpu-memory-utilization 0.78", "site's 12": "--max-num-seqs 12"},
    ("replicated", "spark2"): {"share of spark2": "--gpu-memory-utilization 0.74", "site's 12": "--max-num-seqs 12"},
    ("recipe", "spark1"): {"2.1 utilization": "--gpu-memory-utilization 0.8", "2.1 sequences": "--max-num-seqs 8"},
    ("recipe", "spark2"): {"2.1 utilization": "--gpu-memory-utilization 0.8", "2.1 sequences": "--max-num-seqs 8"},
    ("split", "spark1"): {"1.4 rank 0": "--node-rank 0", "1.4 HTTP on the head": "--host 0.0.0.0 --port 8000"},
    ("split", "spark2"): {"1.4 rank 1": "--node-rank 1", "1.4 rank 1 is headless": "--headless"},
}
OWN_CONTAINER = {
    ("split", "spark1"): {"1.3 own address on the link": "--env VLLM_HOST_IP=192.168.177.11"},
    ("split", "spark2"): {"1.3 own address on the link": "--env VLLM_HOST_IP=192.168.177.12"},
}
# Words that must not be there.
NEVER = {
    "1.3 a unit, not docker, restarts": "--restart",
    "1.3 not privileged": "--privileged",
    "a secret is never on a command line": "--api-key",
    "1.3 in the foreground": "--detach",
    "4 the GID index drifts": "NCCL_IB_GID_INDEX",
}
NOT_HERE = {
    ("replicated", "spark1"): ("--nnodes", "--headless", "/dev/infiniband", "NCCL_SOCKET_IFNAME", "VLLM_HOST_IP"),
    ("replicated", "spark2"): ("--nnodes", "--headless", "/dev/infiniband", "NCCL_SOCKET_IFNAME", "VLLM_HOST_IP"),
    ("split", "spark1"): ("--headless", "VLLM_HOST_IP=192.168.177.12"),
    ("split", "spark2"): ("--host", "--port", "VLLM_HOST_IP=192.168.177.11"),
}


def facts(case: str, host: str) -> tuple[dict[str, str], dict[str, str]]:
    """Everything that this start file must say to docker, and to vllm, by the fact's name."""
    cache = f"/var/lib/gb10-vllm/cache/{DIGEST[:12]}-{CASES[case]['vllm_topology']}"
    pair = case == "split"
    container = {
        **CONTAINER,
        **{name: f"--volume {cache}/{mount}" for name, mount in CACHES.items()},
        **BOTH_ENVIRONMENTS,
        **(PAIR_CONTAINER if pair else {}),
        **OWN_CONTAINER.get((case, host), {}),
        "image by digest": IMAGE,
        "1.3 explicit entrypoint": "--entrypoint vllm" if pair else "--entrypoint /bin/bash",
    }
    return container, {**BOTH_ENGINES, **(PAIR if pair else COPY), **OWN_ENGINE[case, host]}


@pytest.mark.parametrize("case", CASES)
def test_facts(case: str) -> None:
    """Every fact is an assertion of its own; the failure names each fact that does not hold, with its words."""
    failed = {}
    for host in HOSTS:
        text = start_files(case)[host]
        for said, expected in zip(command(text), facts(case, host), strict=True):
            failed |= {(host, name): w for name, w in expected.items() if not stands_in(said, shlex.split(w))}
        failed |= {(host, name): f"not {words}" for name, words in NEVER.items() if words in text}
        docker, engine = command(text)
        for words in NOT_HERE.get((case, host), ()):
            if words in " ".join(docker) or words in engine:
                failed[host, "only the other rank or topology has it"] = f"not {words}"
        # An option that comes into the recipe later needs a fact too.
        named = {word for w in facts(case, host)[1].values() for word in shlex.split(w)}
        failed |= {(host, f"{word} has no fact"): word for word in set(engine) - named if word.startswith("--")}
    assert failed == {}


def test_mod_is_applied_before_the_engine() -> None:
    """1.3: the mod is mounted read-only where upstream has it, run first, and the engine takes the shell's place."""
    for text in start_files("replicated").values():
        docker, engine = command(text)
        script = 'set -e; (cd /workspace/mods/fix-qwen3.8-ple-dtype && bash ./run.sh); exec vllm "$@"'
        assert docker[-3:] == ["-c", script, "vllm"]
        (mount,) = (word for word in docker if word.endswith("/mods:/workspace/mods:ro"))
        assert mount.startswith("/etc/gb10-vllm/releases/replicated-")
        assert engine[0] == "serve"


def test_ranks_differ_only_where_they_must() -> None:
    """A pair whose ranks disagree on an option hangs or answers garbage."""
    one, two = (set(start_files("split")[host].splitlines()) for host in HOSTS)
    own = {line.strip(" \\").split("=")[0] for line in one ^ two if not line.startswith("#")}
    assert own == {
        "--env VLLM_HOST_IP",
        "--node-rank 0",
        "--node-rank 1",
        "--headless",
        "--host 0.0.0.0",
        "--port 8000",
    }


@pytest.mark.parametrize("case", ["replicated", "split"])
def test_golden(case: str) -> None:
    """Byte for byte, but for the release's id: that is a checksum of the other files of the release too."""
    for host in HOSTS:
        file = HERE / "start" / f"{case}-{host}.txt"
        text = re.sub(rf"\b{case}-[0-9a-f]{{12}}\b", f"{case}-ID", start_files(case)[host])
        head = "# SPDX-License-Identifier: GPL-3.0-or-later\n"
        head += f"# inventories/two-sparks: the start file of {host}, {case}\n"
        if os.environ.get("UPDATE_GOLDEN"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(head + text)
        assert file.read_text() == head + text


def test_role_hands_every_option_to_the_module() -> None:
    """What is rendered here is what the role writes: it hands over the same options by name."""
    tasks = yaml.safe_load((ROOT / "roles/engine/tasks/stage.yml").read_text())
    (written,) = (task["gb10.vllm.release"] for task in tasks if "gb10.vllm.release" in task)
    described = yaml.safe_load((ROOT / "roles/engine/vars/main.yml").read_text())["__vllm_release"]
    assert written == {name: f"{{{{ __vllm_release.{name} }}}}" for name in described}
