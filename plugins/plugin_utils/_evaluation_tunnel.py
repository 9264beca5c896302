# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A way from the controller to a port of a host's own loopback, over the connection that Ansible has to that host.

Private to this collection: may change at any time. Controller only.

An engine's port is open for the proxies and for nobody else, and a copy that is not admitted cannot be reached through them.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from ansible_collections.gb10.vllm.plugins.plugin_utils import _children

OPEN_SECONDS = 30.0
# Not through the connection that other tasks share: it would keep the forwarded port open after us. ssh takes the first value it sees.
_OWN = ("ControlMaster=no", "ControlPath=none", "ExitOnForwardFailure=yes", "BatchMode=yes")


class TunnelError(RuntimeError):
    """The port cannot be reached; the message says why and what else there is."""


@contextlib.contextmanager
def opened(connection: Any, port: int) -> Iterator[str]:
    """The URL by which the controller reaches the port while the block runs."""
    if connection.transport == "local":
        yield f"http://127.0.0.1:{port}"
        return
    way_out = "set vllm_evaluation_url to an address of the copy that the controller reaches"
    if connection.transport != "ssh":
        raise TunnelError(f"the connection {connection.transport} cannot forward a port: {way_out}")
    local = _free_port()
    words = connection._build_command(
        connection.get_option("ssh_executable"),
        "ssh",
        "-N",
        "-L",
        f"127.0.0.1:{local}:127.0.0.1:{port}",
        connection.get_option("host"),
    )
    if b"sshpass" in words[0]:
        raise TunnelError(f"a port is forwarded only with a key, not with a password: {way_out}")
    command = [words[0], *(word for option in _OWN for word in (b"-o", option.encode())), *words[1:]]
    process = _children.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _await(process, local, way_out)
        yield f"http://127.0.0.1:{local}"
    finally:
        _children.end(process)
        if process.stderr:
            process.stderr.close()


def _await(process: subprocess.Popen[bytes], port: int, way_out: str) -> None:
    end = time.monotonic() + OPEN_SECONDS
    while not _listens(port):
        if process.poll() is not None:
            said = (process.stderr.read() if process.stderr else b"").decode(errors="replace").strip().splitlines()
            raise TunnelError(f"ssh could not forward a port ({said[-1] if said else process.returncode}): {way_out}")
        if time.monotonic() > end:
            raise TunnelError(f"ssh did not forward a port within {OPEN_SECONDS:g} s: {way_out}")
        time.sleep(0.05)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
