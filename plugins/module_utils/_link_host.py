# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the direct link of a host from the system's own tables, and tries it.

Private to this collection: may change at any time. Host-side, standard library only; the I/O edge of _link.py.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import struct
import time
from pathlib import Path

from ansible_collections.gb10.vllm.plugins.module_utils import _host, _link

# Of Linux; the socket module does not name them all.
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _DO = 10, 23, 2
_HEADERS = {4: 28, 6: 48}
TRIES = 3


def interfaces() -> list[_link.Interface]:
    return _link.interfaces(json.loads(_host.run(["ip", "-json", "address", "show"]).stdout))


def devices(root: str) -> list[_link.Device]:
    """Every port of every RDMA device below `root`, which is / but in tests."""
    base = Path(root, "sys/class/infiniband")
    return [
        _link.Device(device.name, int(port.name), _text(port / "state"), tuple(_entries(port)))
        for device in _children(base)
        for port in _children(device / "ports")
    ]


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _entries(port: Path) -> list[_link.Entry]:
    found = []
    for gid in sorted(_children(port / "gids"), key=lambda path: int(path.name)):
        # The kernel answers with an error for the type of an unused entry.
        address, kind = _link.plain(_text(gid)), _text(port / "gid_attrs" / "types" / gid.name)
        if address and kind:
            ndev = _text(port / "gid_attrs" / "ndevs" / gid.name)
            found.append(_link.Entry(int(gid.name), address, kind, ndev))
    return found


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""


def rdma_problems(root: str, memlock_given: bool) -> list[str]:
    """The device files, and the right of a container to lock memory; without either NCCL takes sockets and says nothing."""
    problems = []
    if not [path for path in _children(Path(root, "dev/infiniband")) if path.name.startswith("uverbs")]:
        problems.append("/dev/infiniband has no uverbs device: load the driver (`modprobe ib_uverbs mlx5_ib`)")
    if not memlock_given and (limit := _daemon_memlock(root)) != "unlimited":
        problems.append(
            f"a container may lock {limit or 'an unknown number of'} bytes of memory only: put --ulimit=memlock=-1 back into vllm_container_options"
        )
    return problems


def _daemon_memlock(root: str) -> str:
    """What containers inherit: the limit of the container engine itself."""
    pid = _text(Path(root, "run/docker.pid"))
    for line in _text(Path(root, "proc", pid or "self", "limits")).splitlines():
        if line.startswith("Max locked memory"):
            return line.split()[3]
    return ""


def fits(source: str, peer: str, mtu: int, seconds: float = 1.0) -> str:
    """Whether a packet as large as the interface allows arrives unfragmented, and the answer too; the reason if not."""
    version = 6 if ":" in peer else 4
    payload = os.urandom(max(mtu - _HEADERS[version], 56))
    number = int.from_bytes(os.urandom(2), "big")
    kind = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if version == 6 else (socket.AF_INET, socket.IPPROTO_ICMP)
    with socket.socket(kind[0], socket.SOCK_RAW, kind[1]) as raw:
        if version == 6:
            raw.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _DO)
        else:
            raw.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _DO)
        raw.bind((source, 0))
        for attempt in range(TRIES):
            try:
                raw.sendto(echo(version, number, attempt, payload), (peer, 0))
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    return f"the way there takes less than {mtu} bytes"
                return error.strerror or str(error)
            if _answered(raw, version, number, payload, time.monotonic() + seconds):
                return ""
    return "no answer"


def echo(version: int, number: int, sequence: int, payload: bytes) -> bytes:
    """An echo request; the kernel fills in the checksum of version 6."""
    kind = 128 if version == 6 else 8
    bare = struct.pack("!BBHHH", kind, 0, 0, number, sequence) + payload
    return struct.pack("!BBHHH", kind, 0, 0 if version == 6 else checksum(bare), number, sequence) + payload


def checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _answered(raw: socket.socket, version: int, number: int, payload: bytes, end: float) -> bool:
    while (left := end - time.monotonic()) > 0:
        raw.settimeout(left)
        try:
            packet = raw.recv(65536)
        except TimeoutError:
            return False
        # Version 4 comes with its header.
        body = packet if version == 6 else packet[(packet[0] & 15) * 4 :]
        reply = 129 if version == 6 else 0
        if len(body) >= 8 and body[0] == reply and struct.unpack("!H", body[4:6])[0] == number and body[8:] == payload:
            return True
    return False


def answers(peer: str, port: int) -> str:
    """Empty when something there accepts or refuses; why the port cannot be reached otherwise."""
    try:
        socket.create_connection((peer, port), timeout=3).close()
    except ConnectionRefusedError:
        return ""
    except OSError as error:
        return error.strerror or str(error) or "no answer"
    return ""
