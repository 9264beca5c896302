# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The story of test_metrics.py with the real engine: its own counters, its own restart, to the token; and what a status costs."""

from __future__ import annotations

import time

import article
import pytest
import site_of_lab as lab

# The watchdog asks for tokens too, which no client gets.
SITE = lab.Site("real", {"vllm_topology": "replicated", "vllm_watchdog_enabled": False})
MOST_SECONDS = 5.0

pytestmark = [pytest.mark.rotating, pytest.mark.usefixtures("real_copies")]


def test_the_sum_is_what_clients_got() -> None:
    count = article.Count("real")
    article.must_be_right(count, article.tell(count))
    taken, text = [], ""
    for _look in range(3):
        began = time.monotonic()
        text = SITE.must_play("status")
        taken.append(time.monotonic() - began)
    print(text.partition("TASK [Show the site]")[2].partition("\n")[2].partition("ok: [localhost]")[0])
    print(f"status.yml took {', '.join(f'{seconds:.1f}' for seconds in taken)} s")
    assert min(taken) < MOST_SECONDS
