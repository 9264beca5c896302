# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The trap: an old split whose unit conflicts with ours, its watchdog, and an operations layer that starts whatever is enabled.

GB10_TRAP_SECONDS is how long the copies are watched after the cutover, GB10_LAYER_SECONDS how often the layer looks.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_soak_seconds": 1, "vllm_gate_deadline_seconds": 30})
WATCHED = int(os.environ.get("GB10_TRAP_SECONDS", "20"))
LAYER = os.environ.get("GB10_LAYER_SECONDS", "2")
# The old world on each host before the cutover, for the rollback at the end.
BEFORE: dict[str, str] = {}
OLD = ("old-split.service", "old-split-watchdog.service", "old-split-watchdog.timer")

SPLIT = """[Unit]
Description=The model over both hosts, as it was before
Conflicts=vllm.service
After=docker.service
StartLimitIntervalSec=0
[Service]
ExecStartPre=-/usr/bin/docker rm --force old-split
ExecStart=/usr/bin/docker run --rm --init --name old-split --network host --volume {model}:{model}:ro --entrypoint vllm {image} \\
  serve {model} --served-model-name tiny --tensor-parallel-size 2 --nnodes 2 --node-rank {rank} --master-addr {head} --master-port 29501 {more}
ExecStop=-/usr/bin/docker stop --time 5 old-split
Restart=always
RestartSec=1
[Install]
WantedBy=multi-user.target
Alias=llm.service
"""
WATCHDOG = """[Unit]
Description=Restarts the model when it does not answer
[Service]
Type=oneshot
ExecStart=/usr/local/bin/old-split-watchdog
"""
TIMER = """[Unit]
Description=Looks at the model
[Timer]
OnActiveSec=1
OnUnitInactiveSec=2
AccuracySec=100ms
[Install]
WantedBy=timers.target
"""
SCRIPT = """#!/bin/sh
UNIT=old-split.service
systemctl is-active --quiet "$UNIT" || systemctl restart "$UNIT"
"""
OPERATIONS = f"""#!/bin/sh
# Starts the units of this machine that are enabled and do not run.
while sleep {LAYER}; do
  for file in /etc/systemd/system/*.service /etc/systemd/system/*.timer; do
    unit=$(basename "$file")
    [ "$(systemctl is-enabled "$unit" 2>/dev/null)" = enabled ] || continue
    systemctl is-active --quiet "$unit" || {{ echo "starts $unit"; systemctl start --no-block "$unit"; }}
  done
done
"""
OPERATIONS_UNIT = """[Unit]
Description=Operations layer
[Service]
ExecStart=/usr/local/bin/operations-layer
[Install]
WantedBy=multi-user.target
"""


def nobody() -> None:
    """Nobody is in front of clients."""
    for host in observe.HOSTS:
        words = f"name={host} server={lab.describe()['hosts'][host]['address']}:8000 state=withdrawn"
        command = [
            str(lab.BIN / "ansible"),
            "--inventory",
            SITE.inventory,
            "proxy1",
            "-m",
            "gb10.vllm.proxy_server",
            "-a",
            words,
        ]
        subprocess.run(command, cwd=lab.ROOT, check=True, capture_output=True, timeout=60)


def put(host: str, path: str, text: str, mode: str = "644") -> None:
    lab.on(host, f"cat > {path} <<'END'\n{text}END\nchmod {mode} {path}")


def forget(host: str) -> None:
    """Whatever an earlier story or run has left: ours does not run, and there is no old world."""
    units = " ".join(reversed(OLD))
    lab.on(
        host,
        "for unit in vllm.service operations-layer.service; do systemctl disable --now $unit 2>/dev/null; done\n"
        "rm -f /etc/systemd/system.control/old-split* /etc/gb10-vllm/silenced.json /var/lib/gb10-vllm/pause/legacy.json\n"
        f"systemctl daemon-reload\nfor unit in {units}; do systemctl disable --now $unit 2>/dev/null; done\n"
        "rm -f /etc/systemd/system/old-split* /etc/systemd/system/operations-layer.service\n"
        "docker rm --force old-split 2>/dev/null\nsystemctl daemon-reload\nsystemctl reset-failed",
    )


@pytest.fixture(scope="module", autouse=True)
def old_world(hosts: None) -> Iterator[None]:
    """The site is installed and nothing of it runs; the old split serves, and the layer looks after it."""
    described = lab.describe()
    head = described["hosts"]["spark1"]["address"]
    SITE.must_play("site")
    nobody()
    for rank, host in enumerate(observe.HOSTS):
        forget(host)
        unit = SPLIT.format(
            model=described["model"],
            image=described["images"]["stand-in"],
            rank=rank,
            head=head,
            more="--headless" if rank else "--port 8000",
        )
        put(host, "/etc/systemd/system/old-split.service", unit)
        put(host, "/etc/systemd/system/old-split-watchdog.service", WATCHDOG)
        put(host, "/etc/systemd/system/old-split-watchdog.timer", TIMER)
        put(host, "/usr/local/bin/old-split-watchdog", SCRIPT, "755")
        put(host, "/usr/local/bin/operations-layer", OPERATIONS, "755")
        put(host, "/etc/systemd/system/operations-layer.service", OPERATIONS_UNIT)
        lab.on(
            host,
            f"systemctl daemon-reload && systemctl enable --now --quiet {OLD[0]} {OLD[2]} operations-layer.service",
        )
    lab.wait_for(old_serves, 60, "the old split serves")
    yield
    if not os.environ.get("GB10_E2E_KEEP"):
        for host in observe.HOSTS:
            forget(host)


def old_serves() -> bool:
    return (
        lab.on("spark1", "curl -s -o /dev/null -w %{http_code} http://127.0.0.1:8000/health || true").strip() == "200"
    )


def state(host: str) -> str:
    """All that says whether the old world is as it was: files, links, and what systemd makes of them."""
    return lab.on(
        host,
        "find /etc/systemd /run/systemd/system -not -name '*.swp' -not -path '*/vllm.service*' \\( -type l -o -type f \\) "
        "-printf '%p %y %l\\n' | sort; sha256sum /etc/systemd/system/old-split* /usr/local/bin/o*; "
        f"for unit in {OLD[0]} {OLD[2]} operations-layer.service llm.service; do systemctl is-enabled $unit; systemctl show $unit "
        "--property=Id,Names,LoadState,ActiveState,UnitFileState,UnitFilePreset,FragmentPath,WantedBy,TriggeredBy,NeedDaemonReload; "
        "done; systemctl show operations-layer.service --property=InvocationID,NRestarts",
    )


def stops(host: str, since: float) -> str:
    """What systemd says of our unit being stopped or started again."""
    return lab.on(
        host,
        f"journalctl --quiet --unit=vllm.service --since=@{since:.0f} --output=cat _PID=1 | grep -E 'Stopp|Start|Scheduled' || true",
    )


def lives(host: str) -> str:
    return lab.on(host, "systemctl show vllm --property=ActiveState,InvocationID,NRestarts,MainPID")


@pytest.mark.rotating
def test_killed_after_the_silencing_a_rollback_puts_everything_back() -> None:
    lab.wait_for(old_serves, 60, "the old split serves")
    before = {host: state(host) for host in observe.HOSTS}
    # the begin, where a release was here before the withdrawal, and a host's silencing
    assert SITE.killed_play("cutover", 3).returncode == -9
    assert lab.journal()[-1]["step"] == "silenced"
    output = " ".join(SITE.must_play("rollback").split())
    assert "clients are served by spark1" in output
    assert {host: state(host) for host in observe.HOSTS} == before
    assert {event["result"] for event in lab.journal() if event["step"] == "restored"} == {"ok"}


def test_silenced_the_new_copies_are_never_stopped() -> None:
    BEFORE.update({host: state(host) for host in observe.HOSTS})
    output = " ".join(SITE.must_play("cutover").split())
    assert "conflicts with vllm.service: starting the one stops the other" in output
    assert "starts or stops old-split.service by its script" in output
    observe.must_serve(observe.HOSTS)
    lived, since = {host: lives(host) for host in observe.HOSTS}, time.time() + 1
    asked = 0
    while time.time() < since + WATCHED:
        answer = observe.ask()
        assert answer.good, answer
        asked += 1
        time.sleep(0.5)
    assert {host: lives(host) for host in observe.HOSTS} == lived
    assert {host: stops(host, since) for host in observe.HOSTS} == dict.fromkeys(observe.HOSTS, "")
    for host in observe.HOSTS:
        assert lab.on(
            host, f"systemctl is-active operations-layer.service; systemctl is-active {' '.join(OLD)} || true"
        ).split() == [*("active", "inactive", "inactive", "inactive")]
        assert lab.on(host, f"systemctl start {OLD[0]} 2>&1 || true").count("masked") == 1
        assert {host: lives(host)} == {host: lived[host]}
    print(f"\n{WATCHED} s of a layer that looks every {LAYER} s: {asked} requests answered, no copy was stopped")
    for host in observe.HOSTS:
        print(f"{host}: {' '.join(lived[host].split())}; stopped since: 0 times")


@pytest.mark.rotating
def test_a_second_cutover_changes_nothing() -> None:
    with observe.nothing_stopped():
        assert "nothing changes" in SITE.must_play("cutover")


@pytest.mark.rotating
def test_two_enabled_worlds_are_refused_by_name() -> None:
    """Somebody takes the mask away and enables the old unit by hand: the layer starts it at once, and the next playbook says so."""
    lab.on(
        "spark2", f"rm /etc/systemd/system.control/{OLD[0]}; systemctl daemon-reload; systemctl enable --quiet {OLD[0]}"
    )
    done = SITE.play("site")
    assert done.returncode
    assert f"Two worlds are enabled on spark2: vllm.service, and unit {OLD[0]}" in observe.in_words(done)
    # one rank alone would greet the head that the rollback starts with a session that is over
    lab.on("spark2", f"systemctl disable --now --quiet {OLD[0]}")


def test_rollback_puts_all_three_back_as_they_were() -> None:
    output = SITE.must_play("rollback", variables={"vllm_rollback_to": "legacy"})
    assert "What was here before is back as it was; clients are served by spark1" in " ".join(output.split())
    observe.must_serve({"spark1"})
    for host in observe.HOSTS:
        assert state(host).splitlines() == BEFORE[host].splitlines(), host
        assert "ActiveState=inactive" in lives(host)


def test_only_stopped_the_old_world_stops_the_new_copy() -> None:
    """The baseline, with the old world back as it was: its unit and its watchdog are stopped and not disabled, and ours runs."""
    started = time.time()
    # The layer looks every few seconds, less than a slow machine takes for our start: its next look is when ours runs.
    layer = "systemctl kill operations-layer.service --signal="
    lab.on("spark1", f"{layer}STOP; systemctl stop {OLD[2]} {OLD[0]}; systemctl start vllm.service; {layer}CONT")
    lab.wait_for(
        lambda: "Stopped" in stops("spark1", started - 1), 60, "the layer starts the old unit, which stops ours"
    )
    assert stops("spark1", started - 1).startswith("Start"), "ours ran before"
    said = lab.on("spark1", f"journalctl --quiet --unit=operations-layer.service --since=@{started:.0f} --output=cat")
    assert f"starts {OLD[0]}" in said
    print(
        f"\nonly stopped: the layer started {OLD[0]}, and systemd stopped ours {time.time() - started:.0f} s after the owner's stop"
    )
