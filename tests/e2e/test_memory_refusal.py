# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory plan on the lab: the proposed share starts and is measured, what does not fit is refused before anything stops.

Every test goes on from where the one before ended; the first failure ends the story.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import site_of_lab as lab

# Both hosts share one machine, so each copy may only have a small part of it.
LAB = {
    "vllm_topology": "replicated",
    "vllm_plan_system_gib": 0.5,
    "vllm_plan_engine_outside_gib": 0.5,
    "vllm_plan_keep_free_gib": 0.5,
    "vllm_plan_start_margin_gib": 0.1,
    "vllm_plan_start_drift_gib": 0,
    "vllm_plan_overhead_gib": 0.6,
    "vllm_plan_ceiling": 0.08,
    "vllm_plan_engine": {"block_size": 128, "batches_in_flight": 1},
}
SITE = lab.Site("real", LAB)
HOSTS = ("spark1", "spark2")
HOG_GIB = 2
HOG = f"import time; held = b'x' * ({HOG_GIB} << 30); open('/run/hog', 'w').close(); time.sleep(3600)"

ASK_HEALTH = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=10).status)"

pytestmark = pytest.mark.rotating


@pytest.fixture(scope="module", autouse=True)
def copies_serve() -> None:
    """Two copies of the real engine on new hosts."""
    lab.lab("up", "--engine", "both")
    lab.lab("fresh", "spark1", "spark2", "proxy1")
    SITE.must_play("cutover")


@pytest.fixture
def hog() -> Iterator[None]:
    """A unit of somebody else's on one host that holds memory."""
    lab.on("spark2", f'systemd-run --quiet --unit=hog python3 -c "{HOG}"')
    try:
        lab.wait_for(lambda: lab.on("spark2", "ls /run").split().count("hog") == 1, 60, "hog.service holds its memory")
        yield
    finally:
        lab.on("spark2", "systemctl stop hog; rm -f /run/hog")


def capacity(kv_bytes: int, version: str, ranks: int = 1) -> dict[str, Any]:
    """What the plan's arithmetic says of so many bytes for the lab's model."""
    sys.path.insert(0, str(lab.ROOT / ".collections"))
    from ansible_collections.gb10.vllm.plugins.module_utils._memory import wire

    model = json.loads(lab.on("spark1", "cat /models/tiny/config.json"))
    engine = {
        "max_model_len": 2048,
        "block_size": 128,
        "batches_in_flight": 1,
        "model_bytes": 4,
        "tensor_parallel_size": ranks,
    }
    return wire.capacity(model, engine, kv_bytes, version, "fp32")


def share(value: float) -> dict[str, Any]:
    return {"vllm_replicated_overrides": {"gpu-memory-utilization": value}}


def plan(folder: Path, variables: dict[str, Any] | None = None) -> dict[str, Any]:
    """The plan as JSON, made beside whatever runs."""
    file = folder / "plan.json"
    SITE.must_play("plan", variables={"vllm_plan_json": str(file), **(variables or {})})
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def starts() -> dict[str, str]:
    return {host: lab.on(host, "systemctl show vllm --property=InvocationID,ActiveState") for host in HOSTS}


def refused(variables: dict[str, Any]) -> str:
    """The words with which a cutover ends that must not have touched anything."""
    before = starts()
    done = SITE.play("cutover", variables=variables)
    assert done.returncode != 0
    assert starts() == before, "nothing was stopped"
    assert all("ActiveState=active" in state for state in before.values())
    for host in HOSTS:
        assert (
            lab.on(host, "curl --silent --output /dev/null --write-out '%{http_code}' http://127.0.0.1:8000/health")
            == "200"
        )
    return " ".join((done.stdout + done.stderr).split())


def measured(host: str, topology: str = "replicated") -> dict[str, Any]:
    """The newest start that was kept on a host."""
    text = lab.on(host, f"cat /var/lib/gb10-vllm/measured/*-{topology}-*.json")
    newest: dict[str, Any] = json.loads(text)["starts"][-1]
    return newest


def equal(start: dict[str, Any], kv_bytes: int, ranks: int) -> None:
    """The log rounds the bytes to a hundredth of a GiB, and says blocks, tokens and concurrency exactly."""
    exact = start["blocks"] * capacity(1 << 30, start["version"], ranks)["block_bytes"]
    assert abs(exact - kv_bytes) < (1 << 30) // 100
    ours = capacity(exact, start["version"], ranks)
    assert (ours["tokens"], ours["concurrency"]) == (start["tokens"], start["concurrency"])


def test_the_plan_is_made_beside_a_serving_model(tmp_path: Path) -> None:
    before = starts()
    found = plan(tmp_path)
    assert starts() == before
    assert found["verdict"] == "replicate"
    for host in HOSTS:
        assert found["hosts"][host]["engine"]["running"]
        assert found["hosts"][host]["engine"]["gives_back_bytes"] > 200 << 20
        assert found["hosts"][host]["total_source"] == "last start"
        assert found["arguments"]["replicated"][host]["gpu-memory-utilization"] == 0.08


def test_the_proposed_share_starts_and_holds_what_was_planned(tmp_path: Path) -> None:
    planned = {row["host"]: row for row in plan(tmp_path)["copies"]}
    SITE.must_play("cutover", variables=share(0.08))
    for host in HOSTS:
        start = measured(host)
        assert start["verdict"] == "ok"
        assert start["utilization"] == 0.08
        assert start["concurrency"] == pytest.approx(planned[host]["requests"], rel=0.15)
        equal(start, start["kv_bytes"], 1)
    assert all(row["measured"] for row in plan(tmp_path, share(0.08))["copies"])


def test_one_step_above_the_band_is_refused(tmp_path: Path) -> None:
    words = refused(share(0.09))
    assert "the largest utilization that fits is 0.08" in words


@pytest.mark.usefixtures("hog")
def test_memory_that_another_process_holds_is_refused_by_its_name(tmp_path: Path) -> None:
    wide = {"vllm_plan_ceiling": 0.99, "vllm_plan_strict": False}
    found = plan(tmp_path, wide)
    # fits once the hog is gone, and not before
    have, total = found["admissions"]["spark2"]["have"], found["hosts"]["spark2"]["total_bytes"]
    wanted = int((have + (HOG_GIB << 29)) / total * 100) / 100
    words = refused({**wide, **share(wanted)})
    assert f"utilization {wanted:.2f} needs" in words
    assert "GiB are missing; the largest utilization that fits is" in words
    assert "that the running engine gives back" in words
    assert (
        f"hog.service: python3, pid {lab.on('spark2', 'systemctl show hog --property=MainPID --value').strip()}"
        in words
    )
    lock = lab.on("proxy1", "ls /var/lib/gb10-vllm/rollouts | grep -c '^lock' || true").strip()
    assert lock == "0", "a refused cutover leaves the site free for the next one"


def test_a_pair_over_two_hosts_holds_what_the_plan_says(tmp_path: Path) -> None:
    split = {"vllm_topology": "split"}
    planned = {row["host"]: row for row in plan(tmp_path, split)["asked"]["ranks"]}
    SITE.must_play("cutover", variables=split)
    head = measured("spark1", "split")
    assert (head["verdict"], head["settings"]["tensor_parallel_size"]) == ("ok", 2)
    assert head["concurrency"] >= 0.85 * planned["spark1"]["requests"]
    second = measured("spark2", "split")
    assert second["verdict"] == "unmeasured", "a rank without a port does not say how much fits"
    equal(head, min(head["kv_bytes"], second["kv_bytes"]), 2)
    assert all(row["measured"] for row in plan(tmp_path, split)["ranks"])
