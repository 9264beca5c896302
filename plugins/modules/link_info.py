#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: link_info
short_description: Look at the direct link of a pair from one of its hosts, and try it
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Finds what the link of this very host is made of. These are the interface that has the address, its MTU, the RoCE devices, and in the
    table of each device the entry of RoCE version 2 for the address. All of them differ from machine to machine.
  - Tries the link to each of the other hosts with a packet as large as the interface allows that must not be fragmented, and the
    rendezvous port of the pair. Run on every host, this covers both ways.
  - Reports everything that cannot carry a pair, each with the way out, all at once. Reads C(/sys), C(/dev/infiniband), C(/proc) and the
    addresses of the host, and sends a few ICMP packets. Changes nothing.
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
  address:
    description: Address of this host on the link.
    type: str
    required: true
  interface:
    description: Interface that is expected to have the address. Empty takes the one that has it.
    type: str
    default: ""
  devices:
    description: RoCE devices that are to be used. An empty list takes those that have an entry for the address.
    type: list
    elements: str
    default: []
  rdma:
    description: Whether the pair uses RDMA. Without it no device is looked at.
    type: bool
    default: false
  memlock:
    description: Whether the container is given unlimited locked memory by an option of its own.
    type: bool
    default: false
  mtu:
    description: Least MTU of the interface in bytes, 0 for any.
    type: int
    default: 0
  peers:
    description: Addresses of the other hosts of the pair on the link.
    type: list
    elements: str
    default: []
  head:
    description: Address of rank 0 on the link.
    type: str
    required: true
  master_port:
    description: Rendezvous port of the pair on rank 0, 1 to 65535.
    type: int
    default: 29501
  base_dir:
    description: Folder of the collection's files on the host.
    type: path
    default: /etc/gb10-vllm
  release:
    description: A release on this host that is to be started again. What it says of the link must still be true. Empty looks at none.
    type: str
    default: ""
  root:
    description: Folder below which the system's tables are read.
    type: path
    default: /
"""

EXAMPLES = r"""
- name: Look at the direct link
  gb10.vllm.link_info:
    address: 192.168.177.12
    rdma: true
    memlock: true
    peers: [192.168.177.11]
    head: 192.168.177.11
  register: link
"""

RETURN = r"""
problems:
  description: What cannot carry a pair, each with the way out; empty when the link is good.
  type: list
  elements: str
  returned: always
interface:
  description: The interface that has the address.
  type: str
  returned: always
mtu:
  description: Its MTU in bytes.
  type: int
  returned: always
devices:
  description: The RoCE devices with the C(index), the C(address) and the C(interface) of the entry for each.
  type: list
  elements: dict
  returned: always
  sample: [{"name": "rocep1s0f1", "index": 3, "address": "192.168.177.12", "interface": "enp1s0f1np1"}]
gid_index:
  description: Index of the entry when there is exactly one device, else null, because each device has an index of its own.
  type: int
  returned: always
tables:
  description: All address tables of this host in one line, for people.
  type: str
  returned: always
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host, _link, _link_host


def rendezvous_problems(options: dict[str, Any]) -> list[str]:
    """On the head nobody else may have the port; from the others it has to be reachable."""
    port = options["master_port"]
    if options["head"] != options["address"]:
        why = _link_host.answers(options["head"], port)
        return (
            [
                f"port {port} (vllm_master_port) of {options['head']} cannot be reached over the link ({why}): look at the firewall there"
            ]
            if why
            else []
        )
    current = _host.read_json(f"{options['base_dir']}/current/release.json") or {}
    ours = current.get("topology") == "split" and _host.unit_state()["ActiveState"] in ("active", "activating")
    if _host.is_listening(port) and not ours:
        return [
            f"port {port} (vllm_master_port) is taken (`ss -ltnp sport = :{port}` names by whom): stop that, or change vllm_master_port"
        ]
    return []


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "address": {"type": "str", "required": True},
            "interface": {"type": "str", "default": ""},
            "devices": {"type": "list", "elements": "str", "default": []},
            "rdma": {"type": "bool", "default": False},
            "memlock": {"type": "bool", "default": False},
            "mtu": {"type": "int", "default": 0},
            "peers": {"type": "list", "elements": "str", "default": []},
            "head": {"type": "str", "required": True},
            "master_port": {"type": "int", "default": 29501},
            "base_dir": {"type": "path", "default": "/etc/gb10-vllm"},
            "release": {"type": "str", "default": ""},
            "root": {"type": "path", "default": "/"},
        },
        supports_check_mode=True,
    )
    options = module.params
    try:
        wish = _link.Wish(
            options["address"], options["interface"], tuple(options["devices"]), options["rdma"], options["mtu"]
        )
        devices = _link_host.devices(options["root"]) if options["rdma"] else []
        found = _link.find(wish, _link_host.interfaces(), devices)
        problems = list(found.problems)
        if options["rdma"]:
            problems += _link_host.rdma_problems(options["root"], options["memlock"])
        if found.mtu:
            problems += [
                f"a packet of {found.mtu} bytes does not pass unfragmented from {found.interface} to {peer} and back ({why}): give the link's "
                f"interfaces on both hosts the same MTU, and let ICMP pass"
                for peer in options["peers"]
                if (why := _link_host.fits(options["address"], peer, found.mtu))
            ]
            problems += rendezvous_problems(options)
        if options["release"]:
            record = _host.read_json(f"{options['base_dir']}/releases/{options['release']}/release.json") or {}
            problems += _link.recorded_problems(options["release"], record.get("environment") or {}, found)
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"the direct link could not be looked at: {error}")
    module.exit_json(
        changed=False,
        problems=problems,
        interface=found.interface,
        mtu=found.mtu,
        devices=[
            {"name": name, "index": entry.index, "address": entry.address, "interface": entry.interface}
            for name, entry in found.devices
        ],
        gid_index=_link.index(found),
        tables=_link.tables(devices),
    )


if __name__ == "__main__":
    main()
