# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What acts on an engine and what only names one: texts, units, containers, cron tables."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _foreign, _foreign_text
from ansible_collections.gb10.vllm.plugins.module_utils._foreign import Container, Cron, Finding, Our, Unit

OURS = Unit("vllm.service", text="ExecStart=/etc/gb10-vllm/current/start", enabled="enabled", active="active")
RUN = "ExecStart=/usr/bin/docker run --rm --name old-split eugr/spark-vllm-b12x serve model --port 8000"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("vllm serve model --port 8000", "ours"),
        ("vllm serve model", "ours"),
        ("vllm serve model --port 8001", "other"),
        ("vllm serve model --port=8001 --nnodes 2 --node-rank 1 --headless", "ours"),
        ("python3 -m vllm.entrypoints.openai.api_server --port 8000", "ours"),
        ("docker run -p 8001:8000 vllm/vllm-openai:latest", "other"),
        ("docker run -p 0.0.0.0:8000:8000 vllm/vllm-openai:latest", "ours"),
        ("./launch-cluster.sh -d exec vllm serve model --port 9000", "ours"),
        ("services:\n  llm:\n    image: vllm/vllm-openai\n    ports:\n      - 8000:8000\n", "ours"),
        ("services:\n  llm:\n    image: vllm/vllm-openai\n    ports:\n      - '8001:8000'\n", "other"),
        ("services:\n  db:\n    image: postgres\n", ""),
        ("curl http://127.0.0.1:8000/metrics", ""),
        ("pip install vllm", ""),
        ("", ""),
    ],
)
def test_engine(text: str, kind: str) -> None:
    assert _foreign_text.engine(text, 8000) == kind


@pytest.mark.parametrize(
    ("text", "unit", "does"),
    [
        ("systemctl restart old-split.service", "old-split.service", True),
        ("systemctl --no-block restart old-split", "old-split.service", True),
        ("systemctl restart old-split-watchdog.service", "old-split.service", False),
        ("systemctl is-active old-split.service", "old-split.service", False),
        ("systemctl start nginx; echo old-split", "old-split.service", False),
        ('UNIT=old-split.service\nsystemctl restart "$UNIT"', "old-split.service", True),
        ('export UNITS="nginx old-split"\nsystemctl start $UNITS', "old-split.service", True),
        ("UNIT=old-split.service\nsystemctl status $UNIT", "old-split.service", False),
        ("systemctl enable --now old.timer", "old.timer", True),
        ("systemctl start old", "old.timer", False),
        ("service old-split restart", "old-split.service", True),
        ("systemctl --user start llm", "llm.service", True),
        ("# systemctl restart old-split", "old-split.service", False),
        ("systemctl \\\n  restart \\\n  old-split", "old-split.service", True),
    ],
)
def test_commands_unit(text: str, unit: str, does: bool) -> None:
    assert _foreign_text.commands_unit(_foreign_text.flat(text), unit) is does


@pytest.mark.parametrize(
    ("text", "does"),
    [
        ("docker restart vllm", True),
        ("docker container stop -t 5 vllm", True),
        ("docker stop vllm-old", False),
        ("docker logs vllm", False),
        ("docker run --name vllm image", False),
    ],
)
def test_commands_container(text: str, does: bool) -> None:
    assert _foreign_text.commands_container(text, "vllm") is does


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("journalctl -u vllm.service", ["vllm.service"]),
        ("docker logs vllm", ["container vllm"]),
        ("curl localhost:8000/metrics", ["port 8000"]),
        ("curl localhost:80001", []),
        ("listens on 8000", []),
        ("systemctl start gb10-vllm.service", []),
    ],
)
def test_mentions(text: str, names: list[str]) -> None:
    assert _foreign_text.mentions(text, "vllm.service", "vllm", 8000) == names


def by_name(found: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in found}


def find(units: Any = (), containers: Any = (), crons: Any = (), **more: Any) -> dict[str, Finding]:
    return by_name(_foreign.find([OURS, *units], containers, crons, Our(), **more))


OLD = Unit(
    "old-split.service",
    text=RUN,
    conflicts=frozenset({"vllm.service", "shutdown.target"}),
    enabled="enabled",
    active="active",
)
WATCHDOG = Unit("old-watchdog.service", text="UNIT=old-split\nsystemctl restart $UNIT", enabled="static")
TIMER = Unit("old-watchdog.timer", triggers=frozenset({"old-watchdog.service"}), enabled="enabled", active="active")
LAYER = Unit(
    "layer.service", text="for unit in $(systemctl list-unit-files); do systemctl start $unit; done", active="active"
)


def test_the_article() -> None:
    found = find([LAYER, TIMER, WATCHDOG, OLD])
    assert set(found) == {OLD.name, WATCHDOG.name, TIMER.name}
    assert all(finding.acts and finding.live and finding.silence for finding in found.values())
    old = found[OLD.name]
    assert old.text == (
        "unit old-split.service (active, enabled) conflicts with vllm.service: starting the one stops the other; runs an engine (port 8000 "
        "or a part of a pair); can be started by old-watchdog.service; when somebody starts it (the boot, its timer, whoever starts enabled "
        "units), systemd stops vllm.service"
    )
    assert found[WATCHDOG.name].startable_by == [TIMER.name]
    assert found[TIMER.name].reasons == ["starts old-watchdog.service"]


def test_silenced_units_are_nothing_to_do() -> None:
    quiet = [
        Unit(unit.name, enabled="masked", masked=True, conflicts=unit.conflicts, triggers=unit.triggers)
        for unit in (OLD, WATCHDOG, TIMER)
    ]
    assert not any(finding.silence for finding in find([*quiet, LAYER]).values())


@pytest.mark.parametrize(
    ("unit", "acts", "word"),
    [
        (
            Unit("a.service", conflicts=frozenset({"vllm.service"}), enabled="enabled"),
            True,
            "conflicts with vllm.service",
        ),
        (Unit("a.service", holds_port=True, active="active"), True, "listens on port 8000"),
        (Unit("a.service", text="docker restart vllm", enabled="enabled"), True, "starts or stops the container vllm"),
        (Unit("a.service", text="systemctl restart vllm", enabled="enabled"), True, "starts or stops vllm.service"),
        (Unit("a.service", text="curl localhost:8000/metrics", enabled="enabled"), False, "names port 8000"),
        (Unit("a.service", text="vllm serve embeddings --port 8001", enabled="enabled"), False, "on another port"),
        (Unit("a.service", pulls=frozenset({"vllm.service"}), enabled="enabled"), False, "would start vllm.service"),
        (
            Unit("llm.service", text="vllm serve m --nnodes 2", account="nvidia", enabled="enabled"),
            True,
            "runs an engine",
        ),
    ],
)
def test_one_unit(unit: Unit, acts: bool, word: str) -> None:
    (found,) = find([unit]).values()
    assert (found.acts, found.silence) == (acts, acts)
    assert word in found.text
    assert found.name == unit.key


@pytest.mark.parametrize(
    "unit",
    [
        Unit("gb10-vllm-watchdog.service", text="systemctl restart vllm.service", enabled="enabled"),
        Unit("nginx.service", text="ExecStart=/usr/sbin/nginx", enabled="enabled"),
        Unit("conflict.service", conflicts=frozenset({"shutdown.target"}), enabled="enabled"),
    ],
)
def test_no_finding(unit: Unit) -> None:
    assert find([unit]) == {}


def test_a_unit_that_ours_conflicts_with() -> None:
    ours = Unit("vllm.service", conflicts=frozenset({"a.service"}))
    (found,) = _foreign.find([ours, Unit("a.service", enabled="enabled")], [], [], Our())
    assert found.silence


def test_a_layer_that_starts_others_too_is_told_and_left_alone() -> None:
    layer = Unit(
        "layer.service", text="systemctl start old-split.service postgres.service", enabled="enabled", active="active"
    )
    found = find([OLD, layer, Unit("postgres.service", active="active")])
    assert not found["layer.service"].acts
    assert "starts or stops old-split.service, among others" in found["layer.service"].text
    assert found[OLD.name].startable_by == ["layer.service"]


@pytest.mark.parametrize(
    ("more", "silence"),
    [
        ({}, False),  # a dead unit that nothing starts harms nobody
        ({"enabled": "enabled"}, True),
        ({"enabled": "generated"}, True),
        ({"active": "failed"}, False),
        ({"active": "activating"}, True),
        ({"pulled_by": frozenset({"webui.service"})}, True),
        ({"pulled_by": frozenset({"multi-user.target"})}, False),
        ({"enabled": "transient", "active": "active"}, False),
    ],
)
def test_live(more: dict[str, Any], silence: bool) -> None:
    found = find([Unit("old.service", text="vllm serve m", **more)])["old.service"]
    assert found.silence is silence
    assert bool(found.refused) is (more.get("enabled") == "transient")


def test_named_and_accepted() -> None:
    dead = Unit("older.service", text="sleep 1")
    assert find([dead], names=["older"])["older.service"].silence
    assert find([OLD, WATCHDOG, TIMER], accept=["old-*"]) == {}
    box = Container("litellm", "litellm --port 4000", policy="always", running=True)
    assert find(containers=[box], names=["litellm"])["litellm"].silence
    assert _foreign.unknown(["older", "llm*"], [dead], []) == ["llm*"]


@pytest.mark.parametrize(
    ("box", "acts", "silence", "word"),
    [
        (Container("llm", "vllm/vllm-openai --port 8000", "always", True), True, True, "restart policy always"),
        (Container("llm", "vllm/vllm-openai", "no", False), True, False, "runs an engine"),
        (Container("web", "nginx", "unless-stopped", True, ports=frozenset({8000})), True, True, "has port 8000"),
        (Container("web", "caddy", "no", True, holds_port=True), True, True, "has port 8000"),
        (Container("llm", "vllm-openai", "no", True, removed_at_end=True), True, False, "would be removed by its stop"),
        (Container("tts", "tts", "always", True, has_gpu=True), False, False, "uses the GPU"),
        (Container("vllm", "vllm/vllm-openai", "always", True), True, False, "docker rename vllm"),
    ],
)
def test_containers(box: Container, acts: bool, silence: bool, word: str) -> None:
    (found,) = find(containers=[box]).values()
    assert (found.acts, found.silence) == (acts, silence)
    assert word in found.text + found.refused


def test_a_container_of_a_unit_goes_with_it() -> None:
    box = Container("old-split", "eugr/spark-vllm-b12x serve m", "no", True, removed_at_end=True)
    assert set(find([OLD], [box])) == {OLD.name}
    findings = _foreign.find([OURS, OLD], [box], [], Our())
    assert _foreign.gives_back(findings, [OLD], [box]) == ["old-split.service", "container old-split"]


def test_our_container_is_ours() -> None:
    assert find(containers=[Container("vllm", "eugr/spark-vllm-b12x serve m", "no", True, holds_port=True)]) == {}


@pytest.mark.parametrize(
    ("text", "refused", "word"),
    [
        ("@reboot root /opt/llm/launch-cluster.sh -d", True, "runs an engine"),
        ("*/5 * * * * root systemctl restart vllm", True, "starts or stops vllm.service"),
        ("*/5 * * * * root docker start llm", True, "starts or stops the container llm"),
        ("*/5 * * * * root systemctl restart old-split", False, "does nothing while that is silenced"),
    ],
)
def test_cron(text: str, refused: bool, word: str) -> None:
    box = Container("llm", "vllm/vllm-openai", "no", False)
    found = find([OLD], [box], [Cron("/etc/cron.d/llm:1", text)])["/etc/cron.d/llm:1"]
    assert not found.silence
    assert bool(found.refused) is refused
    assert word in found.text
    assert find([OLD], [box], [Cron("/etc/cron.d/llm:1", text)], accept=["/etc/cron.d/llm:*"]).keys() == {
        OLD.name,
        "llm",
    }


def test_serves() -> None:
    assert _foreign.serves(find([OLD])[OLD.name])
    assert not _foreign.serves(find([TIMER, WATCHDOG, OLD])[TIMER.name])
    assert _foreign.not_ours(OURS).refused
