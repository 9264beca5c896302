# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The switch of the links, with the unit's state as given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.modules import current_release


@pytest.fixture
def base(tmp_path: Path, commands: Any) -> Path:
    commands.answers = {"systemctl show": (0, "ActiveState=inactive\n", ""), "systemctl daemon-reload": (0, "", "")}
    for name in ("a", "b", "c"):
        (tmp_path / "releases" / name).mkdir(parents=True)
        (tmp_path / "releases" / name / "start").write_text("")
    return tmp_path


def links(base: Path) -> tuple[str | None, str | None]:
    return _host.linked_release(str(base), "current"), _host.linked_release(str(base), "previous")


def test_switches(call: Any, base: Path, commands: Any) -> None:
    for wanted, before, expected in (
        ("a", "", ("a", None)),
        ("b", "a", ("b", "a")),
        ("c", "b", ("c", "b")),
        ("b", "c", ("b", "c")),
    ):
        result = call(current_release, base_dir=str(base), release=wanted)
        assert (result["changed"], result["current"], result["previous"]) == (True, wanted, before)
        assert links(base) == expected
    assert len(commands.begins("systemctl daemon-reload")) == 4
    assert os.readlink(base / "current") == "releases/b", "the link must also work from within a copy of the folder"


def test_the_second_time_is_quiet(call: Any, base: Path, commands: Any) -> None:
    for wanted in ("a", "b"):
        call(current_release, base_dir=str(base), release=wanted)
    commands.asked.clear()
    result = call(current_release, base_dir=str(base), release="b")
    assert (result["changed"], result["current"], result["previous"]) == (False, "b", "a")
    assert links(base) == ("b", "a")
    assert commands.asked == []


def test_check_mode(call: Any, base: Path) -> None:
    result = call(current_release, check_mode=True, base_dir=str(base), release="not-staged-yet")
    assert (result["changed"], result["current"]) == (True, "not-staged-yet")
    assert links(base) == (None, None)


def test_missing_release(call: Any, base: Path) -> None:
    result = call(current_release, base_dir=str(base), release="x")
    assert "release x is not on this host" in result["msg"]
    assert links(base) == (None, None)


@pytest.mark.parametrize("state", ["active", "activating", "deactivating", "reloading"])
def test_a_running_engine_is_never_switched(call: Any, base: Path, commands: Any, state: str) -> None:
    call(current_release, base_dir=str(base), release="a")
    commands.answers["systemctl show"] = (0, f"ActiveState={state}\n", "")
    result = call(current_release, base_dir=str(base), release="b")
    assert f"vllm.service is {state} on release a" in result["msg"]
    assert links(base) == ("a", None)


def test_killed_between_the_links(call: Any, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever moment it is, current leads to a release that is whole, and the one that ran is not lost."""
    for wanted in ("a", "b"):
        call(current_release, base_dir=str(base), release=wanted)
    link = _host.link_atomically

    def killed(target: str, path: str) -> None:
        if path.endswith("current"):
            raise OSError("power loss")
        link(target, path)

    monkeypatch.setattr(_host, "link_atomically", killed)
    assert call(current_release, base_dir=str(base), release="c")["failed"] is True
    assert links(base) == ("b", "b")
    monkeypatch.setattr(_host, "link_atomically", link)
    assert call(current_release, base_dir=str(base), release="c")["previous"] == "b"
    assert links(base) == ("c", "b")
