#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Tell what of a host's prerequisites is missing
version_added: "1.0.0"
author: gb10.vllm contributors (@gb10-vllm)
description:
  - Looks for what an engine needs on a host and reports every missing thing with the way out, all at once. These are systemd, a
    container engine that answers, the GPU runtime where GPUs are asked for, the devices, an address of the host, the link's
    interface, the other hosts of the pair, room on the disk, and a port that nobody else has.
  - Changes nothing.
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
  gpus:
    description: Whether containers are given GPUs.
    type: bool
    default: true
  devices:
    description: Device files or folders that containers are given.
    type: list
    elements: path
    default: []
  port:
    description: Port the engine is to listen on.
    type: int
    default: 8000
  address:
    description: Address that must belong to this host; not looked at when empty.
    type: str
    default: ""
  interface:
    description: Network interface that must exist and be up; not looked at when empty.
    type: str
    default: ""
  peers:
    description:
      - Addresses of the other hosts of the pair on the direct link, each of which must answer.
      - A host that refuses a connection has answered; asked are the ports of ssh and discard.
    type: list
    elements: str
    default: []
  folder:
    description: Folder for releases and caches; the file system of its nearest existing parent is looked at.
    type: path
    default: /var/lib/gb10-vllm
  free_gib:
    description: Free space that the folder's file system must have, in GiB.
    type: float
    default: 1
"""

EXAMPLES = r"""
- name: Look for what is missing
  gb10.vllm.host_info:
    address: 192.168.1.11
  register: host
"""

RETURN = r"""
problems:
  description: What is missing, each with the way out; empty when nothing is.
  type: list
  elements: str
  returned: always
docker_version:
  description: Version of the container engine, empty when it does not answer.
  type: str
  returned: always
"""

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _host
from ansible_collections.gb10.vllm.plugins.module_utils._release import CONTAINER

# ssh, and the discard port, which nobody has: a firewall that lets the pair's traffic pass lets the refusal pass too.
PEER_PORTS = (22, 9)


def docker_problems(gpus: bool) -> tuple[str, list[str]]:
    """Version of the container engine, and what is wrong with it."""
    try:
        done = _host.run(["docker", "info", "--format", "{{json .}}"], timeout=30, check=False)
    except _host.HostError as error:
        return "", [f"{error}: install Docker (DGX OS has it; elsewhere the package docker.io or docker-ce)"]
    information = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    version = information.get("ServerVersion") or ""
    if done.returncode != 0 or not version:
        words = (information.get("ServerErrors") or [done.stderr.strip() or "no answer"])[0]
        return "", [f"the container engine does not answer ({words}): look at `systemctl status docker`"]
    if gpus and "nvidia" not in (information.get("Runtimes") or {}) and not has_gpu_description():
        return version, [
            "the container engine has no GPU runtime: install nvidia-container-toolkit and run `nvidia-ctk runtime configure`, "
            "or take --gpus out of vllm_container_options on a host without a GPU"
        ]
    return version, []


def has_gpu_description() -> bool:
    """Newer container engines find GPUs by a CDI description instead of a runtime."""
    return any(any(Path(folder).glob("nvidia*")) for folder in ("/etc/cdi", "/var/run/cdi"))


def network_problems(address: str, interface: str) -> list[str]:
    problems = []
    interfaces = json.loads(_host.run(["ip", "-json", "address", "show"]).stdout)
    addresses = {entry["local"] for found in interfaces for entry in found.get("addr_info", [])}
    if address and address not in addresses:
        known = ", ".join(sorted(addresses))
        problems.append(f"vllm_address {address} is not an address of this host (it has {known}): correct vllm_address")
    if interface:
        found = {entry["ifname"]: entry for entry in interfaces}
        if interface not in found:
            names = ", ".join(sorted(found))
            problems.append(f"vllm_link_interface {interface} does not exist on this host (it has {names}): correct it")
        elif "UP" not in found[interface].get("flags", []):
            problems.append(f"vllm_link_interface {interface} is down: bring the direct link up first")
    return problems


def answers(peer: str) -> bool:
    """Whether a host is there: it accepts a connection or refuses it, instead of being silent."""
    for port in PEER_PORTS:
        try:
            socket.create_connection((peer, port), timeout=2).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            continue
        return True
    return False


def port_problems(port: int) -> list[str]:
    """The port may be open if it is our own engine that has it."""
    ours = _host.unit_state()["ActiveState"] in ("active", "activating") or _host.container_state(CONTAINER)
    if _host.is_listening(port) and not ours:
        return [
            f"port {port} is taken by something else than {_host.UNIT}: stop that (`ss -ltnp sport = :{port}` names it) or change vllm_port"
        ]
    return []


def disk_problems(folder: str, free_gib: float) -> list[str]:
    parent = Path(folder)
    while not parent.exists():
        parent = parent.parent
    free = shutil.disk_usage(parent).free / 2**30
    if free < free_gib:
        return [
            f"{parent} has {free:.1f} GiB free, {free_gib:g} GiB are needed for releases and caches: make room or set vllm_minimum_free_gib"
        ]
    return []


def problems_of(options: dict[str, Any]) -> tuple[str, list[str]]:
    if not os.path.isdir("/run/systemd/system"):
        return "", ["this host does not run systemd: the engine is a systemd unit"]
    version, problems = docker_problems(options["gpus"])
    problems += [
        f"device {device} does not exist: load its driver, or take it out of vllm_container_options"
        for device in options["devices"]
        if not os.path.exists(device)
    ]
    problems += network_problems(options["address"], options["interface"])
    problems += [
        f"the host of the pair at vllm_link_address {peer} does not answer: bring the direct link up, or correct the address"
        for peer in options["peers"]
        if not answers(peer)
    ]
    if version:
        problems += port_problems(options["port"])
    problems += disk_problems(options["folder"], options["free_gib"])
    return version, problems


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "gpus": {"type": "bool", "default": True},
            "devices": {"type": "list", "elements": "path", "default": []},
            "port": {"type": "int", "default": 8000},
            "address": {"type": "str", "default": ""},
            "interface": {"type": "str", "default": ""},
            "peers": {"type": "list", "elements": "str", "default": []},
            "folder": {"type": "path", "default": "/var/lib/gb10-vllm"},
            "free_gib": {"type": "float", "default": 1},
        },
        supports_check_mode=True,
    )
    try:
        version, problems = problems_of(module.params)
    except (OSError, ValueError, _host.HostError) as error:
        module.fail_json(msg=f"the host could not be looked at: {error}")
    module.exit_json(changed=False, problems=problems, docker_version=version)


if __name__ == "__main__":
    main()
