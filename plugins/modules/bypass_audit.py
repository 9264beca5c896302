#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bypass_audit
short_description: Find who walks past the proxy to an engine
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - On an engine host, looks for connections to the engine's port that come from somewhere else than O(sources) and the host itself, and
    for requests in the engine's log that did. Where the firewall's unit is active, looks whether its table is still there.
  - On every host, looks for processes that are connected to an engine of the site, in containers with a network of their own too, and
    for configuration files that name an engine's address or host with its port.
  - Reads C(/proc), the journal of the engine's unit and the files in O(paths). Changes nothing, opens no connection. Reports where
    something is, never the text of a file, an option of a process or the content of a request.
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  host:
    description: Inventory name of this host, for the findings.
    type: str
    required: true
  engines:
    description: The engines of the site.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Inventory name of its host.
        type: str
        required: true
      places:
        description: Its addresses, and names under which a client may reach it.
        type: list
        elements: str
        required: true
      port:
        description: HTTP port of the engine, 1 to 65535.
        type: int
        required: true
  sources:
    description: IP addresses and networks that may connect to an engine.
    type: list
    elements: str
    default: []
  hosts:
    description: The hosts of the site, to say who a client is.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      places:
        description: Its addresses and names.
        type: list
        elements: str
        required: true
      port:
        description: Not used.
        type: int
  proxy:
    description: What clients should use instead, for the findings.
    type: str
    default: the proxy
  accept:
    description: Units, containers, processes (command names) and files (paths) that may, as shell patterns.
    type: list
    elements: str
    default: []
  unit:
    description: The engine's unit.
    type: str
    default: vllm.service
  firewall_unit:
    description: The firewall's unit.
    type: str
    default: gb10-vllm-firewall.service
  watch_seconds:
    description: For how many seconds connections are watched, 0 (one look) to 600.
    type: int
    default: 3
  since_minutes:
    description: How many minutes of the engine's log are read, 0 (none) to 10080.
    type: int
    default: 60
  log_lines:
    description: How many of its last lines are read at most, 1 to 1000000.
    type: int
    default: 20000
  paths:
    description: Folders and files to look for configuration in. Links are not followed, other file systems are not entered.
    type: list
    elements: path
    default: [/etc]
  files:
    description: How many files are read at most, 1 to 1000000.
    type: int
    default: 20000
  file_kib:
    description: Size in KiB up to which a file is read, 1 to 65536.
    type: int
    default: 256
  files_seconds:
    description: For how many seconds files are read at most, 1 to 600.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Look for who walks past the proxy
  gb10.vllm.bypass_audit:
    host: "{{ inventory_hostname }}"
    engines:
      - {name: spark1, places: [192.168.1.11], port: 8000}
    sources: [192.168.1.21]
  register: audit
"""

RETURN = r"""
findings:
  description:
    - What was found. Each has C(kind) (V(connection), V(request), V(process), V(file) or V(firewall)), C(host), C(engine) and C(text), a
      line for people.
    - A connection or request has C(client), C(client_host) (empty for none of the site) and C(count); a process has C(pid),
      C(process), C(command), C(unit) and C(address); a file has C(path), C(line) and C(address).
  type: list
  elements: dict
  returned: always
files_read:
  description: How many files were read.
  type: int
  returned: always
limits:
  description: What was not looked at because a limit was reached, in words.
  type: list
  elements: str
  returned: always
"""

import ipaddress
import time
from fnmatch import fnmatchcase
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _bypass, _bypass_host, _host, _memory_host
from ansible_collections.gb10.vllm.plugins.module_utils._memory import holders

RANGES = {
    "watch_seconds": (0, 600),
    "since_minutes": (0, 10080),
    "log_lines": (1, 1000000),
    "files": (1, 1000000),
    "file_kib": (1, 65536),
    "files_seconds": (1, 600),
}
INTERVAL = 0.2
TABLE = ["nft", "list", "table", "inet", "gb10_vllm"]


class Audit:
    """One look at one host."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.host: str = options["host"]
        self.engines = [
            _bypass.Engine.make(entry["name"], entry["places"], entry["port"]) for entry in options["engines"]
        ]
        self.engine = next((engine for engine in self.engines if engine.name == self.host), None)
        self.sources = _bypass.Sources(
            [ipaddress.ip_network(source) for source in options["sources"]],
            _bypass_host.own_addresses(_bypass_host.PROC / "self"),
        )
        self.findings: list[dict[str, Any]] = []
        self.limits: list[str] = []
        self.files_read = 0

    def add(self, kind: str, engine: str, text: str, **more: Any) -> None:
        self.findings.append(
            {"kind": kind, "host": self.host, "engine": engine, "text": f"{self.host}: {text}", **more}
        )

    def accepted(self, *names: str) -> bool:
        plain = {
            part for name in names for part in (name, name.removeprefix("container "), name.removesuffix(".service"))
        }
        return any(fnmatchcase(name, pattern) for name in plain for pattern in self.options["accept"])

    def who(self, address: str) -> tuple[str, str]:
        """A client in words, and the inventory name of its host."""
        name = next((host["name"] for host in self.options["hosts"] if address in host["places"]), "")
        return (f"{address} (host {name})" if name else f"{address} (no host of the site)"), name

    def connections(self) -> None:
        """Watch who is connected: to this host's engine, and from this host to any."""
        strangers: set[tuple[_bypass.Address, int]] = set()
        mine: dict[tuple[int, str], tuple[_bypass_host.Process, str]] = {}
        seen: set[int] = set()
        deadline = _host.Deadline(self.options["watch_seconds"])
        while True:
            for number, folder in enumerate(_bypass_host.namespaces().values()):
                sockets, own = _bypass_host.sockets(folder), self.host if number == 0 else ""
                if self.engine and number == 0:
                    strangers |= _bypass.strangers(sockets, self.engine.port, self.sources)
                found = {
                    socket.inode: (socket, engine)
                    for socket, engine in _bypass.clients(sockets, self.engines, own)
                    if socket.inode and socket.inode not in seen
                }
                for inode, pid in _bypass_host.holders(set(found)).items():
                    seen.add(inode)
                    process, (socket, engine) = _bypass_host.process(pid), found[inode]
                    if process and not process.ansible:
                        mine.setdefault((pid, engine.name), (process, f"{socket.remote}:{socket.remote_port}"))
            if deadline.left <= 0:
                break
            deadline.pause(INTERVAL)
        self.add_strangers(strangers)
        self.add_processes(mine)

    def add_strangers(self, strangers: set[tuple[_bypass.Address, int]]) -> None:
        for address in sorted({str(address) for address, _port in strangers}):
            count = sum(str(other) == address for other, _port in strangers)
            words, name = self.who(address)
            self.add(
                "connection",
                self.host,
                f"{words} is or was just connected to the engine's own port {self.engine.port if self.engine else 0} "
                f"({count} connection{'s' * (count != 1)} seen). Let it use {self.options['proxy']} instead"
                + (f"; the lines of {name} say which process." if name else ", or name it in vllm_firewall_allow."),
                client=address, client_host=name, count=count,
            )  # fmt: skip

    def add_processes(self, mine: dict[tuple[int, str], tuple[_bypass_host.Process, str]]) -> None:
        names = _memory_host.container_names() if mine else {}
        engine_itself = {self.options["unit"], "container vllm"}
        for (pid, engine), (process, address) in sorted(mine.items()):
            unit = holders.owner(process.cgroup, names)
            if self.accepted(process.name, unit) or unit in engine_itself:
                continue
            self.add(
                "process",
                engine,
                f"process {process.name} (pid {pid}, {unit}, `{process.command}`) is connected to the engine of {engine} at {address}. "
                f"Let it use {self.options['proxy']} instead.",
                pid=pid, process=process.name, command=process.command, unit=unit, address=address,
            )  # fmt: skip

    def requests(self) -> None:
        if not self.engine or not self.options["since_minutes"]:
            return
        lines = _bypass_host.log_lines(self.options["unit"], self.options["since_minutes"], self.options["log_lines"])
        if len(lines) >= self.options["log_lines"]:
            self.limits.append(
                f"{self.host}: only the last {len(lines)} lines of the log of {self.options['unit']} were read (vllm_audit_log_lines)"
            )
        for address, entry in sorted(_bypass.requests(lines, self.sources).items(), key=lambda item: str(item[0])):
            words, name = self.who(str(address))
            self.add(
                "request",
                self.host,
                f"{words} sent {entry.count} request{'s' * (entry.count != 1)} past the proxy within {self.options['since_minutes']} "
                f"minutes, the last one `{entry.last}` at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(entry.stamp))}. "
                f"Let it use {self.options['proxy']} instead.",
                client=str(address), client_host=name, count=entry.count,
            )  # fmt: skip

    def files(self) -> None:
        files = _bypass_host.Files(
            self.options["files"], self.options["file_kib"] * 1024, self.options["files_seconds"]
        )
        find = _bypass.mentions(self.engines, self.host)
        for path, text in files.texts(self.options["paths"]):
            if self.accepted(path):
                continue
            for number, engine, address in find(text):
                self.add(
                    "file",
                    engine,
                    f"{path}:{number} names the engine of {engine} ({address}). Put {self.options['proxy']} there instead.",
                    path=path, line=number, address=address,
                )  # fmt: skip
        self.files_read = files.seen
        if files.limit:
            self.limits.append(f"{self.host}: {files.limit}")

    def firewall(self) -> None:
        if not self.engine or _host.unit_state(self.options["firewall_unit"])["ActiveState"] != "active":
            return
        if _host.run(TABLE, check=False).returncode:
            self.add(
                "firewall",
                self.host,
                "the firewall's unit is active, but somebody has flushed its table, so everybody reaches the engine's port. "
                f"Run `systemctl restart {self.options['firewall_unit']}` on it.",
            )


def main() -> None:
    engine = {
        "name": {"type": "str", "required": True},
        "places": {"type": "list", "elements": "str", "required": True},
        "port": {"type": "int", "required": True},
    }
    module = AnsibleModule(
        argument_spec={
            "host": {"type": "str", "required": True},
            "engines": {"type": "list", "elements": "dict", "required": True, "options": engine},
            "sources": {"type": "list", "elements": "str", "default": []},
            "hosts": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {**engine, "port": {"type": "int"}},
            },
            "proxy": {"type": "str", "default": "the proxy"},
            "accept": {"type": "list", "elements": "str", "default": []},
            "unit": {"type": "str", "default": "vllm.service"},
            "firewall_unit": {"type": "str", "default": "gb10-vllm-firewall.service"},
            "watch_seconds": {"type": "int", "default": 3},
            "since_minutes": {"type": "int", "default": 60},
            "log_lines": {"type": "int", "default": 20000},
            "paths": {"type": "list", "elements": "path", "default": ["/etc"]},
            "files": {"type": "int", "default": 20000},
            "file_kib": {"type": "int", "default": 256},
            "files_seconds": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    for name, (least, most) in RANGES.items():
        if not least <= module.params[name] <= most:
            module.fail_json(msg=f"{name} is {module.params[name]}: must be {least} to {most}")
    try:
        audit = Audit(module.params)
        audit.connections()
        audit.requests()
        audit.files()
        audit.firewall()
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"{module.params['host']} could not be looked at: {error}")
    module.exit_json(changed=False, findings=audit.findings, files_read=audit.files_read, limits=audit.limits)


if __name__ == "__main__":
    main()
