# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the stories import their neighbours, and gives those of the stand-in engine hosts to share.

The first failed test ends the session. Stories of the real engine are marked `real`; they want the machine for themselves, and each
gets new hosts. Those of the stand-in share their hosts, and each of them begins by bringing the site into the state it wants; they
may be told on two labs at once (`--numprocesses 2 --dist loadfile`). GB10_E2E_KEEP=1 keeps the hosts as they are, for a story that is
being written. GB10_STORIES=today tells a sixth of the stories that are marked as rotating, and one of the real engine, other ones each day.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import observe
import site_of_lab as lab

REAL = ("test_cutover", "test_memory_refusal")
PARTS = 6
# All processes of a run have to agree, also around midnight.
TODAY = int(os.environ.setdefault("GB10_DAY", str(int(time.time() // 86400))))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "real: with the real engine, which needs the whole machine")
    config.addinivalue_line(
        "markers", f"rotating: CI tells one of {PARTS} parts of these each day, one story of the real engine"
    )


def unit(item: pytest.Item) -> str:
    """What is told or left out together."""
    module = item.getparent(pytest.Module)
    whole = module is not None and any(mark.name == "rotating" for mark in module.own_markers)
    return str(item.path) if whole else item.nodeid


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the stories of the real engine, and if asked for keep today's part of the rotating ones."""
    for item in items:
        if item.path.stem in REAL or item.path.stem.endswith("_real"):
            item.add_marker("real")
    if os.environ.get("GB10_STORIES") != "today":
        return
    left_out: list[pytest.Item] = []
    for real in (True, False):
        rotating = [i for i in items if i.get_closest_marker("rotating") and bool(i.get_closest_marker("real")) == real]
        # Neighbours stay together, because they share what it takes to begin; a story that is marked as a whole is told as a whole.
        units = list(dict.fromkeys(unit(item) for item in rotating))
        # The real engine takes minutes for each.
        parts = len(units) if real else PARTS
        today = {name for place, name in enumerate(units) if place * parts // len(units) == TODAY % parts}
        left_out += [item for item in rotating if unit(item) not in today]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
    if not lab.WORKER:
        print("\nnot today: " + ", ".join(item.name for item in left_out))


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """What comes after a failure would only repeat it, minutes later. What acted by itself on the hosts may be its reason."""
    if call.excinfo is not None and call.when in ("setup", "call"):
        item.session.shouldfail = f"the story ended at {item.name}"
        item.add_report_section(call.when, "what acted by itself on the hosts", observe.acted_by_themselves())


@pytest.fixture(scope="session")
def hosts() -> Iterator[None]:
    """Hosts for the stories of the stand-in, new once per session."""
    lab.lab("up", "--engine", "both")
    if not os.environ.get("GB10_E2E_KEEP"):
        lab.lab("fresh", "spark1", "spark2", "proxy1")
    yield
    if lab.WORKER:
        lab.lab("down")


@pytest.fixture(scope="module")
def copies(hosts: None, request: pytest.FixtureRequest) -> None:
    """Two copies serve as the story's own SITE says."""
    request.module.SITE.must_play("cutover")
    observe.must_serve(observe.HOSTS)


@pytest.fixture(scope="module")
def real_copies(request: pytest.FixtureRequest) -> None:
    """Two copies of the real engine serve as the story's own SITE says, on new hosts."""
    lab.lab("up", "--engine", "both")
    if not os.environ.get("GB10_E2E_KEEP"):
        lab.lab("fresh", *observe.HOSTS, "proxy1")
    request.module.SITE.must_play("cutover")
    observe.must_serve(observe.HOSTS)


@pytest.fixture(scope="module")
def records(copies: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clients that send from here to the end of the story; without retries of their own, so that nothing is hidden."""
    out = tmp_path_factory.mktemp("traffic") / "requests.jsonl"
    with lab.clients(out, "--retries", "0", *getattr(request.module, "CLIENTS", ())):
        observe.answered_more(out, 25)
        yield out
