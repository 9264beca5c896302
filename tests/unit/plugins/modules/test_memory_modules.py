# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge of the memory plan: what the modules read of a host, and what they keep."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _http, _memory_host
from ansible_collections.gb10.vllm.plugins.module_utils._memory import holders
from ansible_collections.gb10.vllm.plugins.module_utils._memory.units import from_gib
from ansible_collections.gb10.vllm.plugins.modules import memory_info, memory_record, weights_info

GIB = 1 << 30
OUR_ID = "a" * 64
RECORD = {
    "id": "replicated-1", "digest": "d" * 64, "model": "org/model", "revision": "", "topology": "replicated", "rank": 0, "ranks": 1,
    "port": 8000, "command": [["serve", "org/model"], ["--max-model-len", "2048"], ["--gpu-memory-utilization", "0.06"]],
}  # fmt: skip
LOG = """(APIServer pid=1) INFO 11-29 10:00:00 [utils.py:299] █▄█▀ version 0.32.0
(Worker pid=31) INFO 11-29 18:58:15 [cpu_worker.py:260] Auto set (0.47/16.71) GiB for KV cache on node 0, with 1.0 GiB requested memory
(EngineCore pid=22) INFO 11-29 18:58:15 [kv_cache_utils.py:2327] CPU KV cache size: 246,144 tokens, Maximum concurrency for 2,048 tokens per request: 120.19x
"""
METRICS = 'vllm:cache_config_info{engine="0",block_size="128",num_gpu_blocks="1923",kv_cache_size_tokens="246144",kv_cache_max_concurrency="120.1875"} 1.0\n'


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A host on which an engine was started; the parts of it can be changed."""
    said = {"log": LOG, "metrics": METRICS, "invocation": "i1", "active": "active"}

    def state() -> dict[str, str]:
        return {"ActiveState": said["active"], "InvocationID": said["invocation"]}

    monkeypatch.setattr(_host, "unit_state", state)
    monkeypatch.setattr(_host, "linked_release", lambda _base, _link: "replicated-1")
    monkeypatch.setattr(_memory_host, "log_of_start", lambda _invocation: said["log"].splitlines())
    monkeypatch.setattr(_http, "get", lambda *_words, **_more: _http.Answer(200, said["metrics"]))
    return said


def options(folder: Path, **more: Any) -> dict[str, Any]:
    return {
        "record": RECORD,
        "base_dir": "/none",
        "state_dir": str(folder),
        "planned_requests": None,
        "shortfall": 0.15,
        "host": "h",
        **more,
    }


def test_a_start_is_kept_once(started: dict[str, Any], tmp_path: Path) -> None:
    found = memory_record.look(options(tmp_path, planned_requests=100.0), check_mode=False)
    assert (found["changed"], found["verdict"], found["share"]) == (True, "ok", 1.2019)
    kept = json.loads(Path(found["file"]).read_text())
    assert kept["starts"][0]["kv_bytes"] == from_gib(0.47)
    assert kept["starts"][0]["total_bytes"] == from_gib(16.71)
    assert kept["starts"][0]["release"] == "replicated-1"
    again = memory_record.look(options(tmp_path, planned_requests=100.0), check_mode=False)
    assert not again["changed"]
    assert _memory_host.stored(str(tmp_path)) == [kept]


def test_check_mode_keeps_nothing(started: dict[str, Any], tmp_path: Path) -> None:
    assert memory_record.look(options(tmp_path), check_mode=True)["changed"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("log", "planned", "verdict"),
    [
        (LOG, 140.0, "ok"),
        (LOG, 150.0, "short"),
        (LOG, None, "ok"),
        (LOG + "Estimated CUDA graph memory: -4.74 GiB total\n", None, "negative"),
        (LOG.replace("(0.47/", "(-0.10/"), 100.0, "negative"),
        ("nothing\n", 100.0, "unmeasured"),
    ],
    ids=["above the limit", "below it", "nothing planned", "negative graphs", "negative budget", "silent"],
)
def test_verdicts(started: dict[str, Any], tmp_path: Path, log: str, planned: float | None, verdict: str) -> None:
    started["log"] = log
    found = memory_record.look(options(tmp_path, planned_requests=planned), check_mode=False)
    assert found["verdict"] == verdict
    assert Path(found["file"]).exists()


def test_without_a_plan_the_last_good_start_is_what_counts(started: dict[str, Any], tmp_path: Path) -> None:
    assert memory_record.look(options(tmp_path), check_mode=False)["share"] is None
    started.update(invocation="i2", log=LOG.replace("120.19x", "60.00x"), metrics="")
    found = memory_record.look(options(tmp_path), check_mode=False)
    assert (found["verdict"], found["figures"]["planned_requests"]) == ("short", 120.1875)


def test_arguments_that_no_plan_can_read_do_not_keep_a_good_engine_away(
    started: dict[str, Any], tmp_path: Path
) -> None:
    record = {**RECORD, "command": [["serve", "m"], ["--max-model-len", "auto"]]}
    found = memory_record.look(options(tmp_path, record=record), check_mode=False)
    assert (found["verdict"], found["figures"]["max_model_len"]) == ("ok", 2048)
    assert not found["figures"]["requested_bytes"]


def test_nothing_is_measured_where_nothing_runs(started: dict[str, Any], tmp_path: Path) -> None:
    started["active"] = "inactive"
    with pytest.raises(_host.HostError, match="no engine runs"):
        memory_record.look(options(tmp_path), check_mode=False)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A GB10 with an engine, a database, and small services."""
    parts = [
        holders.Process(1, "systemd", "0::/init.scope\n", 20 << 20),
        holders.Process(10, "vllm", f"0::/system.slice/docker-{OUR_ID}.scope\n", 2 * GIB, 90 * GIB),
        holders.Process(11, "docker", "0::/system.slice/vllm.service\n", 30 << 20),
        holders.Process(12, "postgres", "0::/system.slice/postgresql.service\n", 3 * GIB),
    ]
    found = {"parts": parts, "gpu": True, "state_dir": str(tmp_path)}
    meminfo = {"MemTotal": 121 * GIB, "MemFree": 2 * GIB, "MemAvailable": 20 * GIB, "AnonPages": 6 * GIB}
    monkeypatch.setattr(_memory_host, "container_names", lambda: {OUR_ID: "vllm"})
    monkeypatch.setattr(_memory_host, "processes", lambda _device: found["parts"])
    monkeypatch.setattr(_memory_host, "device_bytes", dict)
    monkeypatch.setattr(_memory_host, "meminfo", lambda: meminfo)
    monkeypatch.setattr(_memory_host, "has_gpu", lambda: found["gpu"])
    monkeypatch.setattr(_memory_host, "total_of_image", lambda _image, _options: None)
    return found


def look(machine: dict[str, Any], **more: Any) -> dict[str, Any]:
    asked = {
        "state_dir": machine["state_dir"],
        "image": "",
        "container_options": [],
        "sample_seconds": 0,
        "sample_interval": 1,
        "gives_back": [],
    }
    return memory_info.look({**asked, **more})


def test_what_the_engine_gives_back_and_what_others_hold(machine: dict[str, Any]) -> None:
    found = look(machine)
    assert found["engine"]["gives_back_bytes"] == 92 * GIB + (30 << 20)
    assert found["engine"]["source"] == "processes"
    assert [(one["name"], one["bytes"], one["process"], one["pid"]) for one in found["others"]] == [
        ("postgresql.service", 3 * GIB, "postgres", 12)
    ]
    assert found["system_bytes"] == 20 << 20
    assert (found["total_bytes"], found["total_source"]) == (121 * GIB, "MemTotal")


def test_gpu_memory_that_no_process_is_listed_with_is_taken_for_the_engines(machine: dict[str, Any]) -> None:
    machine["parts"][1] = holders.Process(10, "vllm", f"0::/system.slice/docker-{OUR_ID}.scope\n", 2 * GIB)
    found = look(machine)["engine"]
    assert (found["device_bytes"], found["source"]) == (113 * GIB, "unaccounted")
    del machine["parts"][1:3]
    assert look(machine)["engine"] == {
        "running": False, "process_bytes": 0, "device_bytes": 0, "gives_back_bytes": 0, "source": "none"
    }  # fmt: skip


def test_what_a_rollout_stops_too_is_given_back(machine: dict[str, Any]) -> None:
    found = look(machine, gives_back=["postgresql.service"])
    assert found["engine"]["gives_back_bytes"] == 95 * GIB + (30 << 20)
    assert found["others"] == []


@pytest.mark.parametrize(("seen", "total"), [(121.69, (121.69, "last start")), (64.0, (121, "MemTotal"))])
def test_the_total_of_the_last_start_unless_the_machine_changed(
    machine: dict[str, Any], seen: float, total: tuple[float, str]
) -> None:
    content = {"starts": [{"began": 1, "total_bytes": from_gib(seen)}]}
    _memory_host.keep(machine["state_dir"], "x.json", content)
    found = look(machine)
    assert (found["total_bytes"], found["total_source"]) == (from_gib(total[0]), total[1])
    assert found["measured"] == [content]


@pytest.mark.parametrize(
    ("status", "said", "total"), [(0, "130663550976\n", 130663550976), (1, "", None), (0, "noise\n", None)]
)
def test_the_image_is_asked_only_where_there_is_a_gpu(
    monkeypatch: pytest.MonkeyPatch, status: int, said: str, total: int | None
) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_more: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, status, said, "")

    monkeypatch.setattr(_host, "run", run)
    monkeypatch.setattr(_memory_host, "has_gpu", lambda: False)
    assert _memory_host.total_of_image("image@sha256:1", ["--gpus=all", "--network=host"]) is None
    assert asked == []
    monkeypatch.setattr(_memory_host, "has_gpu", lambda: True)
    assert _memory_host.total_of_image("image@sha256:1", ["--gpus=all", "--network=host"]) == total
    assert asked[0][:6] == ["docker", "run", "--rm", "--pull=never", "--network=none", "--gpus=all"]
    compile(asked[0][-1], "script", "exec")


def test_weights_with_and_without_draft_layers_and_without_what_stays_on_disk(tmp_path: Path) -> None:
    names = {
        "model.layers.0.mlp.weight": 4,
        "model.layers.1.ple.ple_embedding.ngram_embedding.shard_0.weight": 1000,
        "mtp.fc.weight": 6,
    }
    header, end = {}, 0
    for name, size in names.items():
        header[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
    (tmp_path / "config.json").write_text('{"num_hidden_layers": 2}')
    found = weights_info.sizes(tmp_path, True, [r"\.ngram_embedding\."], True)
    assert (found["weights"]["bytes"], found["weights"]["bytes_drafting"]) == (4, 10)
    assert "1000 bytes are not loaded" in found["weights"]["note"]
    assert found["config"] == {"num_hidden_layers": 2}
    assert weights_info.sizes(tmp_path, False, [], True)["weights"] is None
    assert weights_info.sizes(None, False, [], True)["config"] is None
