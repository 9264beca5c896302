# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy modules read of processes, while these change."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_process


@pytest.mark.parametrize(
    ("lists", "children"),
    [
        ([[1, 2], [1, 2]], [1, 2]),
        # 2 was left out because 1 ended while the list was read
        ([[3], [2, 3], [2, 3]], [2, 3]),
        ([[1, 2, 3], [3], [2, 3], [2, 3]], [2, 3]),
    ],
)
def test_children_are_those_of_two_lists_that_agree(monkeypatch: Any, lists: list[list[int]], children: Any) -> None:
    seen = iter(lists)
    monkeypatch.setattr(_nginx_process, "_children", lambda _pid: next(seen))
    assert _nginx_process.children(7) == children
    assert list(seen) == []


def test_children_of_a_process_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()
    assert _nginx_process.children(process.pid) == []
