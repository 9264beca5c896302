# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tool-call test before the real engine: calls that the engine forces, by the suite and by a command of the owner's.

The lab's model is too small to choose tools, so its score says nothing; that calls come in the right form, in both ways, does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

pytestmark = [pytest.mark.rotating, pytest.mark.usefixtures("real_copies")]

LENGTH = 8192
SITE = lab.Site(
    "real",
    {
        "vllm_topology": "replicated",
        # The suite offers a dozen tools at once, which are more tokens than the model was made for.
        "vllm_replicated_overrides": {
            "max-model-len": LENGTH,
            "hf-overrides": {"max_position_embeddings": LENGTH},
            "enable-auto-tool-choice": True,
            "tool-call-parser": "hermes",
        },
        "vllm_evaluation_against": "spark1",
        "vllm_evaluation_venv": sys.prefix,
        "vllm_evaluation_thinking": False,
        "vllm_evaluation_concurrency": 4,
    },
)
# What an owner would write: the share of forced calls that came as they should, and that is the score.
FORCED = """
import concurrent.futures, json, os, urllib.request

CITIES = ["Paris", "Tokyo", "Rome"]
PLACE = {"type": "object", "properties": {"city": {"type": "string", "enum": CITIES}}, "required": ["city"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": PLACE}}
STREAMED = os.environ["GB10_VLLM_STREAMED"] == "1"

def ask(seed):
    question = [{"role": "user", "content": "What is the weather in Paris?"}]
    choice = "required" if seed % 2 else {"type": "function", "function": {"name": "get_weather"}}
    body = {"model": os.environ["GB10_VLLM_MODEL"], "messages": question, "tools": [TOOL], "tool_choice": choice, "seed": seed,
            "temperature": 1, "max_tokens": 200, "parallel_tool_calls": False, "stream": STREAMED}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        if not STREAMED:
            calls = json.load(answer)["choices"][0]["message"]["tool_calls"]
            return json.loads(calls[0]["function"]["arguments"])["city"] in CITIES
        text = ""
        for line in answer:
            if line.startswith(b"data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    for part in choice["delta"].get("tool_calls") or []:
                        text += part["function"].get("arguments") or ""
        return json.loads(text)["city"] in CITIES

with concurrent.futures.ThreadPoolExecutor(int(os.environ["GB10_VLLM_CONCURRENCY"])) as pool:
    good = list(pool.map(ask, range(12)))
print(json.dumps({"score": round(100 * sum(good) / len(good)), "suite": "forced calls", "version": "1"}))
"""


def newest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        lab.on("proxy1", "cat $(ls /var/lib/gb10-vllm/evaluations/*.json | sort | tail -n 1)")
    )
    return found


def test_forced_calls_come_in_the_right_form_in_both_ways(tmp_path: Path) -> None:
    script = tmp_path / "forced.py"
    script.write_text(FORCED)
    with observe.nothing_stopped():
        SITE.must_play("evaluate", variables={"vllm_evaluation_command": [sys.executable, str(script)]})
    record = newest()
    assert (record["verdict"], record["score"]) == ("pass", 100)
    assert [entry["score"] for entry in record["passes"]] == [100, 100]
    assert (record["wire"]["faults"], record["server_errors"], record["wire"]["answers"]) == ({}, 0, 24)
    assert record["wire"]["most_at_once"] == 4


def test_the_suite_runs_to_its_end_with_forced_calls() -> None:
    variables = {
        "vllm_evaluation_only": ["TC-01", "TC-02", "TC-11"],
        "vllm_evaluation_request": {"tool_choice": "required", "temperature": 1, "max_tokens": 120},
        "vllm_evaluation_seconds": 240,
        # Hosts that are kept may have scores of another story.
        "vllm_evaluation_accept_incomparable": True,
    }
    with observe.nothing_stopped():
        done = SITE.play("evaluate", variables=variables)
    record = newest()
    words = observe.in_words(done)
    print("\n" + record["reason"])
    # Whatever such a model writes into a free text, it was measured, and nothing on the way was lost.
    assert record["verdict"] in ("pass", "fail"), words[-2000:]
    assert (done.returncode == 0) == (record["verdict"] == "pass")
    assert [sorted(entry["points"]) for entry in record["passes"]] == [["TC-01", "TC-02", "TC-11"]] * 2
    assert record["server_errors"] == 0
    assert set(record["wire"]["faults"]) <= {"length", "schema", "json"}, record["wire"]
    assert record["seconds"] < 240
