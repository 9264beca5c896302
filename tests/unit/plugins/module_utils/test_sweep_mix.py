# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The owner's mix: lengths from histograms, prompts of given lengths, prompts of a file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _sweep_mix
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.reading import histogram_of
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError
from ansible_collections.gb10.vllm.plugins.module_utils._sweep import SweepError

BOUNDS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]


def histogram(values: list[int]) -> dict[str, Any]:
    counts = [sum(value <= bound for value in values) for bound in BOUNDS]
    return {"bounds": BOUNDS, "counts": counts, "count": len(values), "sum": float(sum(values))}


def mean(groups: list[tuple[int, float]]) -> float:
    return sum(value * weight for value, weight in groups)


@pytest.mark.parametrize(
    "values",
    [
        [150] * 100,
        [30] * 60 + [150] * 30 + [4000] * 10,
        list(range(1, 3000, 7)),
        [15] * 99 + [9000],
        [700, 3] * 40,
    ],
)
def test_groups_have_the_exact_mean_and_whole_weight(values: list[int]) -> None:
    found = _sweep_mix.groups(histogram(values))
    assert 1 <= len(found) <= _sweep_mix.GROUPS
    assert sum(weight for _value, weight in found) == pytest.approx(1)
    assert mean(found) == pytest.approx(sum(values) / len(values), rel=0.02, abs=1)
    assert [value for value, _weight in found] == sorted(value for value, _weight in found)


def test_short_middle_and_long_prompts_are_told_apart() -> None:
    found = _sweep_mix.groups(histogram([30] * 40 + [300] * 30 + [3000] * 30))
    assert [round(weight, 2) for _value, weight in found] == [0.4, 0.3, 0.3]
    assert found[0][0] < 60
    assert 200 < found[1][0] < 600
    assert found[2][0] > 2000


def test_each_prompt_length_goes_with_each_answer_length() -> None:
    found = _sweep_mix.lengths(histogram([30] * 50 + [3000] * 50), histogram([80] * 100), 262144)
    assert [length["weight"] for length in found] == [0.5, 0.5]
    assert sum(length["input"] * length["weight"] for length in found) == pytest.approx(1515, rel=0.01)
    assert {length["output"] for length in found} == {80}


def test_too_little_traffic_is_no_mix() -> None:
    with pytest.raises(SweepError, match="answered 49 requests .*too few"):
        _sweep_mix.lengths(histogram([30] * 49), histogram([80] * 100), 0)


@pytest.mark.parametrize(
    ("wanted", "most", "found"),
    [
        ((100, 50), 0, (100, 50)),
        ((100, 50), 2048, (100, 50)),
        ((4000, 100), 2048, (1932, 100)),
        ((50, 4000), 2048, (1016, 1016)),
    ],
)
def test_lengths_are_cut_to_what_the_engine_takes(wanted: tuple[int, int], most: int, found: tuple[int, int]) -> None:
    assert _sweep_mix.fitted(*wanted, most) == found


MIX = [{"input": 100, "output": 20, "weight": 3}, {"input": 1000, "output": 200, "weight": 1}]


@pytest.mark.parametrize(("count", "long"), [(20, 5), (21, 5), (22, 5), (23, 6), (1, 0), (2, 0), (3, 1)])
def test_every_run_has_the_lengths_in_their_shares(count: int, long: int) -> None:
    found = _sweep_mix.apportion(MIX, count)
    assert len(found) == count
    assert sum(length["input"] == 1000 for length in found) == long


def test_prompts_of_lengths_are_new_for_each_seed_and_as_long_as_wanted() -> None:
    first, again, other = (_sweep_mix.of_lengths(MIX, 8, seed) for seed in ("a", "a", "b"))
    assert first == again
    assert (
        sorted((entry["input_length"], entry["output_length"]) for entry in first)
        == [(100, 20)] * 6 + [(1000, 200)] * 2
    )
    assert {len(entry["hash_ids"]) for entry in first if entry["input_length"] == 1000} == {16}, "64 tokens for each id"
    ids = [[number for entry in run for number in entry["hash_ids"]] for run in (first, other)]
    assert len({*ids[0], *ids[1]}) == len(ids[0]) + len(ids[1]), "nothing is twice, so no cache helps"


def test_a_file_of_prompts() -> None:
    text = (
        "Write a poem.\n\n"
        + json.dumps({"prompt": "{}", "output_tokens": 7})
        + "\n"
        + json.dumps({"prompt": "Sum up."})
    )
    assert _sweep_mix.read_prompts(text, 64) == [
        {"prompt": "Write a poem.", "output_tokens": 64},
        {"prompt": "{}", "output_tokens": 7},
        {"prompt": "Sum up.", "output_tokens": 64},
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n \n", "is empty"),
        ("fine\n{broken", "line 2 .* no JSON"),
        ('{"text": "x"}', "line 1 .* no text under the key prompt"),
        ('{"prompt": "x", "output_tokens": 0}', "output_tokens 0"),
        ('{"prompt": "x", "output_tokens": true}', "output_tokens True"),
    ],
)
def test_a_file_that_cannot_be_used(text: str, why: str) -> None:
    with pytest.raises(SweepError, match=why):
        _sweep_mix.read_prompts(text, 64)


def test_a_short_file_is_used_again_and_a_long_one_is_not() -> None:
    prompts = [{"prompt": str(number), "output_tokens": 1} for number in range(10)]
    assert len({prompt["prompt"] for prompt in _sweep_mix.of_file(prompts, 10, "a")}) == 10
    assert len(_sweep_mix.of_file(prompts, 25, "a")) == 25
    assert _sweep_mix.of_file(prompts, 5, "a") != _sweep_mix.of_file(prompts, 5, "b")


PAGE = """# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_bucket{engine="0",le="10.0"} 4.0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf"} 6.0
vllm:request_prompt_tokens_count{engine="0"} 6.0
vllm:request_prompt_tokens_sum{engine="0"} 300.0
vllm:request_prompt_tokens_bucket{engine="1",le="10.0"} 1.0
vllm:request_prompt_tokens_bucket{engine="1",le="+Inf"} 1.0
vllm:request_prompt_tokens_count{engine="1"} 1.0
vllm:request_prompt_tokens_sum{engine="1"} 5.0
"""


def test_the_histogram_of_a_metrics_page() -> None:
    assert histogram_of(PAGE, _sweep_mix.PROMPT) == {"bounds": [10.0], "counts": [5], "count": 7, "sum": 305.0}
    assert histogram_of(PAGE, _sweep_mix.GENERATION) is None
    with pytest.raises(MetricsError, match="does not add up"):
        histogram_of(PAGE.replace('_count{engine="1"} 1.0', '_count{engine="1"} 2.0'), _sweep_mix.PROMPT)
