# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module `sweep` with a docker that only writes a result: what is asked first, what is kept, what a broken run leaves.

The client itself, and the engine, are in tests/e2e/test_tune.py and test_tune_real.py.
"""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.modules import sweep

# Answers as docker does where the module asks it, and plays a client that is faster the more runs at once, up to 4.
DOCKER = r"""#!/usr/bin/env python3
import json, os, sys, time
words = sys.argv[1:]
with open(os.environ["ASKED"], "a") as stream:
    stream.write(json.dumps([words, os.environ.get("OPENAI_API_KEY", "")]) + "\n")
if words[0] == "inspect":
    sys.exit("Error: No such container")
if words[:2] == ["image", "inspect"]:
    sys.exit(0 if os.environ.get("HAS_IMAGE", "1") == "1" else 1)
if "-c" in words:
    sys.exit(os.environ.get("LACKS") or 0)
if words[0] == "rm":
    open(os.environ["ASKED"] + ".ended", "w").close()
    sys.exit(0)
value = lambda name: words[words.index(name) + 1]
number, prompts = int(value("--max-concurrency")), int(value("--num-prompts"))
fault = os.environ.get("FAULT", "")
if fault == "slow":
    time.sleep(60)
if fault == "broken" and number == 4:
    sys.exit("ValueError: no such tokenizer")
failed = 2 if fault == "failing" and number == 4 else 0
folder = next(word for word in words if word.endswith(":/sweep")).rsplit(":", 1)[0]
result = {"output_throughput": 30.0 * min(number, 4), "request_throughput": 1.0, "completed": prompts - failed, "failed": failed,
          "total_input_tokens": 10, "total_output_tokens": 10}
for name in ("ttft", "itl"):
    result.update({f"median_{name}_ms": 10.0 * number, f"p99_{name}_ms": 20.0 * number})
with open(folder + "/result.json", "w") as stream:
    json.dump(result, stream)
"""


class Engine(http.server.BaseHTTPRequestHandler):
    page = "vllm:other 1\n"

    def do_GET(self) -> None:
        body = self.page.encode() if self.path == "/metrics" else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *words: Any) -> None:
        """Quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def host(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose current release is a tiny model with an API key."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/docker").write_text(DOCKER)
    (tmp_path / "bin/docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setattr(_host, "unit_state", lambda unit="": {"InvocationID": "start-1"})
    (tmp_path / "model").mkdir()
    (tmp_path / "model/tokenizer.json").write_text("{}")
    (tmp_path / "engine.secrets").write_text("HF_TOKEN=x\nVLLM_API_KEY=secret-key\n")
    record = {
        "id": "replicated-0123456789ab", "rank": 0, "port": port, "model": "/models/tiny", "revision": "",
        "image": "image@sha256:1", "served_model_name": "tiny", "max_model_len": 2048, "topology": "replicated",
        "volumes": [f"{tmp_path}/hf:/root/.cache/huggingface", f"{tmp_path}/model:/models/tiny:ro"],
        "command": [["serve", "/models/tiny"], ["--max-num-seqs", "8"]], "secrets_file": str(tmp_path / "engine.secrets"),
    }  # fmt: skip
    (tmp_path / "etc/current").mkdir(parents=True)
    (tmp_path / "etc/current/release.json").write_text(json.dumps(record))
    return tmp_path


def options(host: Path, **more: Any) -> dict[str, Any]:
    return {"base_dir": str(host / "etc"), "folder": str(host / "sweeps"), "loads_file": str(host / "loads.json"),
            "shapes": {"short": {"input": 32, "output": 8}}, "concurrency": [1, 4, 8, 16], "repeats": 2, **more}  # fmt: skip


def clients(host: Path) -> list[Any]:
    """The runs of the client, with the key that was in its environment."""
    asked = [json.loads(line) for line in (host / "asked").read_text().splitlines()]
    return [(words, key) for words, key in asked if "bench" in words]


def test_a_whole_sweep_and_a_second_one_that_measures_nothing(host: Path, call: Any) -> None:
    first = call(sweep, **options(host, bound=64))
    assert (first["changed"], first["complete"], first["done"], first["left_out"]) == (True, True, 6, [16])
    assert first["proposal"]["max_num_seqs"] == 4
    assert first["shapes"][0]["knee"]["kind"] == "levels off"
    second = call(sweep, **options(host, bound=64))
    assert (second["changed"], second["id"]) == (False, first["id"])
    assert second["shapes"] == first["shapes"]
    assert len(clients(host)) == 6


def test_the_key_is_in_the_environment_and_nowhere_else(host: Path, call: Any) -> None:
    call(sweep, **options(host, concurrency=[1], repeats=1))
    ((words, key),) = clients(host)
    assert key == "secret-key"
    assert "secret-key" not in " ".join(words)
    kept = [path.read_text() for path in (host / "sweeps").rglob("*") if path.is_file()]
    assert kept
    assert "secret-key" not in "".join(kept)


def test_an_interrupted_sweep_goes_on_and_repeats_nothing(
    host: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(0, 1000, 5))
    monkeypatch.setattr(sweep, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    first = call(sweep, **options(host, slice_seconds=1))
    assert (first["done"], first["left"]) == (1, 5)
    found = call(sweep, **options(host))
    runs = [" ".join(words) for words, _key in clients(host)]
    assert found["complete"]
    assert len(runs) == len({run.split("--seed ")[1].split()[0] for run in runs}) == 6
    assert first["id"] == found["id"]


def test_a_run_that_was_cut_in_the_middle_is_measured_again(
    host: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULT", "broken")
    failed = call(sweep, **options(host))
    assert failed["failed"]
    assert "no such tokenizer" in failed["msg"]
    assert "short, 4 at once" in failed["msg"]
    monkeypatch.setenv("FAULT", "")
    assert call(sweep, **options(host))["complete"]
    assert len(clients(host)) == 7


def test_check_mode_measures_nothing_and_says_what_it_would(host: Path, call: Any) -> None:
    found = call(sweep, check_mode=True, **options(host))
    assert (found["changed"], found["left"], found["done"]) == (True, 6, 0)
    assert found["diff"]["after"].startswith("6 of 6 runs")
    assert clients(host) == []
    assert not (host / "sweeps").exists()


def test_again_keeps_the_earlier_runs_and_measures_others(host: Path, call: Any) -> None:
    call(sweep, **options(host))
    assert call(sweep, **options(host, again=True))["changed"]
    assert len(clients(host)) == 12
    assert len({" ".join(words).split("--seed ")[1].split()[0] for words, _key in clients(host)}) == 12
    assert len([path for path in (host / "sweeps").iterdir() if path.is_dir()]) == 2


def test_failed_requests_are_no_candidate(host: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "failing")
    found = call(sweep, **options(host, concurrency=[1, 4], repeats=1))
    assert found["proposal"]["max_num_seqs"] == 1
    assert "2 of 20 requests failed (at 4)" in found["proposal"]["reason"]


def test_a_run_that_takes_too_long_is_ended_and_noted(host: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAULT", "slow")
    monkeypatch.setitem(sweep.LEAST, "point_seconds", 1)
    found = call(sweep, **options(host, concurrency=[1], repeats=1, point_seconds=1))
    assert found["complete"], "it would only be too slow again"
    assert "did not end within 1 s" in found["proposal"]["reason"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"HAS_IMAGE": "0"}, "image image@sha256:1 is not on this host"),
        ({"LACKS": "pandas"}, "lacks pandas"),
        ({"model": "gone"}, "the tokenizer of /models/tiny is not on this host"),
        ({"health": "gone"}, "is not healthy"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_sent(
    host: Path, call: Any, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, str], why: str
) -> None:
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    if "model" in wrong:
        (host / "model/tokenizer.json").unlink()
    if "health" in wrong:
        path = host / "etc/current/release.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "port": 1}))
    found = call(sweep, check_mode=True, **options(host))
    assert found["failed"]
    assert why in found["msg"]
    assert found["msg"].startswith("nothing was measured, because something is missing")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"repeats": 0}, "repeats is 0"),
        ({"tolerance": 30}, "tolerance is 30"),
        ({"limits": {"ttft": 5}}, "limits has ttft"),
        ({"concurrency": [12]}, "takes 8 requests at once"),
        ({"shapes": {"long": {"input": 2000, "output": 100}}}, "more than the 2048"),
        ({"mix": {"histograms": True}}, "the engine shows no vllm:request_prompt_tokens"),
        ({"mix": {"prompts": "/nowhere", "output": 5}}, "file of prompts /nowhere"),
    ],
)
def test_wishes_that_cannot_be_measured(host: Path, call: Any, more: dict[str, Any], why: str) -> None:
    found = call(sweep, check_mode=True, **options(host, **more))
    assert found["failed"]
    assert why in found["msg"]


def page(count: int) -> str:
    lines = []
    for name in ("vllm:request_prompt_tokens", "vllm:request_generation_tokens"):
        lines += [
            f'{name}_bucket{{le="100.0"}} {count}',
            f'{name}_bucket{{le="+Inf"}} {count}',
            f"{name}_count {count}",
        ]
        lines.append(f"{name}_sum {count * 80}")
    return "\n".join(lines) + "\n"


def test_the_mix_of_the_histograms_stays_that_of_the_clients(
    host: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a sweep the histograms are full of the sweep itself; the same start keeps what was read before it."""
    monkeypatch.setattr(Engine, "page", page(200))
    wish = options(host, shapes={}, mix={"histograms": True}, concurrency=[1, 4], repeats=1)
    first = call(sweep, **wish)
    assert first["shapes"][0]["words"].endswith("prompt+answer tokens 80+80 (100%)")
    assert first["proposal"]["by"] == "mix"
    monkeypatch.setattr(Engine, "page", page(10))
    again = call(sweep, **{**wish, "concurrency": [1, 2]})
    assert again["shapes"][0]["words"] == first["shapes"][0]["words"]


def test_the_owners_prompts_reach_the_client(host: Path, call: Any) -> None:
    (host / "prompts").write_text("\n".join(f"question {number}" for number in range(50)))
    found = call(sweep, **options(host, shapes={}, mix={"prompts": str(host / "prompts"), "output": 16}, repeats=1))
    assert found["complete"]
    words = clients(host)[0][0]
    assert words[words.index("--dataset-name") + 1] == "custom"
    (host / "prompts").write_text("other questions")
    assert (
        call(
            sweep,
            check_mode=True,
            **options(host, shapes={}, mix={"prompts": str(host / "prompts"), "output": 16}, repeats=1),
        )["done"]
        == 0
    )


def test_a_left_over_client_is_taken_away(host: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_host, "container_state", lambda name: {"id": "1"})
    assert call(sweep, state="ended")["changed"]
    assert (host / "asked.ended").exists()
