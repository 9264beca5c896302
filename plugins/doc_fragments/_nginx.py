# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where nginx is on a host, and how long its reload may take. Private to this collection: may change at any time."""

from __future__ import annotations


class ModuleDocFragment:
    """C(DOCUMENTATION) for every module that looks at nginx, C(CHANGE) for those that reload it."""

    DOCUMENTATION = r"""
options:
  conf_dir:
    description: The configuration folder of nginx on this host.
    type: path
    default: /etc/nginx
  pid_file:
    description: The file in which the nginx master keeps its process id.
    type: path
    default: /run/nginx.pid
"""

    CHANGE = r"""
options:
  reload_seconds:
    description: How long to wait, in seconds, for the proof that a reload took effect. Range 1 to 300.
    type: int
    default: 10
"""

    LIMITS = r"""
options:
  max_fails:
    description:
      - After how many failures within O(fail_timeout_seconds) nginx leaves this server out for a while. Range 0 (never) to 10.
      - If not set, the limit that the role set for all servers is used.
    type: int
  fail_timeout_seconds:
    description:
      - How long nginx leaves out a server that failed, in seconds. Range 1 to 10.
        With a long time clients are turned away although the copy is well again.
      - If not set, the time that the role set for all servers is used.
    type: int
  weight:
    description:
      - The share of this server relative to the others. Range 1 to 100.
      - If not set, the weight that the role set for the copy of this name is used, else 1.
    type: int
  max_conns:
    description:
      - How many requests this server has at once at most; there is no queue in front of it, what no server can take gets 503. Range 0 (no limit) to 65535.
      - If not set, the number that the role set for the copy of this name is used, else 0.
    type: int
"""
