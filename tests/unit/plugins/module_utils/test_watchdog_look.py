# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the watchdog makes of what it is told: units, pages of metrics, answers; and when it asks for a token."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _http
from ansible_collections.gb10.vllm.plugins.module_utils import _watchdog_look as look
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog import Figures, Question
from ansible_collections.gb10.vllm.plugins.module_utils._watchdog_decide import Standing

PAGE = """# HELP vllm:num_requests_running Running
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 5.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
vllm:generation_tokens_total{engine="0",model_name="m"} 70.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="m"} 3.0
vllm:iteration_tokens_total_count{engine="0",model_name="m"} 42.0
"""


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (PAGE, ("read", Figures(3, 5, 70, 1000, 42, 0.25))),
        (PAGE.replace("iteration", "other"), ("read", Figures(3, 5, 70, 1000, 0, 0.25))),
        (PAGE[:-20], ("off", None)),
        ("python_info 1\n", ("off", None)),
        ("<html>\n", ("off", None)),
    ],
)
def test_figures(page: str, expected: tuple[str, Figures | None]) -> None:
    assert look.figures_of(page.encode()) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (_http.Answer(200, '{"choices": [{}]}'), "came"),
        (_http.Answer(200, '{"choices": []}'), "failed"),
        (_http.Answer(200, "oops"), "failed"),
        (_http.Answer(401, "{}"), "denied"),
        (_http.Answer(404, "{}"), "denied"),
        (_http.Answer(500, "dead"), "failed"),
        (_http.Answer(503, "full"), "failed"),
        (_http.Answer(0, "", "TimeoutError: timed out"), "silent"),
        (_http.Answer(0, "", "ConnectionRefusedError: refused"), "refused"),
    ],
)
def test_answers(answer: _http.Answer, expected: str) -> None:
    assert look.answered(answer)[0] == expected


def unit(ended: str, left: str = "0", docker: str = "active") -> look.Units:
    return {
        _host.UNIT: {"InactiveEnterTimestampMonotonic": ended},
        look.DOCKER: {"ActiveState": docker, "ActiveExitTimestampMonotonic": left},
    }


@pytest.mark.parametrize(
    ("found", "job", "expected"),
    [
        (unit("0"), "", "nobody"),
        (unit("5000000"), "start", "nobody"),
        (unit("5000000"), "stop", "operator"),
        (unit("5000000", "5100000"), "stop", "docker"),
        (unit("5000000", "5100000", "inactive"), "stop", "operator"),
        (unit("5000000", "9100000"), "stop", "operator"),
        (unit("5000000", ""), "stop", "operator"),
    ],
)
def test_by_whom_a_unit_was_stopped(found: look.Units, job: str, expected: str) -> None:
    assert look.stopped_by(found, job) == expected


@pytest.mark.parametrize(
    ("question", "moved", "expected"),
    [
        (None, None, True),
        (Question(90.0), None, False),
        (Question(80.0, 84.0, "came"), None, True),
        (Question(80.0, 86.0, "came"), None, False),
        (Question(80.0, 84.0, "came"), 95.0, False),
        (Question(80.0, 84.0, "came"), 84.0, True),
        (Question(80.0, 84.0, "silent"), None, True),
    ],
)
def test_when_it_asks(question: Question | None, moved: float | None, expected: bool) -> None:
    asker = look.Asker()
    asker.question, asker.invocation = question, "a"
    assert asker.due("a", 100.0, moved, 15.0) is expected
    assert asker.due("b", 100.0, moved, 15.0) is True, "another start is asked anew"


def site(base: Path, release: str = "r1") -> None:
    (base / "releases" / release).mkdir(parents=True)
    (base / "releases" / release / "release.json").write_text(json.dumps({"rank": 1, "ranks": 2}))
    os.symlink(f"releases/{release}", base / "current")


def test_standing(tmp_path: Path) -> None:
    pause = str(tmp_path / "pause")
    assert look.standing(str(tmp_path), pause, 0)[0] == Standing()
    site(tmp_path)
    assert look.standing(str(tmp_path), pause, 0) == (Standing("r1", rank=1, ranks=2), {"rank": 1, "ranks": 2})
    stable: list[dict[str, Any]] = [
        {"rollout": "1", "release": "r1", "at": 1},
        {"rollout": "2", "release": "r2", "at": 2},
    ]
    (tmp_path / "stable.json").write_text(json.dumps({"stable": stable}))
    (tmp_path / "pause").mkdir()
    (tmp_path / "pause" / "mine").touch()
    found, _record = look.standing(str(tmp_path), pause, 0)
    assert found == Standing("r1", True, "2", 1, 2, "mine (an operator's file)")


def test_the_engines_key(tmp_path: Path) -> None:
    secrets = tmp_path / "engine.secrets"
    assert look.api_key(str(secrets)) == ""
    secrets.write_text("# x\nHF_TOKEN=a\nVLLM_API_KEY=b=c\n")
    assert look.api_key(str(secrets)) == "b=c"
