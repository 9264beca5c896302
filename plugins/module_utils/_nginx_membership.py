# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the list of admitted servers: tested, reloaded and proven.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of the modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import (
    Membership,
    NginxError,
    Server,
    admit,
    canonical,
    check_limits,
    is_own_listener,
    listens,
    parse,
    render,
    withdraw,
)
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS, SITE, Nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_process import is_local

# The options that every change of the membership has, as an argument spec.
OPTIONS: dict[str, Any] = {
    "name": {"type": "str", "required": True},
    "server": {"type": "str"},
    "max_fails": {"type": "int"},
    "fail_timeout_seconds": {"type": "int"},
    "weight": {"type": "int"},
    "max_conns": {"type": "int"},
    "reload_seconds": {"type": "int", "default": 10},
    "conf_dir": {"type": "path", "default": "/etc/nginx"},
    "pid_file": {"type": "path", "default": "/run/nginx.pid"},
}
LIMITS = ("max_fails", "fail_timeout_seconds", "weight", "max_conns")


def _check(params: dict[str, Any]) -> None:
    """Everything that can be refused without looking at the host."""
    check_limits(**{name: params.get(name) for name in LIMITS})
    for name, low, high in (("drain_seconds", 0, 86400), ("reload_seconds", 1, 300)):
        if not low <= params[name] <= high:
            raise NginxError(f"{name} is {params[name]}, must be {low} to {high}")
    if params["server"] is not None:
        params["server"] = canonical(params["server"])
    others = params.get("others") or []
    if others and params["state"] == "admitted":
        raise NginxError(
            "others only goes with state=withdrawn; admit the servers one after the other, each after its own gate"
        )
    for other in others:
        if not other.get("name") or not other.get("server"):
            raise NginxError(f"others has {other}, each entry needs a name and a server")
        other["server"] = canonical(other["server"])


def _names(params: dict[str, Any]) -> list[str]:
    return [params["name"], *(other["name"] for other in params.get("others") or [])]


def _wanted(params: dict[str, Any], before: Membership, site: str) -> Membership:
    if params["state"] == "withdrawn":
        for name in _names(params):
            before = withdraw(before, name)
        return before
    server = params["server"]
    if is_own_listener(server, listens(site), is_local(server)):
        raise NginxError(
            f"server {server} is the proxy's own address, requests would go in circles; give the address of the copy"
        )
    return admit(before, Server(params["name"], server, **{name: params.get(name) for name in LIMITS}))


def revise(nginx: Nginx, alter: Callable[[Membership, str], Membership], check_mode: bool = False) -> dict[str, Any]:
    """Make of the list what `alter` makes of it and of the site's text; the caller holds the lock."""
    text = nginx.read(SERVERS)
    if text is None and not check_mode:
        raise NginxError(f"{nginx.conf_dir}/{SERVERS} is missing: run the role gb10.vllm.proxy on this host first")
    before = Membership() if text is None else parse(text, f"{nginx.conf_dir}/{SERVERS}")
    after = alter(before, nginx.read(SITE) or "")
    old, new = render(before) if text is None else text, render(after)
    result: dict[str, Any] = {
        "changed": old != new,
        "tested": False,
        "reloaded_at": None,
        "admitted": [{"name": entry.name, "server": entry.server} for entry in after.servers],
        "running": nginx.master() is not None,
        "diff": {"before": old, "after": new, "before_header": SERVERS, "after_header": SERVERS},
        "withdrawn": {entry.server for entry in before.servers} - {entry.server for entry in after.servers},
    }
    if not result["changed"] or (check_mode and (text is None or not result["running"])):
        return result
    if check_mode:
        nginx.test({SERVERS: new}, traceless=True)
    else:
        result["reloaded_at"] = nginx.apply({SERVERS: new})
    result["tested"] = True
    return result


def _message(params: dict[str, Any], result: dict[str, Any]) -> str:
    said = f"{' and '.join(_names(params))} is {params['state']}" + ("" if result["changed"] else " already")
    if not result["running"]:
        said += "; nginx is not running, so this takes effect when it starts"
    if result.get("connections"):
        said += f"; {result['connections']} connections are left after {result['waited_seconds']} s"
    return said


def change(params: dict[str, Any], check_mode: bool, program: str | None) -> dict[str, Any]:
    """Admit or withdraw one server, on plain values; NginxError says why not."""
    started = time.time()
    _check(params)
    nginx = Nginx(params["conf_dir"], params["pid_file"], program, params["reload_seconds"])

    def alter(before: Membership, site: str) -> Membership:
        return _wanted(params, before, site)

    try:
        with nginx.lock():
            result = revise(nginx, alter, check_mode)
    except FileNotFoundError:  # no folder to lock: the role has never run here
        result = revise(nginx, alter, check_mode)
    servers = result.pop("withdrawn") | ({params["server"]} if params["server"] else set())
    servers |= {other["server"] for other in params.get("others") or []}
    if params["state"] == "withdrawn":
        # Outside the lock: another copy can be admitted while this one finishes its work.
        since = time.monotonic()
        left = nginx.drain(servers, 0 if check_mode else params["drain_seconds"])
        result |= {"drained": not left, "connections": left, "waited_seconds": round(time.monotonic() - since, 3)}
    return result | {"started_at": started, "done_at": time.time(), "msg": _message(params, result)}
