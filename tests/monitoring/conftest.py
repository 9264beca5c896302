# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests of the role monitoring that need no host: its rules in promtool, its dashboards."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Pages of three versions of vLLM, as the tests of the module copy_metrics have them.
sys.path[:0] = [str(HERE), str(HERE.parent / "unit" / "plugins" / "module_utils" / "metrics")]
