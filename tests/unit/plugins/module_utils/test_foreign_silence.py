# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Silencing and putting back, against a systemd that is a folder and a table; ended at every step, it can be run again either way."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _foreign_host, _foreign_silence, _host

SERVICE, TIMER, JOB = "old.service", "watch.timer", "watch.service"


class PowerLoss(BaseException):
    """Nothing rescues it."""


class Systemd:
    """Unit files and links in a folder, as systemd reads them; `acts_left` steps from now the power goes."""

    def __init__(self, root: Path) -> None:
        self.root, self.etc, self.masks = root, root / "system", root / "system.control"
        self.active: dict[str, str] = {}
        self.told: list[str] = []
        self.acts_left = 10**6

    def act(self) -> None:
        self.acts_left -= 1
        if self.acts_left < 0:
            raise PowerLoss

    def state(self, name: str) -> dict[str, str]:
        masked = os.path.islink(self.masks / name)
        if not (self.etc / name).exists():
            return {"Id": name, "LoadState": "not-found", "ActiveState": "inactive", "UnitFileState": ""}
        enabled = any(path.name == name for path in self.etc.glob("*.wants/*"))
        return {
            "Id": name,
            "LoadState": "masked" if masked else "loaded",
            "ActiveState": self.active.get(name, "inactive"),
            "UnitFileState": "masked" if masked else "enabled" if enabled else "disabled",
            "Type": "oneshot" if name == JOB else "simple",
        }

    def run(self, command: list[str], timeout: float = 60, check: bool = True) -> Any:
        assert command[0] == "systemctl"
        verb, name = command[1], command[-1]
        self.told.append(" ".join(command[1:]))
        self.act()
        if verb == "stop":
            self.active[name] = "inactive"
        if verb == "start":
            assert self.state(name)["LoadState"] == "loaded"
            self.active[name] = "active"
        return type("Done", (), {"stdout": "", "returncode": 0})()

    def snapshot(self) -> tuple[Any, ...]:
        files = sorted(
            (str(path.relative_to(self.root)), os.readlink(path) if path.is_symlink() else path.read_text())
            for path in self.root.rglob("*")
            if path.is_symlink() or (path.is_file() and path.name != "silenced.json")
        )
        return files, sorted(self.active.items())


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    fake = Systemd(tmp_path)
    for folder in ("multi-user.target.wants", "timers.target.wants"):
        (fake.etc / folder).mkdir(parents=True)
    for name in (SERVICE, TIMER, JOB):
        (fake.etc / name).write_text(f"[Unit]\nDescription={name}\n")
    os.symlink("../old.service", fake.etc / "multi-user.target.wants/old.service")
    os.symlink(fake.etc / SERVICE, fake.etc / "llm.service")
    os.symlink(fake.etc / TIMER, fake.etc / "timers.target.wants/watch.timer")
    fake.active = {SERVICE: "active", TIMER: "active", JOB: "activating"}
    monkeypatch.setattr(_foreign_host.Manager, "folders", property(lambda self: [str(fake.etc)]))
    monkeypatch.setattr(_foreign_host.Manager, "masks", property(lambda self: str(fake.masks)))
    monkeypatch.setattr(_foreign_host, "manager", lambda account: _foreign_host.Manager())
    monkeypatch.setattr(_foreign_host, "properties", lambda of, names: {name: fake.state(name) for name in names})
    monkeypatch.setattr(_host, "run", fake.run)
    monkeypatch.setattr(_host, "is_listening", lambda port: False)
    monkeypatch.setattr(_host, "memory_available_bytes", lambda: 1)
    monkeypatch.setattr(_host.Deadline, "pause", lambda self, seconds: None)
    changing = {name: getattr(os, name) for name in ("unlink", "symlink")}
    for name, real in changing.items():

        def act(*words: Any, real: Any = real, **more: Any) -> None:
            fake.act()
            real(*words, **more)

        monkeypatch.setattr(os, name, act)
    return fake


ALL = [SERVICE, TIMER, JOB]
MORE = {"port": 8000, "served": True, "models": ["tiny"], "rollout": "r1"}


def silence(systemd: Systemd, write: bool = True) -> dict[str, Any]:
    return _foreign_silence.silence(str(systemd.root), ALL, [], 5, MORE, write)


def restore(systemd: Systemd, write: bool = True) -> dict[str, Any]:
    return _foreign_silence.restore(str(systemd.root), 5, write)


def test_silenced_and_put_back_exactly(systemd: Systemd) -> None:
    before = systemd.snapshot()
    assert silence(systemd, write=False)["changed"] is True
    assert systemd.snapshot() == before
    result = silence(systemd)
    assert result["changed"] is True
    assert result["acted_on"] == [TIMER, SERVICE, JOB]
    assert result["record"]["units"][SERVICE]["active"] == "active"
    assert {name: systemd.state(name)["UnitFileState"] for name in ALL} == dict.fromkeys(ALL, "masked")
    assert set(systemd.active.values()) == {"inactive"}
    assert not os.path.lexists(systemd.etc / "llm.service")
    stops = [line for line in systemd.told if line.startswith("stop")]
    assert stops == ["stop watch.timer", "stop old.service", "stop watch.service"]
    assert silence(systemd)["changed"] is False
    assert restore(systemd, write=False)["changed"] is True
    assert restore(systemd)["changed"] is True
    # the job ran because its timer had started it
    files, active = systemd.snapshot()
    assert (files, dict(active)) == (before[0], {SERVICE: "active", TIMER: "active", JOB: "inactive"})
    starts = [line for line in systemd.told if line.startswith("start")]
    assert starts == ["start --no-block old.service", "start --no-block watch.timer"]
    assert restore(systemd)["changed"] is False
    left = _foreign_silence.read(str(systemd.root))
    assert (left["served"], left["models"], left["units"]) == (True, ["tiny"], {})


# Every change that silencing and putting back make, one after the other.
STEPS_TO_SILENCE, STEPS_BACK = 11, 11


def test_the_number_of_steps(systemd: Systemd) -> None:
    silence(systemd)
    assert 10**6 - systemd.acts_left == STEPS_TO_SILENCE
    restore(systemd)
    assert 10**6 - systemd.acts_left == STEPS_TO_SILENCE + STEPS_BACK


@pytest.mark.parametrize("then", [silence, restore])
@pytest.mark.parametrize("step", range(STEPS_TO_SILENCE))
def test_ended_while_silencing(systemd: Systemd, step: int, then: Any) -> None:
    before = systemd.snapshot()[0]
    systemd.acts_left = step
    with pytest.raises(PowerLoss):
        silence(systemd)
    systemd.acts_left = 10**6
    then(systemd)
    if then is silence:
        assert {systemd.state(name)["UnitFileState"] for name in ALL} == {"masked"}
        restore(systemd)
    assert systemd.snapshot()[0] == before
    assert (systemd.active[SERVICE], systemd.active[TIMER]) == ("active", "active")


@pytest.mark.parametrize("then", [silence, restore])
@pytest.mark.parametrize("step", range(STEPS_BACK))
def test_ended_while_putting_back(systemd: Systemd, step: int, then: Any) -> None:
    before = systemd.snapshot()[0]
    silence(systemd)
    systemd.acts_left = step
    with pytest.raises(PowerLoss):
        restore(systemd)
    systemd.acts_left = 10**6
    then(systemd)
    if then is silence:
        assert {systemd.state(name)["UnitFileState"] for name in ALL} == {"masked"}
        restore(systemd)
    assert systemd.snapshot()[0] == before
    assert (systemd.active[SERVICE], systemd.active[TIMER]) == ("active", "active")


def test_whoever_starts_it_again_in_between(systemd: Systemd) -> None:
    """Enabled and started again by somebody although it is in the record: silent again, and the first state counts."""
    before = systemd.snapshot()[0]
    silence(systemd)
    os.unlink(systemd.masks / SERVICE)
    systemd.active[SERVICE] = "active"
    assert silence(systemd)["acted_on"] == [SERVICE]
    restore(systemd)
    assert systemd.snapshot()[0] == before


def test_one_that_does_not_start_is_named_and_the_record_stays(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    silence(systemd)
    real = systemd.state
    monkeypatch.setattr(
        systemd, "state", lambda name: {**real(name), **({"ActiveState": "failed"} if name == SERVICE else {})}
    )
    with pytest.raises(_host.HostError, match="unit old.service is failed 0 s after"):
        _foreign_silence.restore(str(systemd.root), 0, True)
    assert _foreign_silence.holds(_foreign_silence.read(str(systemd.root)))


def test_merged_keeps_the_first_state() -> None:
    first = _foreign_silence.merged({}, {"a": 1}, {"c": 1}, {"rollout": "r1"})
    second = _foreign_silence.merged(first, {"a": 2, "b": 2}, {"c": 2}, {"rollout": "r2"})
    assert second == {"schema": 1, "rollout": "r1", "units": {"a": 1, "b": 2}, "containers": {"c": 1}}
    emptied = {**second, "units": {}, "containers": {}}
    assert _foreign_silence.merged(emptied, {"a": 3}, {}, {"rollout": "r3"})["rollout"] == "r3"


@pytest.mark.parametrize(
    ("entry", "again"),
    [
        ({"active": "active", "type": "oneshot"}, True),
        ({"active": "activating", "type": "oneshot"}, False),
        ({"active": "activating", "type": "notify"}, True),
        ({"active": "failed", "type": "simple"}, False),
        ({"active": "inactive", "type": "simple"}, False),
    ],
)
def test_starts_again(entry: dict[str, str], again: bool) -> None:
    assert _foreign_silence.starts_again(entry) is again
