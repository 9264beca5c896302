# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on hosts as a service, one file per program with a function ``main() -> int``; see M(gb10.vllm.host_program).

Private to this collection: may change at any time. Standard library only.
"""
