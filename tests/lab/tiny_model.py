# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of the lab: trained once with the engine's own torch, or an empty shell of it for the stand-in engine."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import engine_site
import trees
from settings import ENGINE_IN_HOST, FOLDERS, PYTHON, SOURCE
from shell import content_key, remove_leftovers, remove_tree, step, write_atomically

TRAINER = SOURCE / "tiny_model_training.py"


def trained() -> Path:
    return FOLDERS.cache / "models" / content_key(engine_site.key(), TRAINER.read_bytes())


def train() -> None:
    target = trained()
    if target.exists():
        return
    with step("tiny model trained"):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent, ".new-*")
        candidate = target.with_name(f".new-{target.name}")
        candidate.mkdir()
        shutil.copy(TRAINER, candidate / "train.py")
        binds = {FOLDERS.engines: ENGINE_IN_HOST, candidate: "/models"}
        command = ["env", f"PYTHONPATH={ENGINE_IN_HOST}/current/site-packages", f"python{PYTHON}", "/models/train.py",
                   "/models"]  # fmt: skip
        trees.run_inside(command, binds, FOLDERS.cache / "logs" / "model.log", timeout=300)
        (candidate / "train.py").unlink()
        candidate.rename(target)


def provide() -> None:
    """Put the best model there is where the hosts see it; running hosts see the new one too."""
    real = trained()
    key = real.name if real.exists() else content_key(_shell_weights())
    marker, place = FOLDERS.run / "model.key", FOLDERS.models / "tiny"
    if place.exists() and marker.exists() and marker.read_text() == key:
        return
    candidate = FOLDERS.models / ".new-tiny"
    remove_tree(candidate)
    if real.exists():
        shutil.copytree(real, candidate)
    else:
        candidate.mkdir(parents=True)
        write_shell(candidate)
    remove_tree(place)
    candidate.rename(place)
    write_atomically(marker, key)


def write_shell(folder: Path) -> None:
    """What a model folder looks like from outside: enough for all who do not compute with it."""
    configuration = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "bfloat16", "hidden_size": 128,
        "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
        "head_dim": 64, "max_position_embeddings": 2048, "vocab_size": 512,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(configuration, indent=2) + "\n")
    (folder / "model.safetensors").write_bytes(_shell_weights())


def _shell_weights() -> bytes:
    size = 512 * 128 * 2
    header = json.dumps(
        {"model.embed_tokens.weight": {"dtype": "BF16", "shape": [512, 128], "data_offsets": [0, size]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)
