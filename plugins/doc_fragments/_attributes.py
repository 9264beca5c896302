# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The attributes every module of the collection states. Private to this collection: may change at any time."""

from __future__ import annotations


class ModuleDocFragment:
    """C(DOCUMENTATION) has descriptions only, each module adds its own support; C(CONTROLLER) is complete."""

    DOCUMENTATION = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return a changed status prediction without modifying the target.
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
  idempotent:
    description: The second of two equal runs in a row, outside C(check_mode), reports no change.
"""

    CONTROLLER = r"""
options: {}
attributes:
  check_mode:
    description: Can run in C(check_mode) and return a changed status prediction without modifying the target.
    support: full
  diff_mode:
    description: Will return details on what has changed, or would change in C(check_mode), when in diff mode.
    support: none
  idempotent:
    description: The second of two equal runs in a row, outside C(check_mode), reports no change.
    support: full
  action:
    description: Runs completely on the controller.
    support: full
"""
