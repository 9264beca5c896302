# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the proxy's access log says of each copy: requests by status, time to the first byte, answers that were cut.

Private to this collection: may change at any time. Host-side, standard library only, without I/O. The lines are those of the
role proxy's log format; nginx itself counts nothing per copy.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._exposition import Family

# Requests that no copy has answered.
NOBODY = "none"
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class Counts:
    """Counters since the program began; they only rise."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.cut: Counter[str] = Counter()
        self.retried: Counter[str] = Counter()
        self.first: dict[str, list[int]] = {}
        self.first_sum: dict[str, float] = {}
        self.unreadable = 0

    def add(self, line: str) -> None:
        """One line of the log. One that is no record is counted as such, and nothing else."""
        try:
            record = json.loads(line)
            copy, status, path = record["copy"] or NOBODY, int(record["status"]), record["path"]
        except (ValueError, KeyError, TypeError):
            self.unreadable += 1
            return
        if path == "/health":
            # Whoever watches asks for it all the time, and it is no work.
            return
        self.requests[copy, str(status)] += 1
        tried = [part for part in re.split(r"[,:]\s", record.get("upstream_status") or "") if part.strip()]
        if len(tried) > 1 and copy != NOBODY:
            self.retried[copy] += 1
        if record.get("method") != "POST" or copy == NOBODY:
            return
        # An answer that began well and has no end. Whether the copy or the client broke it off is not in the log.
        if status == 200 and record.get("completed") == "":
            self.cut[copy] += 1
        self._first_byte(copy, record)

    def _first_byte(self, copy: str, record: dict[str, Any]) -> None:
        """The client's wait: every attempt, and the time in the hold."""
        waits = [float(number) for number in _NUMBER.findall(str(record.get("first_byte_seconds") or ""))]
        if not waits:
            return
        wait = sum(waits)
        buckets = self.first.setdefault(copy, [0] * (len(BOUNDS) + 1))
        buckets[next((place for place, bound in enumerate(BOUNDS) if wait <= bound), len(BOUNDS))] += 1
        self.first_sum[copy] = self.first_sum.get(copy, 0.0) + wait

    def families(self) -> list[Family]:
        """All of it, for Prometheus."""
        requests = Family(
            "gb10_vllm_proxy_requests_total",
            "counter",
            "Requests that the proxy has answered, without those to /health.",
        )
        for (copy, status), count in sorted(self.requests.items()):
            requests.add(count, copy=copy, status=status)
        cut = Family(
            "gb10_vllm_proxy_cut_answers_total",
            "counter",
            "Answers that began with 200 and were broken off, by the copy or the client.",
        )
        retried = Family(
            "gb10_vllm_proxy_retried_total", "counter", "Requests that another copy had refused before this one."
        )
        for family, counts in ((cut, self.cut), (retried, self.retried)):
            for copy in sorted({copy for copy, _status in self.requests if copy != NOBODY}):
                family.add(counts[copy], copy=copy)
        first = Family("gb10_vllm_proxy_first_byte_seconds", "histogram", "Time to the first byte of a copy's answer.")
        for copy, buckets in sorted(self.first.items()):
            reached = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                reached += count
                first.add(reached, "_bucket", copy=copy, le=bound)
            first.add(reached, "_count", copy=copy)
            first.add(self.first_sum[copy], "_sum", copy=copy)
        unreadable = Family(
            "gb10_vllm_proxy_unreadable_lines_total", "counter", "Lines of the access log that are no record."
        )
        unreadable.add(self.unreadable)
        return [requests, cut, retried, first, unreadable]
