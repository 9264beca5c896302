# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sweep on the copy's own host: what is there, one run of vLLM's bench client, and the files that are kept.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of the module `sweep`.

`<folder>/<id>/plan.json` and `runs/<run>.json`, each written in one piece when it is complete. `<folder>/lengths.json` has the lengths
that were taken from an engine's histograms, by its start: after a sweep they would be the sweep's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _host, _http, _loads, _sweep, _sweep_mix, _sweep_plan
from ansible_collections.gb10.vllm.plugins.module_utils._memory.cache_info import read_cache_info
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.reading import histogram_of
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

FOLDER = "/var/lib/gb10-vllm/sweeps"
# Whether the image has the client, and what it does not know of the words given: options and kinds of prompts, or pandas.
_PROBE = """
import importlib.util, pathlib, sys
client = importlib.util.find_spec("vllm.benchmarks.serve")
if client is None:
    sys.exit("vllm.benchmarks.serve")
source = "".join(path.read_text() for path in pathlib.Path(client.origin).parent.rglob("*.py"))
known = lambda word: importlib.util.find_spec(word) if word == "pandas" else f'"{word}"' in source
sys.exit(", ".join(word for word in sys.argv[1:] if not known(word)) or 0)
"""


def tokenizer(record: Mapping[str, Any]) -> tuple[str, str]:
    """Where the model's tokenizer is inside the container, and on the host.

    Raises:
        SweepError: it is not on this host.
    """
    model, revision = record["model"], record.get("revision") or "main"
    sources = {volume.split(":")[1]: volume.split(":")[0] for volume in record["volumes"]}
    if model.startswith("/"):
        mounts = [target for target in sources if model == target or model.startswith(f"{target}/")]
        place = sources[max(mounts, key=len)] + model[len(max(mounts, key=len)) :] if mounts else model
        inside = model
    else:
        repository = f"hub/models--{model.replace('/', '--')}"
        home = sources.get(_sweep_plan.HUB, "")
        reference = Path(home, repository, "refs", revision)
        commit = reference.read_text().strip() if reference.is_file() else revision
        inside, place = (f"{root}/{repository}/snapshots/{commit}" for root in (_sweep_plan.HUB, home))
    if not any(os.path.isfile(f"{place}/{name}") for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json")):
        raise SweepError(f"the tokenizer of {model} is not on this host: {place} has none of its files")
    return inside, place


def look(options: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The release that runs, with `tokenizer` and `bench_image`, and what is missing on this host for a sweep of it."""
    missing: list[str] = []
    record = _host.read_json(f"{options['base_dir']}/current/release.json")
    if record is None:
        raise SweepError(f"this host has no current release ({options['base_dir']}/current): run cutover.yml first")
    if record["rank"] != 0:
        missing.append(
            f"this host is rank {record['rank']} of a pair and has no HTTP port: measure on the pair's first host"
        )
    answer = _http.get(f"http://127.0.0.1:{record['port']}/health", timeout=5)
    if answer.status != 200:
        missing.append(f"the engine on port {record['port']} is not healthy ({answer.status or answer.problem})")
    place = ""
    try:
        place = tokenizer(record)[0]
    except SweepError as error:
        missing.append(str(error))
    return {**record, "tokenizer": place, "bench_image": options["image"] or record["image"]}, missing


def lacks(plan: Mapping[str, Any], words: Sequence[str]) -> str:
    """Why the client cannot run in this image, empty when it can. Starts a container that ends at once."""
    image = plan["bench_image"]
    if _host.run(["docker", "image", "inspect", image], check=False).returncode:
        return f"the image {image} is not on this host, and nothing is fetched from a network"
    command = _sweep_plan.container(image, plan["volumes"], "/tmp", plan["options"])
    command[command.index("--name") + 1] += "-look"
    command[command.index("--entrypoint") + 1] = "python3"
    probe = _host.run([*command, "-c", _PROBE, *words], timeout=120, check=False)
    if not probe.returncode:
        return ""
    said = (probe.stderr.strip().splitlines() or ["no message"])[-1]
    return (
        f"vLLM's bench client in the image {image} lacks {said}: name an image that has it with vllm_tune_image"
        f"{', or give the mix as lengths' if said == 'pandas' else ''}"
    )


def key_of(options: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The API key, from the option or from the engine's own secrets."""
    if options["api_key"] or not record.get("secrets_file") or not os.path.isfile(record["secrets_file"]):
        return str(options["api_key"])
    lines = Path(record["secrets_file"]).read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith("VLLM_API_KEY=")), "")


def own_lengths(options: Mapping[str, Any], record: Mapping[str, Any], key: str, write: bool) -> list[dict[str, Any]]:
    """The mix that this engine has served since its start, before anybody swept it.

    Raises:
        SweepError: the engine does not say, or has served too little.
    """
    kept = Path(options["folder"], "lengths.json")
    start = _host.unit_state().get("InvocationID", "")
    known = _host.read_json(str(kept)) or {}
    if start and start in known:
        return list(known[start])
    answer = _http.get(f"http://127.0.0.1:{record['port']}/metrics", 10, key)
    try:
        found = [histogram_of(answer.body, name) for name in (_sweep_mix.PROMPT, _sweep_mix.GENERATION)]
    except MetricsError as error:
        raise SweepError(f"the request histograms cannot be read: {error}") from error
    prompt, generation = found
    if prompt is None or generation is None:
        raise SweepError(
            f"the engine shows no {_sweep_mix.PROMPT}, so its traffic is not known: say the mix yourself (vllm_tune_lengths or vllm_tune_prompts)"
        )
    lengths = _sweep_mix.lengths(prompt, generation, int(record.get("max_model_len") or 0))
    if write and start:
        kept.parent.mkdir(parents=True, exist_ok=True)
        _host.write_atomically(str(kept), json.dumps({start: lengths}, indent=1) + "\n")
    return lengths


def engine_facts(record: Mapping[str, Any], key: str, loads_file: str) -> dict[str, Any]:
    """What else is said of the copy: its KV cache and how long its last load took; None where it is not known."""
    answer = _http.get(f"http://127.0.0.1:{record['port']}/metrics", 10, key)
    caches = read_cache_info(answer.body) if answer.status == 200 else ()
    load = _loads.read(loads_file).get(record["id"], {})
    return {
        "kv_tokens": sum(cache.tokens or 0 for cache in caches) or None,
        "full_requests": round(sum(cache.concurrency or 0 for cache in caches), 2) or None,
        "load_seconds": load.get("warm") or load.get("cold"),
        "load_seconds_cold": load.get("cold"),
    }


def read_plan(folder: str) -> dict[str, Any] | None:
    return _host.read_json(f"{folder}/plan.json")


def begin(folder: str, plan: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what will be measured; from here on nothing of it changes."""
    os.makedirs(f"{folder}/runs", mode=0o755, exist_ok=True)
    whole = {**plan, "salt": secrets.token_hex(8), "began": round(time.time(), 3)}
    _host.write_atomically(f"{folder}/plan.json", json.dumps(whole, indent=1, sort_keys=True) + "\n")
    return whole


def put_aside(folder: str) -> None:
    """An earlier sweep of the same wish stays, under the time it began."""
    before = read_plan(folder)
    if before is not None:
        os.rename(folder, f"{folder}.{before['began']:.0f}")


def measured(folder: str, wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The runs that are there, in their order."""
    found = (_host.read_json(f"{folder}/runs/{_sweep_plan.file_name(run)}") for run in wanted)
    return [run for run in found if run is not None]


def end_client() -> bool:
    """Take away a client that an interrupted run has left; whether there was one."""
    there = _host.container_state(_sweep_plan.CONTAINER) is not None
    if there:
        _host.run(["docker", "rm", "--force", _sweep_plan.CONTAINER], check=False)
    return there


def measure(folder: str, plan: Mapping[str, Any], run: Mapping[str, Any], key: str, seconds: float) -> dict[str, Any]:
    """One run, whole; it is on the disk when this returns.

    Raises:
        SweepError: the client could not measure, or the engine is gone; nothing is kept of the run then.
    """
    work, began = f"{folder}/work", time.monotonic()
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work, mode=0o755)
    shape = next(shape for shape in plan["shapes"] if shape["name"] == run["shape"])
    _write_prompts(work, plan, shape, run)
    command = _sweep_plan.container(plan["bench_image"], plan["volumes"], work, plan["options"])
    command += _sweep_plan.client(shape, run, plan["settings"], _sweep_plan.seed_of(plan["salt"], run))
    end_client()
    status = _start(command, f"{work}/log", key, seconds)
    port = plan["settings"]["port"]
    healthy = _http.get(f"http://127.0.0.1:{port}/health", timeout=10).status == 200
    if not healthy:
        raise SweepError(
            f"the engine on port {port} is not healthy any more after {_say(run)}; look at journalctl --unit vllm"
        )
    if status is None:
        found: dict[str, Any] = {"error": f"it did not end within {seconds:.0f} s (vllm_tune_point_seconds)"}
    else:
        result = _host.read_json(f"{work}/result.json") if os.path.isfile(f"{work}/result.json") else None
        if status or result is None:
            lines = Path(f"{work}/log").read_text(errors="replace").strip().splitlines()
            raise SweepError(
                f"vLLM's bench client failed ({status}) at {_say(run)}: {' | '.join(lines[-3:]) or 'no output'}"
            )
        found = {"error": "", **_sweep.read_result(result)}
    whole = {**run, **found, "time": round(time.time(), 3), "took": round(time.monotonic() - began, 1)}
    _host.write_atomically(f"{folder}/runs/{_sweep_plan.file_name(run)}", json.dumps(whole, indent=1) + "\n")
    shutil.rmtree(work, ignore_errors=True)
    return whole


def _say(run: Mapping[str, Any]) -> str:
    return f"{run['shape']}, {run['concurrency']} at once"


def check_prompts(shape: Mapping[str, Any]) -> None:
    """Read the owner's prompts once, before anything is sent."""
    _sweep_mix.read_prompts(Path(shape["prompts"]).read_text(), shape["output"])


def _write_prompts(work: str, plan: Mapping[str, Any], shape: Mapping[str, Any], run: Mapping[str, Any]) -> None:
    if "input" in shape:
        return
    count = _sweep_plan.prompts_of(int(run["concurrency"]), plan["settings"])
    seed = f"{plan['salt']}/{_sweep_plan.file_name(run)}"
    if "prompts" in shape:
        known = _sweep_mix.read_prompts(Path(shape["prompts"]).read_text(), shape["output"])
        prompts = _sweep_mix.of_file(known, count, seed)
    else:
        prompts = _sweep_mix.of_lengths(shape["lengths"], count, seed)
    Path(work, "prompts.jsonl").write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))


def _start(command: Sequence[str], log: str, key: str, seconds: float) -> int | None:
    """Run the client; its exit status, or None when it had to be ended. The key is in its environment only."""
    environment = {**os.environ, "OPENAI_API_KEY": key or "none"}
    with open(log, "wb") as stream:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, env=environment)
        try:
            return process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                with contextlib.suppress(_host.HostError):
                    end_client()
                process.kill()
                process.wait()
