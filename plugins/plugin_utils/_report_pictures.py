# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Draws Vega-Lite charts with vl-convert, a library of the controller; without it a report has its tables only.

Private to this collection: may change at any time. The library runs in a process of its own: it brings an engine for scripts, which does
not belong into Ansible's workers, and a process can be ended when it takes too long.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

SECONDS = 60
MISSING = (
    "vl-convert-python is missing in the Python that runs ansible-playbook, so the report has its tables but no pictures: install it there "
    "(`python3 -m pip install 'vl-convert-python>=1.8'`) and run the playbook report.yml"
)
_NO_LIBRARY = 3
# No base URL is allowed: a chart brings its data along and asks no network for anything.
_PROGRAM = f"""
import json, sys
try:
    import vl_convert
except ImportError:
    sys.exit({_NO_LIBRARY})
draw = lambda chart: vl_convert.vegalite_to_svg(chart, allowed_base_urls=[])
json.dump({{name: draw(chart) for name, chart in json.load(sys.stdin).items()}}, sys.stdout)
"""


def draw(
    charts: Mapping[str, Any], python: str = sys.executable, seconds: float = SECONDS
) -> tuple[dict[str, str], str]:
    """The charts as SVG by name, and why there are none, in words; empty when all is well."""
    if not charts:
        return {}, ""
    try:
        done = subprocess.run(
            [python, "-c", _PROGRAM],
            input=json.dumps(charts),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode == _NO_LIBRARY:
            return {}, MISSING
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {}, f"the pictures could not be drawn: {said[:300]}"
        return dict(json.loads(done.stdout)), ""
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return {}, f"the pictures could not be drawn: {type(error).__name__} {str(error)[-200:]}"
