# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a sweep measures, its name, and the command of each run."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _sweep_plan
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

SHORT = {"short": {"input": 128, "output": 64}}
COMMAND = [["serve", "/models/tiny"], ["--max-num-seqs", "8"], ["--trust-remote-code"], ["--dtype=auto"]]
SETTINGS = {
    "port": 8000, "served_model_name": "tiny", "tokenizer": "/models/tiny", "trust_remote_code": False,
    "warmups": 1, "least_prompts": 20, "prompts_per_slot": 5,
}  # fmt: skip


def test_shapes_and_the_mix_last() -> None:
    found = _sweep_plan.shapes({**SHORT, "long": {"input": 4096, "output": 256}}, {"prompts": "/p.jsonl", "output": 99})
    assert [(shape["name"], shape["own"]) for shape in found] == [("short", False), ("long", False), ("mix", True)]
    assert found[2]["prompts"] == "/p.jsonl"


@pytest.mark.parametrize(
    ("shapes", "mix", "why"),
    [
        ({}, {}, "nothing to measure"),
        ({"mix": {"input": 1, "output": 1}}, {}, "not the name mix"),
        ({"Short Ones": {"input": 1, "output": 1}}, {}, "small letters"),
        ({"short": {"input": 0, "output": 1}}, {}, "shape short has input 0"),
        ({"short": {"input": 1}}, {}, "shape short has output None"),
        ({"short": 5}, {}, "shape short has input None"),
        ({}, {"prompts": "/p", "output": 1, "histograms": True}, "by prompts and by histograms"),
        ({}, {"lengths": [{"input": 1, "output": 1, "weight": 0}]}, "weight 0"),
        ({}, {"lengths": [{"input": 1, "output": "2"}]}, "output '2'"),
    ],
)
def test_wishes_that_cannot_be_measured(shapes: dict[str, Any], mix: dict[str, Any], why: str) -> None:
    with pytest.raises(SweepError, match=why):
        _sweep_plan.shapes(shapes, mix)


def test_the_mix_in_words() -> None:
    (mix,) = _sweep_plan.shapes(
        {}, {"lengths": [{"input": 100, "output": 20, "weight": 3}, {"input": 900, "output": 50}]}
    )
    assert mix["words"] == "prompt+answer tokens 100+20 (75%), 900+50 (25%)"


@pytest.mark.parametrize(("most", "refused"), [(0, False), (208, False), (207, True)])
def test_a_shape_that_the_engine_would_refuse(most: int, refused: bool) -> None:
    (shape,) = _sweep_plan.shapes(SHORT, {})
    assert bool(_sweep_plan.too_long(shape, most)) == refused


def test_more_than_the_engine_takes_at_once_is_left_out() -> None:
    assert _sweep_plan.concurrencies([16, 1, 8, 4, 8], 8) == ([1, 4, 8], [16])
    assert _sweep_plan.concurrencies([16, 1], 0) == ([1, 16], [])
    with pytest.raises(SweepError, match="takes 8 requests at once"):
        _sweep_plan.concurrencies([12, 16], 8)
    with pytest.raises(SweepError, match="whole numbers from 1 on"):
        _sweep_plan.concurrencies([0, 4], 8)


def test_every_point_is_measured_once_before_any_is_measured_again() -> None:
    shapes = _sweep_plan.shapes({**SHORT, "long": {"input": 9, "output": 9}}, {})
    found = _sweep_plan.runs(shapes, [1, 2], 2)
    assert len(found) == 8
    assert [run["repeat"] for run in found] == [1] * 4 + [2] * 4
    assert len({_sweep_plan.file_name(run) for run in found}) == 8


def test_the_same_wish_is_the_same_sweep() -> None:
    assert _sweep_plan.identity("r-1", {"a": 1, "b": [2]}) == _sweep_plan.identity("r-1", {"b": [2], "a": 1})
    assert len({_sweep_plan.identity(release, {"a": wish}) for release in "rs" for wish in (1, 2)}) == 4


def test_arguments_of_the_release() -> None:
    assert _sweep_plan.max_num_seqs(COMMAND) == 8
    assert _sweep_plan.max_num_seqs(COMMAND[:1]) == 0
    assert _sweep_plan.argument(COMMAND, "--trust-remote-code") == ""
    assert _sweep_plan.argument(COMMAND, "--dtype") == "auto"
    assert _sweep_plan.argument(COMMAND, "--port") is None


def test_models_are_mounted_read_only_and_caches_not_at_all() -> None:
    found = _sweep_plan.volumes(
        ["/hf:/root/.cache/huggingface", "/cache/vllm:/root/.cache/vllm", "/m:/m:ro", "/data:/data:rw"],
        ["/m:/m:ro", "/x:/x"],
    )
    assert found == ["/hf:/root/.cache/huggingface:ro", "/m:/m:ro", "/data:/data:ro", "/x:/x"]


def test_the_client_is_a_container_of_its_own_without_network_access_to_models() -> None:
    command = _sweep_plan.container("image@sha256:1", ["/m:/m:ro"], "/work")
    text = " ".join(command)
    assert command[:3] == ["docker", "run", "--rm"]
    assert "--gpus" not in text
    assert "--pull never" in text
    assert "--env HF_HUB_OFFLINE=1" in text
    assert "--env OPENAI_API_KEY " in text, "the key itself is never on a command line"
    assert text.endswith("--volume /m:/m:ro --volume /work:/sweep --entrypoint vllm image@sha256:1")
    assert "--gpus=all --entrypoint" in " ".join(_sweep_plan.container("image", [], "/work", ["--gpus=all"]))


def client(shape: dict[str, Any], concurrency: int = 8, **settings: Any) -> str:
    run = {"shape": shape["name"], "concurrency": concurrency, "repeat": 1}
    return " ".join(_sweep_plan.client(shape, run, {**SETTINGS, **settings}, 7))


def test_the_clients_arguments() -> None:
    short, mix = _sweep_plan.shapes(SHORT, {"lengths": [{"input": 5, "output": 6}]})
    (own,) = _sweep_plan.shapes({}, {"prompts": "/p", "output": 5})
    text = client(short)
    assert "--base-url http://127.0.0.1:8000 --model tiny --tokenizer /models/tiny --max-concurrency 8 --seed 7" in text
    assert "--num-prompts 40 --num-warmups 8" in text
    assert text.endswith("--dataset-name random --random-input-len 128 --random-output-len 64")
    assert "--num-prompts 20 --num-warmups 1" in client(short, 1)
    assert "--trust-remote-code" in client(short, trust_remote_code=True)
    assert client(mix).endswith("--dataset-name timed_trace --timed-trace-chunk-hash-size 64 --no-self-timed")
    assert client(own).endswith("--dataset-path /sweep/prompts.jsonl --dataset-name custom --custom-output-len -1")


def test_what_the_image_has_to_know() -> None:
    short, mix = _sweep_plan.shapes(SHORT, {"lengths": [{"input": 5, "output": 6}]})
    (own,) = _sweep_plan.shapes({}, {"prompts": "/p", "output": 5})
    words = _sweep_plan.needs([short, mix], SETTINGS)
    assert {"--ignore-eos", "--num-warmups", "--self-timed", "random", "timed_trace"} <= set(words)
    assert "pandas" not in words, "only a file of prompts is read with it"
    assert {"custom", "pandas"} <= set(_sweep_plan.needs([own], SETTINGS))


def test_every_run_has_other_prompts() -> None:
    runs = _sweep_plan.runs(_sweep_plan.shapes(SHORT, {}), [1, 2, 4], 3)
    assert len({_sweep_plan.seed_of(salt, run) for run in runs for salt in ("a", "b")}) == 18
