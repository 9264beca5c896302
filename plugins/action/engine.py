# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the task's name so that an unreachable host is a failure; meta/runtime.yml lists who else goes this way."""

from __future__ import annotations

from ansible_collections.gb10.vllm.plugins.plugin_utils._reach import ReachingAction


class ActionModule(ReachingAction):
    """Needs nothing of its own."""
