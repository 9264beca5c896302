# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of what watches a host: none has to be there, and none that is damaged keeps the others from being told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _watch_files
from ansible_collections.gb10.vllm.plugins.modules import watch_info

NOW = 1_800_000_000.0
NOTHING: dict[str, Any] = {"programs": {}, "paused": "", "silenced": [], "withdrawn": {}, "hold": None, "trouble": []}


def look(folder: Path, files: dict[str, Any]) -> dict[str, Any]:
    """What is told of a host with these files; a string is written as it is."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return _watch_files.look(folder / "etc", folder / "run", folder / "lib", folder / "proxy", NOW)


def test_a_host_on_which_nothing_watches(tmp_path: Path) -> None:
    assert look(tmp_path, {}) == NOTHING
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"run/watchdog.json": {"time": NOW - 3, "verdict": "serving"}, "run/pair.json": {}, "run/.new.json": "{"},
            {"programs": {"watchdog": {"time": NOW - 3, "verdict": "serving", "age_seconds": 3.0}, "pair": {"age_seconds": None}}},
        ),
        # the host's clock was set back
        ({"run/guard.json": {"time": NOW + 60}}, {"programs": {"guard": {"time": NOW + 60, "age_seconds": 0.0}}}),
        ({"lib/pause/rollout": {"until": NOW + 30, "who": "ann", "why": "cutover"}}, {"paused": "rollout for another 30 s (ann, cutover)"}),
        ({"lib/pause/rollout": {"until": NOW - 30}}, {}),
        ({"lib/pause/by-hand": ""}, {"paused": "by-hand (an operator's file)"}),
        ({"etc/silenced.json": {"units": {"old.service": {"active": "active"}}, "containers": {"old": {}}}}, {"silenced": ["old", "old.service"]}),
        # what is left of a record when all of it was put back
        ({"etc/silenced.json": {"schema": 1, "units": {}, "served": "x"}}, {}),
        ({"proxy/withdrawn.json": {"spark2": {"since": 5, "reason": "stalled"}}}, {"withdrawn": {"spark2": {"since": 5, "reason": "stalled"}}}),
        ({"proxy/hold.json": {"until": NOW + 60, "why": "1-cutover"}}, {"hold": {"armed": True, "until": NOW + 60, "why": "1-cutover"}}),
        ({"proxy/hold.json": {"until": NOW, "why": None}}, {"hold": {"armed": False, "until": NOW, "why": ""}}),
    ],
)  # fmt: skip
def test_what_files_say(tmp_path: Path, files: dict[str, Any], told: dict[str, Any]) -> None:
    assert look(tmp_path, files) == {**NOTHING, **told}


@pytest.mark.parametrize("content", ["", "[]", "{", "\x00", '"x"'])
@pytest.mark.parametrize("name", ["run/watchdog.json", "etc/silenced.json", "proxy/withdrawn.json", "proxy/hold.json"])
def test_a_damaged_file_is_told_and_the_rest_as_well(tmp_path: Path, name: str, content: str) -> None:
    found = look(tmp_path, {name: content, "lib/pause/x": "", "run/pair.json": {"verdict": "whole"}})
    (trouble,) = found.pop("trouble")
    assert str(tmp_path / name) in trouble
    assert found["paused"]
    assert found["programs"].pop("pair")["verdict"] == "whole"
    if "watchdog" in name:
        assert found["programs"] == {"watchdog": {"trouble": f"{tmp_path / name} cannot be read"}}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("proxy/hold.json", {}),
        ("proxy/hold.json", {"until": "soon"}),
        ("proxy/hold.json", {"until": None}),
        ("proxy/withdrawn.json", {"spark1": 3}),
        ("etc/silenced.json", {"units": 3}),
    ],
)
def test_a_file_with_other_content_is_told(tmp_path: Path, name: str, content: Any) -> None:
    found = look(tmp_path, {name: content})
    assert [str(tmp_path / name) in line and "is not as expected" in line for line in found["trouble"]] == [True]


def test_a_name_that_is_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "etc" / "silenced.json").mkdir(parents=True)
    assert look(tmp_path, {})["trouble"] == [f"{tmp_path}/etc/silenced.json cannot be read: Is a directory"]


def test_module(call: Any, tmp_path: Path) -> None:
    names = ("base_dir", "run_dir", "state_dir", "proxy_dir")
    folders = {name: str(tmp_path / name) for name in names}
    found = call(watch_info, check_mode=True, **folders)
    assert {name: found[name] for name in NOTHING} == NOTHING
    assert found["changed"] is False
