# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report has to ask the hosts of a rollout, from the events of its journal.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _report_timeline as timeline

# The traffic before and after a change is compared over a time that is as long as the change, within these bounds.
LEAST_SECONDS, MOST_SECONDS = 120.0, 600.0


def questions(events: Iterable[Any], now: float) -> dict[str, Any]:
    """By engine host the options of `rollout_traces`, and the spans of `access_log_info`."""
    known = timeline.usable(events)
    until = known[-1]["time"] + 1 if known else now
    asked: dict[str, Any] = {}
    for name in timeline.hosts(known):
        host = timeline.follow(known, name)
        stops = [span for span in host.spans if span.step == "stop" and span.result != "failed"]
        asked[name] = {
            "releases": releases(known, name),
            "starts": host.starts,
            "stops": [{"from": span.start, "to": span.end} for span in stops],
            "until": until,
        }
    return {"hosts": asked, "spans": spans(known, now)}


def releases(events: Sequence[timeline.Event], name: str) -> list[str]:
    """Every release of the host that the rollout was about."""
    begin = timeline.first(events, "begin")
    plan = (begin.get("hosts") or {}).get(name) or {}
    of_events = [event.get(key) for event in events if name in timeline.names(event) for key in ("from", "to")]
    found = [
        (begin.get("before") or {}).get(name),
        (begin.get("targets") or {}).get(name),
        plan.get("back"),
        *of_events,
    ]
    return [release for release in dict.fromkeys(found) if isinstance(release, str) and release]


def spans(events: Sequence[timeline.Event], now: float) -> list[dict[str, Any]]:
    """Before, during and after what clients could feel; empty when there was nothing of that kind."""
    change = timeline.change(events)
    if change is None:
        return []
    begin, end = change
    compared = min(MOST_SECONDS, max(LEAST_SECONDS, end - begin))
    found = [
        {"name": "before", "from": begin - compared, "to": begin},
        {"name": "during", "from": begin, "to": end},
        {"name": "after", "from": end, "to": max(end, min(now, end + compared))},
    ]
    away = [window for window in timeline.windows(events) if not window.open]
    if away:
        found.append({"name": "window", "from": away[0].start, "to": away[0].end})
    return found
