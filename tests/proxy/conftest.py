# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the collection and its filters importable, and prints the stories' table lines at the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.plugins.loader import init_plugin_loader

# Ansible's own loader, not the path alone: the role's templates use the collection's filters.
init_plugin_loader([str(Path(__file__).resolve().parents[2] / ".collections")])

LINES = pytest.StashKey[dict[str, list[str]]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LINES] = {}


@pytest.fixture
def table(request: pytest.FixtureRequest) -> Callable[..., None]:
    """table(heading, line, columns): printed under that heading, once below the columns, when all stories are over."""

    def add(heading: str, line: str, columns: str = "") -> None:
        lines = request.config.stash[LINES].setdefault(heading, [columns] if columns else [])
        lines.append(line)

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for heading, lines in config.stash[LINES].items():
        terminalreporter.section(heading, sep="-")
        for line in lines:
            terminalreporter.write_line(line)
