# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs inside the engine's own tree: starts one engine after the other and prints what each says of its cache.

The arguments are two JSON lists: options of ``vllm.LLM``, and the models' architectures. The libraries are loaded once; every
engine is a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

import vllm

NAMES = ("block_size", "num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency", "kv_cache_memory_bytes")


def figures(options: dict[str, Any]) -> dict[str, Any]:
    engine = vllm.LLM(load_format="dummy", enforce_eager=True, max_num_seqs=8, skip_tokenizer_init=True, **options)
    config = engine.llm_engine.vllm_config
    found = {name: getattr(config.cache_config, name, None) for name in NAMES}
    return {**found, "version": vllm.__version__, "batched_tokens": config.scheduler_config.max_num_batched_tokens}


def main() -> None:
    cases, architectures = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    for name in architectures:
        # loaded here once, or every engine would start a process of its own to look at the class
        vllm.ModelRegistry.register_model(name, vllm.ModelRegistry.models[name].load_model_cls())
    for number, options in enumerate(cases):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                print(f"FIGURES {number} {json.dumps(figures(options))}", flush=True)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
