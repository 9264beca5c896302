# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts of units: the rule, and that every unit of this collection keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _budgets, _release, _restart_rules

COLLECTION = Path(_restart_rules.__file__).parents[2]
TEMPLATES = sorted((COLLECTION / "roles").glob("*/templates/*.service.j2"))
ENGINE = COLLECTION / "roles/engine/templates/vllm.service.j2"
LOADS = [1, 20, 120, 900, 1200, 7200]


def drop_in(load: int) -> str:
    """The part of the engine's unit that comes with a release."""
    spec = {
        "image": f"example/vllm@sha256:{'1' * 64}",
        "topology": "replicated",
        "rank": 0,
        "ranks": 1,
        "model": "m",
        "revision": "",
        "served_model_name": "",
        "arguments": {},
        "environment": {},
        "secrets_file": "",
        "listen_address": "0.0.0.0",
        "port": 8000,
        "container_options": [],
        "volumes": [],
        "huggingface_home": "/h",
        "cache_root": "/c",
        "mods": {},
        "budgets": _budgets.derive(load).as_dict(),
    }
    return _release.files(_release.manifest(spec), "/r")["unit.conf"]


def test_there_are_units() -> None:
    assert ENGINE in TEMPLATES
    assert len(TEMPLATES) >= 5


@pytest.mark.parametrize("template", [path for path in TEMPLATES if path != ENGINE], ids=lambda path: path.name)
def test_every_unit_keeps_the_rule(template: Path) -> None:
    assert _restart_rules.problems(template.name, [template.read_text()]) == []


@pytest.mark.parametrize("load", LOADS)
def test_the_engine_is_given_up_whatever_its_load(load: int) -> None:
    assert _restart_rules.problems("vllm.service", [ENGINE.read_text(), drop_in(load)], bounded=True) == []


@pytest.mark.parametrize("load", LOADS)
def test_a_start_that_fails_as_late_as_it_may_is_counted(load: int) -> None:
    budgets = _budgets.derive(load)
    starts, now = [0.0], 0.0
    while len(starts) <= budgets.restart_burst:
        now += budgets.unit_start + budgets.restart_delay
        starts.append(now)
    assert starts[budgets.restart_burst] - starts[0] < budgets.restart_window


ALWAYS = "[Service]\nRestart=always\nRestartSec=5\nTimeoutStartSec=10\n"


@pytest.mark.parametrize(
    ("texts", "bounded", "finding"),
    [
        (["[Service]\nType=oneshot\n"], False, None),
        (["[Service]\nType=exec\n"], False, "stays down when it ends"),
        ([ALWAYS], False, "does not say its StartLimitIntervalSec"),
        (["[Unit]\nStartLimitIntervalSec=0\n" + ALWAYS], False, None),
        (["[Unit]\nStartLimitIntervalSec=0\n" + ALWAYS], True, "must not be restarted for ever"),
        (["[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\n"], False, "RestartSec of at least"),
        (
            ["[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=10ms\n"],
            False,
            "RestartSec of at least",
        ),
        (["[Unit]\nStartLimitIntervalSec=1min\n" + ALWAYS], True, "does not say StartLimitBurst"),
        (
            ["[Unit]\nStartLimitIntervalSec=45\nStartLimitBurst=3\n" + ALWAYS],
            True,
            "45 s is not above 3 x (10 s start + 5 s delay)",
        ),
        (["[Unit]\nStartLimitIntervalSec=46\nStartLimitBurst=3\n" + ALWAYS], True, None),
        # A drop-in comes later, and a comment says nothing.
        ([ALWAYS, "[Unit]\nStartLimitIntervalSec=46\nStartLimitBurst=3\n# StartLimitBurst=9\n"], True, None),
        (
            [ALWAYS + "StartLimitIntervalSec=0\n", "[Unit]\nStartLimitIntervalSec=0\n"],
            False,
            "where systemd ignores it",
        ),
    ],
)
def test_problems(texts: list[str], bounded: bool, finding: str | None) -> None:
    found = _restart_rules.problems("a.service", texts, bounded)
    assert (finding in found[0] and len(found) == 1) if finding else found == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("15", 15),
        ("100ms", 0.1),
        ("1min 30s", 90),
        ("2h", 7200),
        ("infinity", None),
        ("", None),
        ("{{ x }}", None),
    ],
)
def test_seconds(text: str, expected: float | None) -> None:
    assert _restart_rules.seconds(text) == expected


@pytest.mark.parametrize("path", sorted((COLLECTION / "plugins").rglob("*.py")), ids=lambda path: path.name)
def test_failures_are_forgotten_before_a_start_that_is_meant(path: Path) -> None:
    """Else a unit that systemd has given up is refused, and earlier failures count against the new start."""
    text = path.read_text()
    if '"systemctl", "start"' in text and "_restart_rules" not in path.name:
        assert '"reset-failed"' in text[: text.index('"systemctl", "start"')]
