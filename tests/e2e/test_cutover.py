# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The main job with the real engine: one story in the order in which an owner lives through it.

Every test goes on from where the one before ended, on hosts that were new at the start; the first failure ends the story.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import demo
import observe
import pytest
import site_of_lab as lab

# `make e2e ENGINE=stand-in` tells the same story in less time.
ENGINE = os.environ.get("ENGINE", "real")
# Long enough for a heartbeat in every start.
SLOW = {} if ENGINE == "real" else {"vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "8"}}
SITE = lab.Site(ENGINE, {"vllm_gate_heartbeat_seconds": 2, **SLOW})
SPLIT, COPIES = {"vllm_topology": "split"}, {"vllm_topology": "replicated"}
BOOT = "cat /proc/sys/kernel/random/boot_id; stat -c %Y /proc/1"
# The promise: an article's owners waited 30 s for this.
MOST_SECONDS_TO_FIRST_ANSWER = 1.0


@pytest.fixture(scope="module", autouse=True)
def new_hosts() -> None:
    """Hosts as they are when nothing of the collection has ever run on them."""
    lab.lab("up", "--engine", "both")
    lab.lab("fresh", "spark1", "spark2", "proxy1")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clients that send from the first split to the end of the story."""
    out = tmp_path_factory.mktemp("traffic") / "requests.jsonl"
    with lab.clients(out):
        yield out


def test_first_start_as_a_split() -> None:
    output = SITE.must_play("cutover", variables=SPLIT)
    assert "split serves from spark1" in output
    assert re.search(r"spark2: .*\d+ s \((expected \d+ s, )?at most \d+ s\)", output), (
        "a heartbeat per host while the engine loads"
    )


def test_cutover_to_copies_under_load(records: Path) -> None:
    figures = demo.change("cutover", SITE, records, COPIES, quiet=True)
    print("\n" + json.dumps(figures))
    assert figures["requests"]["before"].keys() == {"200"}
    assert figures["requests"]["after"].keys() == {"200"}
    assert figures["copies"]["after"].keys() == {"spark1", "spark2"}, "both copies answer"
    assert set(figures["requests"]["during"]) <= {"200"}, "whoever came while no copy served has waited"
    assert figures["gate_to_first_200_seconds"] <= MOST_SECONDS_TO_FIRST_ANSWER
    assert figures["window_seconds"] >= figures["engine_start_seconds"] > 0


def test_the_first_copy_did_not_wait_for_the_second() -> None:
    events = {(event["step"], event["host"]): event["time"] for event in lab.journal()}
    for host in ("spark1", "spark2"):
        assert events["admitted", host] - events["passed", host] < MOST_SECONDS_TO_FIRST_ANSWER, host
        assert events["admitted", host] < events["settled", "proxy1"]


@pytest.mark.rotating
def test_reboot_of_a_host_its_copy_comes_back_and_the_other_serves(records: Path) -> None:
    begin = time.time()
    boot = lab.on("spark2", BOOT)
    subprocess.run(
        [str(lab.BIN / "python"), str(lab.ROOT / "tests" / "lab"), "exec", "spark2", "--", "systemctl", "reboot"],
        check=False,
    )

    def answers_again() -> bool:
        try:
            return lab.on("spark2", BOOT, timeout=10) != boot
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    lab.wait_for(answers_again, 120, "spark2 boots")
    booted = time.time()

    def serves_again() -> bool:
        return any(r["complete"] and r["copy"] == "spark2" and r["start"] > booted for r in observe.read(records))

    seconds = lab.wait_for(serves_again, 240, "spark2 answers through the proxy after its boot")
    print(f"\nspark2 serves again {seconds:.0f} s after its boot")
    back = min(
        r["start"] for r in observe.read(records) if r["complete"] and r["copy"] == "spark2" and r["start"] > booted
    )
    # A request that was running on the host when it was told to reboot is the engine's to end; every later one is ours.
    meanwhile = [r for r in observe.read(records) if begin + 1 < r["start"] < back]
    assert len(meanwhile) > 20
    assert [r for r in meanwhile if not r["complete"]] == []
    assert sum(r["copy"] == "spark1" for r in meanwhile) > 20, "the other copy served meanwhile"


def test_status_is_a_table_for_people() -> None:
    output = SITE.must_play("status")
    for words in ("COPY", "spark1", "spark2", "replicated-", "admitted: spark1", "ended well"):
        assert words in output


@pytest.mark.rotating
def test_a_change_of_one_hosts_share_renews_that_copy_while_the_other_serves(records: Path) -> None:
    sent, before = len(observe.read(records)), observe.start_of("spark2")
    share = "{{ {'gpu-memory-utilization': 0.07} if inventory_hostname == 'spark2' else {} }}"
    with observe.untouched("spark1"):
        SITE.must_play("cutover", variables={**COPIES, "vllm_replicated_overrides": share})
    assert observe.start_of("spark2") != before
    observe.must_serve(observe.HOSTS)
    seen = observe.read(records)[sent:]
    assert [r for r in seen if not r["complete"]] == []
    assert len(seen) > 50
    events = lab.journal()
    (left,) = (event for event in events if event["step"] == "withdrawn")
    told = {event["step"]: event for event in events if event["host"] == left["host"]}
    away, loaded = told["admitted"]["time"] - left["time"], told["loaded"]["seconds"]
    assert away > loaded > 0
    print(
        f"\n{left['host']} was away for {away:.1f} s, of which {loaded:.1f} s to load; {len(seen)} requests, 0 failed"
    )


def test_rollback_runs_the_old_files_byte_for_byte(records: Path) -> None:
    """To a state that is named, because the newest one before is the other share."""
    old = {
        host: lab.on(host, "cd /etc/gb10-vllm/releases/split-* && cat start release.json unit.conf")
        for host in ("spark1", "spark2")
    }
    first = observe.journals()[0].removesuffix(".jsonl")
    figures = demo.change("rollback", SITE, records, {"vllm_rollback_to": first}, quiet=True)
    print("\n" + json.dumps(figures))
    now = {
        host: lab.on(host, "cd /etc/gb10-vllm/current && cat start release.json unit.conf")
        for host in ("spark1", "spark2")
    }
    assert now == old
    assert figures["copies"]["after"].keys() == {"spark1"}, "the head of the split answers"
    assert figures["requests"]["after"].keys() == {"200"}
    assert figures["gate_to_first_200_seconds"] <= MOST_SECONDS_TO_FIRST_ANSWER


def test_works_from_an_installed_collection(tmp_path: Path) -> None:
    environment = {
        "PATH": f"{lab.BIN}:/usr/bin:/bin:/usr/sbin",
        "HOME": str(tmp_path),
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path),
        "ENGINE": ENGINE,
    }

    def call(*command: str, folder: Path) -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    call("ansible-galaxy", "collection", "build", "--output-path", str(tmp_path), folder=lab.ROOT)
    (archive,) = tmp_path.glob("gb10-vllm-*.tar.gz")
    call("ansible-galaxy", "collection", "install", "--offline", "-p", str(tmp_path), str(archive), folder=tmp_path)
    inventory, variables = str(lab.ROOT / "inventories" / "lab"), json.dumps({**SITE.variables, **SPLIT})
    assert "split-" in call("ansible-playbook", "-i", inventory, "gb10.vllm.status", folder=tmp_path)
    output = call("ansible-playbook", "-i", inventory, "gb10.vllm.cutover", "--check", "-e", variables, folder=tmp_path)
    assert "nothing changes" in output
