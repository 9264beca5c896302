# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What "N tokens" of a start-up log counts, by build and by the numbers themselves."""

from __future__ import annotations

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import layout


@pytest.mark.parametrize(
    ("version", "numbers", "expected"),
    [
        ("0.10.2", (), "blocks"),
        ("0.20.0", (), "blocks"),
        ("0.20.1", (), "concurrency"),
        ("0.33.0", (), "concurrency"),
        ("0.1.dev20073+g8e685d198", (), "unknown"),
        ("", (200_000, 12.0, 100_000), "blocks"),
        ("", (1_200_000, 12.0, 100_000), "concurrency"),
        ("0.19.0", (290_864, 33.04, 32_768), "blocks"),
        ("", (780_638, 2.98, 262_144), "concurrency"),
    ],
)
def test_meaning_of_the_logged_size(version: str, numbers: tuple[int, float, int], expected: str) -> None:
    assert layout.size_meaning(version, *numbers) == expected
