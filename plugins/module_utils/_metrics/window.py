# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two readings of one copy, and what was between them.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._metrics import fetch
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.span import span
from ansible_collections.gb10.vllm.plugins.module_utils._metrics.text import MetricsError


def look_twice(address: str, port: int, interval: float, timeout: float, header: str) -> dict[str, Any]:
    """Two readings and what was between them; one reading where two are not to be had."""
    first = fetch.look(address, port, timeout, header)
    if not interval or first["state"] in ("absent", "off"):
        return {**first, "window": None}
    # The interval is what is measured, there is nothing to wait for.
    time.sleep(interval)
    second = fetch.look(address, port, timeout, header)
    if second["state"] != "read":
        return {**second, "window": None}
    if first["state"] != "read":
        return {**second, "window": None, "reason": f"no first reading: {first['reason']}"}
    try:
        return {**second, "window": span(first["reading"], second["reading"])}
    except MetricsError as error:
        return {"state": "unreadable", "reason": str(error), "reading": None, "window": None}
