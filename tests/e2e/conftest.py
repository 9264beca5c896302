# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets the stories import their neighbours, and gives those of the stand-in engine hosts to share.

The first failed test ends the session. The stories of the real engine come first, each on new hosts; those of the stand-in then
share their hosts, and each of them begins by bringing the site into the state it wants. GB10_E2E_KEEP=1 keeps the hosts as they
are, for a story that is being written. GB10_STORIES=today leaves out every second of the stories that are marked as rotating,
other ones each day.
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


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "rotating: one of several that are alike; CI tells half of them, other ones each day"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A stable sort: hosts that stories share are not taken away in between. Then, if asked for, today's half."""
    items.sort(key=lambda item: item.path.stem not in REAL)
    if os.environ.get("GB10_STORIES") == "today":
        rotating = [item for item in items if item.get_closest_marker("rotating")]
        left_out = rotating[int(time.time() // 86400) % 2 :: 2]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
        print("\nnot today: " + ", ".join(item.name for item in left_out))


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """What comes after a failure would only repeat it, minutes later."""
    if call.excinfo is not None and call.when in ("setup", "call"):
        item.session.shouldfail = f"the story ended at {item.name}"


@pytest.fixture(scope="session")
def hosts() -> None:
    """Hosts for the stories of the stand-in, new once per session."""
    lab.lab("up", "--engine", "both")
    if not os.environ.get("GB10_E2E_KEEP"):
        lab.lab("fresh", "spark1", "spark2", "proxy1")


@pytest.fixture(scope="module")
def copies(hosts: None, request: pytest.FixtureRequest) -> None:
    """Two copies serve as the story's own SITE says."""
    request.module.SITE.must_play("cutover")
    observe.must_serve(observe.HOSTS)


@pytest.fixture(scope="module")
def records(copies: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Clients that send from here to the end of the story; without retries of their own, so that nothing is hidden."""
    out = tmp_path_factory.mktemp("traffic") / "requests.jsonl"
    with lab.clients(out, "--retries", "0", *getattr(request.module, "CLIENTS", ())):
        observe.answered_more(out, 25)
        yield out
