# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused before anything is stopped, and who may not begin because somebody else is at work.

Every test goes on from where the one before ended, which is always the same: two copies that nobody has touched.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated", "vllm_gate_deadline_seconds": 20})
SEATS = {"vllm_replicated_overrides": {"max-num-seqs": 11}}
RELEASES = "/etc/gb10-vllm/releases"
NOBODY = """
all:
  children:
    engines:
      hosts:
        spark9: {ansible_host: "{{ lab_net }}.99"}
"""
# A model of two files of weights of which one never came.
HALF = (
    "mkdir -p /var/tmp/half && cp /models/tiny/config.json /var/tmp/half/ && "
    "cp /models/tiny/model.safetensors /var/tmp/half/model-00001-of-00002.safetensors && "
    """echo '{"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}' """
    "> /var/tmp/half/model.safetensors.index.json"
)
# The same files on a disk of exactly their size.
FULL_DISK = (
    f"mkdir {RELEASES}.full && mount -t tmpfs -o size=16m full {RELEASES}.full && cp -a {RELEASES}/. {RELEASES}.full/ && "
    f"mount -o remount,size=$(df --output=used -k {RELEASES}.full | tail -n 1 | tr -d ' ')k {RELEASES}.full && "
    f"mount --bind {RELEASES}.full {RELEASES}"
)

pytestmark = pytest.mark.rotating


@contextlib.contextmanager
def changed(host: str, do: str, undo: str) -> Iterator[None]:
    lab.on(host, do)
    try:
        yield
    finally:
        lab.on(host, undo)


def refused(
    playbook: str, *words: str, variables: dict[str, Any] | None = None, environment: dict[str, str] | None = None
) -> str:
    """Play what must not change anything; returns what it said."""
    with observe.nothing_stopped():
        done = SITE.play(playbook, *words, variables=variables, environment=environment)
    assert done.returncode not in (0, -9)
    return observe.in_words(done)


@pytest.mark.usefixtures("copies")
def test_an_image_that_cannot_be_pulled() -> None:
    image = f"{lab.describe()['images']['stand-in'].partition('@')[0]}@sha256:{'0' * 63}1"
    words = refused("cutover", variables={**SEATS, "vllm_image": image})
    assert image in words
    assert "spark1" in words


@pytest.mark.usefixtures("copies")
def test_weights_that_are_not_complete_on_one_host() -> None:
    model = "{{ '/var/tmp/half' if inventory_hostname == 'spark2' else lab.model }}"
    with changed("spark2", HALF, "rm -rf /var/tmp/half"):
        words = refused("cutover", variables={"vllm_replicated_model": model})
    assert "spark2 does not have all weights" in words
    assert "missing model-00002-of-00002.safetensors" in words


@pytest.mark.usefixtures("copies")
def test_a_disk_that_is_full_when_the_release_is_written() -> None:
    with changed("spark2", FULL_DISK, f"umount {RELEASES} {RELEASES}.full; rmdir {RELEASES}.full"):
        words = refused("cutover", variables=SEATS)
        left = lab.on("spark2", f"ls -A {RELEASES}").split()
    assert "No space left on device" in words
    assert "spark2" in words
    assert all(name.startswith(("replicated-", "split-")) for name in left), f"half a release was left: {left}"


@pytest.mark.usefixtures("copies")
def test_a_proxy_whose_configuration_somebody_else_has_broken() -> None:
    broken = "/etc/nginx/conf.d/zz-somebody-else.conf"
    with changed("proxy1", f"echo 'no_such_word 1;' > {broken}", f"rm -f {broken}"):
        words = refused("cutover", variables=SEATS)
    assert "no_such_word" in words, "nginx's own words"
    assert broken in words


@pytest.mark.usefixtures("copies")
def test_a_previous_release_that_is_missing_on_one_host() -> None:
    # A rollout of the story's own, so that there is one to go back to.
    SITE.must_play("cutover", variables={"vllm_replicated_overrides": {"max-num-seqs": 12}})
    kept = observe.previous("spark2")
    with changed("spark2", f"mv {RELEASES}/{kept} /root/", f"mv /root/{kept} {RELEASES}/"):
        words = refused("rollback")
    assert "spark2" in words
    assert "cutover.yml" in words, "the next step"


@pytest.mark.usefixtures("copies")
def test_a_host_that_does_not_exist(tmp_path: Path) -> None:
    inventory = tmp_path / "one-too-many.yml"
    inventory.write_text(NOBODY)
    words = refused("cutover", "--inventory", str(inventory), variables=SEATS)
    assert "spark9" in words
    assert re.search(r"(?i)unreachable|could not be reached", words)


@pytest.mark.usefixtures("copies")
def test_the_second_operator_is_told_who_is_at_work_since_when_and_why() -> None:
    began = time.time()
    slow = {"vllm_topology": "split", "vllm_environment_overrides": {"STANDIN_LOAD_SECONDS": "40"}}
    with lab.meanwhile(SITE.play, "cutover", variables=slow, environment={"LOGNAME": "ada"}) as first:
        lab.wait_within(first, lambda: observe.happened("withdrawn", "spark1", began), "the first one is in its window")
        held = observe.lock()
        assert held is not None
        # A rollback takes over what was left, but not what is at work.
        second = SITE.play("rollback", environment={"LOGNAME": "grace"})
        assert not first.done(), "both were at work at the same time"
        assert (observe.lock() or {}).get("rollout") == held["rollout"]
        lines = " ".join(SITE.must_play("status").split())
    words = observe.in_words(second)
    assert second.returncode not in (0, -9)
    for part in ("ada", held["rollout"], held["why"], "has held the lock for"):
        assert part in words, part
    assert "stale" not in words, "a controller that is at work is not called gone"
    assert "held by ada" in lines
    assert first.result().returncode == 0, observe.in_words(first.result())
    observe.must_serve({"spark1"})
    SITE.must_play("rollback")
    observe.must_serve(observe.HOSTS)


@pytest.mark.usefixtures("copies")
def test_a_stale_lock_is_named_as_such_and_released_only_on_request() -> None:
    done = SITE.killed_play("cutover", 1, SEATS)
    assert done.returncode == -9
    left = observe.lock()
    assert left is not None
    refusal = SITE.play("cutover", variables=SEATS)
    assert refusal.returncode not in (0, -9)
    for part in (left["rollout"], "stale", "unlock.yml"):
        assert part in observe.in_words(refusal)
    assert observe.lock() == left, "nobody takes it away"
    released = " ".join(SITE.must_play("unlock").split())
    assert f"Released the lock of rollout {left['rollout']}" in released
    assert observe.lock() is None
    with observe.nothing_stopped():
        assert "Nobody held the lock" in " ".join(SITE.must_play("unlock").split())
    SITE.must_play("cutover", variables=SEATS)
    observe.must_serve(observe.HOSTS)
