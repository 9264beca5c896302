# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""foreign_units and legacy_units: from what a host says to findings, and the refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _foreign_host, _host
from ansible_collections.gb10.vllm.plugins.modules import foreign_units, legacy_units

SHOW = """Id=old-split.service
LoadState=loaded
ActiveState=active
UnitFileState=enabled
FragmentPath={folder}/old-split.service
Conflicts=shutdown.target vllm.service
Type=exec

Id=old-watch.timer
LoadState=loaded
ActiveState=active
UnitFileState=enabled
Triggers=old-watch.service

Id=old-watch.service
LoadState=loaded
ActiveState=inactive
UnitFileState=static
FragmentPath={folder}/old-watch.service

Id=gone.service
LoadState=not-found
ActiveState=inactive
"""
INSPECTED = [
    {
        "Id": "c" * 64,
        "Name": "/litellm",
        "Config": {"Image": "litellm", "Entrypoint": None, "Cmd": ["--port", "4000"]},
        "State": {"Running": True},
        "HostConfig": {
            "RestartPolicy": {"Name": "always", "MaximumRetryCount": 0},
            "PortBindings": {"4000/tcp": [{"HostIp": "", "HostPort": "8000"}]},
            "AutoRemove": False,
        },
    }
]


@pytest.fixture
def host(commands: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Units with their files and a script, a container, and one cron table."""
    (tmp_path / "old-split.service").write_text("[Service]\nExecStart=vllm serve m \\\n  --port 8000\n")
    (tmp_path / "watch").write_text("#!/bin/sh\nUNIT=old-split.service\nsystemctl restart $UNIT\n")
    (tmp_path / "old-watch.service").write_text(f"[Service]\nExecStart=/bin/sh {tmp_path}/watch\n")
    (tmp_path / "cron").write_text("# systemctl stop vllm\n@reboot root docker start litellm\n")
    commands.answers = {
        "systemctl list-units": (0, "old-split.service loaded active running Old\nold-watch.timer loaded\n", ""),
        "systemctl list-unit-files": (0, "old-watch.service static -\nfoo@.service static -\n", ""),
        "systemctl show": (0, SHOW.format(folder=tmp_path), ""),
        "docker ps": (0, "c" * 64, ""),
        "docker inspect": (0, json.dumps(INSPECTED), ""),
    }
    monkeypatch.setattr(_foreign_host, "managers", lambda: [_foreign_host.Manager()])
    monkeypatch.setattr(_foreign_host, "_listening", lambda port, names: set())
    monkeypatch.setattr(_foreign_host, "LINGER", tmp_path / "none")
    monkeypatch.setattr(_foreign_host, "CRON", {"lines": (str(tmp_path / "cron"),), "scripts": ()})
    return tmp_path


def test_a_host(call: Any, host: Path, commands: Any) -> None:
    result = call(foreign_units, names=["old-split", "older"])
    assert result["silence"] == ["old-split.service", "old-watch.timer", "old-watch.service"]
    assert result["silence_containers"] == ["litellm"]
    assert [finding["name"] for finding in result["findings"]][-1] == f"{host}/cron:2"
    assert len(result["unnamed"]) == 3
    assert "starts or stops the container litellm" in result["refused"][0]
    assert result["unknown"] == ["older"]
    assert (result["ours_enabled"], result["serving"], result["limits"]) == (False, True, [])
    assert not commands.begins("systemctl stop")


def test_one_that_was_recorded_and_is_not_silent_is_silenced_again(call: Any, host: Path, commands: Any) -> None:
    shown = SHOW.format(folder=host).replace("=active", "=inactive").replace("=enabled", "=disabled")
    commands.answers["systemctl show"] = (0, shown.replace("old-watch.timer", "other.timer"), "")
    (host / "watch").write_text("")
    assert call(foreign_units)["silence"] == []
    record(host, **{"old-split.service": {}})
    result = call(foreign_units, base_dir=str(host))
    assert result["silence"] == ["old-split.service"]
    assert len([text for text in result["unnamed"] if "old-split.service" in text]) == 1


def test_accepted(call: Any, host: Path) -> None:
    result = call(foreign_units, accept=["old-*", "litellm", f"{host}/cron:*"])
    assert (result["findings"], result["refused"]) == ([], [])


def test_a_host_that_cannot_be_looked_at(call: Any, host: Path, commands: Any) -> None:
    commands.answers["systemctl list-units"] = (1, "", "no bus")
    assert "could not be looked for" in call(foreign_units)["msg"]


def record(folder: Path, **units: Any) -> None:
    (folder / "silenced.json").write_text(json.dumps({"schema": 1, "units": units, "containers": {}, "served": True}))


def test_seen(call: Any, tmp_path: Path) -> None:
    assert call(legacy_units, state="seen", base_dir=str(tmp_path))["record"] == {}
    record(tmp_path, a=1)
    assert call(legacy_units, state="seen", base_dir=str(tmp_path))["record"]["units"] == {"a": 1}


@pytest.mark.parametrize(("active", "enabled"), [("active", "disabled"), ("inactive", "enabled")])
def test_ours_is_stopped_first(call: Any, tmp_path: Path, commands: Any, active: str, enabled: str) -> None:
    record(tmp_path, **{"old.service": {"active": "active", "links": []}})
    commands.answers["systemctl show"] = (0, f"ActiveState={active}\nUnitFileState={enabled}\n", "")
    result = call(legacy_units, state="restored", base_dir=str(tmp_path))
    assert f"vllm.service is {active} and {enabled}" in result["msg"]
    assert "vllm_rollback_to=legacy" in result["msg"]


def test_nothing_to_do(call: Any, tmp_path: Path, commands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    commands.answers["systemctl show"] = (0, "ActiveState=active\nUnitFileState=enabled\n", "")
    assert call(legacy_units, state="restored", base_dir=str(tmp_path))["changed"] is False
    assert call(legacy_units, state="silenced", base_dir=str(tmp_path))["changed"] is False
    assert not list(tmp_path.iterdir())


def test_containers(call: Any, tmp_path: Path, commands: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    box = json.loads(json.dumps(INSPECTED))
    commands.answers = {
        "systemctl show": (0, "ActiveState=inactive\nUnitFileState=disabled\n", ""),
        "docker inspect": lambda: (0, json.dumps(box), ""),
        "docker update --restart=no litellm": lambda: (
            box[0]["HostConfig"]["RestartPolicy"].update(Name="no") or (0, "", "")
        ),
        "docker stop litellm": lambda: box[0]["State"].update(Running=False) or (0, "", ""),
        "docker update --restart=always litellm": lambda: (
            box[0]["HostConfig"]["RestartPolicy"].update(Name="always") or (0, "", "")
        ),
        "docker start litellm": lambda: box[0]["State"].update(Running=True) or (0, "", ""),
    }
    monkeypatch.setattr(_host, "is_listening", lambda port: False)
    monkeypatch.setattr(_host.Deadline, "pause", lambda self, seconds: None)
    options = {"state": "silenced", "base_dir": str(tmp_path), "containers": ["litellm"]}
    predicted = call(legacy_units, check_mode=True, **options)
    assert (predicted["changed"], list(tmp_path.iterdir())) == (True, [])
    done = call(legacy_units, **options)
    assert (
        done["diff"]
        == predicted["diff"]
        == {
            "before": "container litellm: running, restart always\n",
            "after": "container litellm: stopped, restart no\n",
        }
    )
    assert call(legacy_units, **options)["changed"] is False
    assert call(legacy_units, state="restored", base_dir=str(tmp_path))["acted_on"] == ["litellm"]
    assert box == INSPECTED
