# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes `ansible_collections.gb10.vllm` importable from a clone, whatever its folder is called."""

from __future__ import annotations

import sys
from pathlib import Path

_TREE = Path(__file__).resolve().parents[2] / ".collections"
if "ansible_collections" not in sys.modules and str(_TREE) not in sys.path:
    sys.path.insert(0, str(_TREE))
