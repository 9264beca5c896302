# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in front: who is admitted, which workers nginx has, and what is open between it and the servers. Reads only.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import Membership, Workers, canonical, parse, share_of
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS, SITE, Nginx


def look(conf_dir: str, pid_file: str, others: Iterable[str] = ()) -> dict[str, Any]:
    """All of it; connections are counted to the admitted servers and to `others`.

    Raises:
        NginxError: the list of servers is not one of ours, or nginx cannot be asked.
    """
    nginx = Nginx(conf_dir, pid_file, program=None)
    text = nginx.read(SERVERS)
    membership = Membership() if text is None else parse(text, f"{nginx.conf_dir}/{SERVERS}")
    master = nginx.master()
    workers = nginx.workers(master) if master else Workers()
    servers = {entry.server for entry in membership.servers} | {canonical(server) for server in others}
    return {
        "configured": text is not None and nginx.read(SITE) is not None,
        "admitted": [
            {
                "name": entry.name,
                "server": entry.server,
                "max_fails": membership.max_fails if entry.max_fails is None else entry.max_fails,
                "fail_timeout_seconds": entry.fail_timeout_seconds or membership.fail_timeout_seconds,
                **dict(zip(("weight", "max_conns"), share_of(membership, entry), strict=True)),
            }
            for entry in membership.servers
        ],
        "withdrawn": {
            name: {key: record[key] for key in ("since", "by", "reason")}
            for name, record in membership.withdrawn.items()
        },
        "running": master is not None,
        "master_pid": master,
        "worker_pids": sorted(workers.live),
        "draining_worker_pids": sorted(workers.draining),
        "connections": nginx.connections(servers),
    }
