# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real nginx of a test's own, on loopback, with the site that the role renders, or with another one beside it.

The files come from the role's own tasks, defaults and vars through Ansible's templating, so what the role adds is here too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import SERVERS, SITE, Nginx
from ansible_collections.gb10.vllm.tests.proxy.copies import free_port

ROLE = Path(__file__).resolve().parents[2] / "roles" / "proxy"
NGINX = "/usr/sbin/nginx"


class Member(Protocol):
    """What a site has to know of a copy."""

    name: str

    @property
    def address(self) -> str: ...


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 10) -> float:
    """Seconds until the condition held."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() < begun + seconds, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)
    return time.monotonic() - begun


def role_variables() -> dict[str, Any]:
    """The role's defaults and vars, with their templates."""
    loader = DataLoader()
    parts = (
        loader.load_from_file(str(ROLE / name / "main.yml"), trusted_as_template=True) for name in ("defaults", "vars")
    )
    return {name: value for part in parts for name, value in part.items()}


def role_files(variables: Mapping[str, Any], copies: Sequence[Member]) -> dict[str, str | None]:
    """The configuration files that the role's task installs, by their path below the configuration folder."""
    loader = DataLoader()
    tasks = loader.load_from_file(str(ROLE / "tasks" / "main.yml"), trusted_as_template=True)
    (task,) = [task["gb10.vllm.proxy_config"] for task in tasks if "gb10.vllm.proxy_config" in task]
    return {file["path"]: file["content"] or None for file in templated(task["files"], variables, copies)}


def templated(value: Any, variables: Mapping[str, Any], copies: Sequence[Member]) -> Any:
    """What a value of the role is on a proxy with these copies. The name of one of its variables stands for that variable."""
    loader = DataLoader()
    hosts = {}
    for copy in copies:
        address, _colon, port = copy.address.rpartition(":")
        hosts[copy.name] = {"vllm_address": address, "vllm_port": int(port)}
    facts: dict[str, list[str]] = {
        "all_ipv4_addresses": [],
        "all_ipv6_addresses": [],
    }  # so that copies on loopback are not "its own"
    site = {
        "groups": {"engines": list(hosts), "proxies": ["proxy1"]},
        "hostvars": hosts,
        "inventory_hostname": "proxy1",
        "ansible_facts": facts,
        "ansible_search_path": [str(ROLE)],
    }
    known = {**role_variables(), **site, **variables}
    return Templar(loader=loader, variables=known).template(known.get(value) if isinstance(value, str) else value)


class Site:
    """One nginx with its own folder. `text` replaces the role's site by another one, with {port} for the port.

    Further keywords are variables of the role. The folder is short, because names of unix sockets are.
    """

    def __init__(self, copies: Sequence[Member], workers: int = 2, text: str = "", **variables: Any) -> None:
        self.copies, self.port = list(copies), free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="gb10-proxy-"))
        self.run_dir = self.folder / "run"
        self.variables = {
            "vllm_proxy_listen_address": "127.0.0.1",
            "vllm_proxy_port": self.port,
            "vllm_proxy_access_log": str(self.folder / "access.log"),
            "vllm_proxy_error_log": str(self.folder / "site-error.log"),
            "vllm_proxy_conf_dir": str(self.folder),
            "vllm_proxy_pid_file": str(self.folder / "nginx.pid"),
            "vllm_proxy_inner_port": free_port(),
            "vllm_proxy_hold_socket": str(self.run_dir / "hold.sock"),
            **variables,
        }
        self.nginx = Nginx(str(self.folder), str(self.folder / "nginx.pid"), NGINX, 10)
        limits = {**role_variables(), **variables}
        self.members = _nginx.Membership(limits["vllm_proxy_max_fails"], limits["vllm_proxy_fail_timeout_seconds"])
        self.text = text
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self._lay_out(workers)
        except BaseException:  # a template that cannot be rendered leaves nothing behind
            shutil.rmtree(self.folder)
            raise

    def _lay_out(self, workers: int) -> None:
        for name in ("conf.d", "modules-enabled", "gb10-vllm", "run", "tmp"):
            (self.folder / name).mkdir()
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = "".join(f"    {kind}_temp_path {self.folder}/tmp/{kind};\n" for kind in kinds)
        # Around the site it is as on Debian, but everything that may be compressed is.
        (self.folder / "nginx.conf").write_text(
            f"{'user root;' if os.geteuid() == 0 else ''}\nworker_processes {workers};\npid {self.folder}/nginx.pid;\n"
            f"error_log {self.folder}/error.log;\ninclude {self.folder}/modules-enabled/*.conf;\n"
            "events { worker_connections 768; }\n"
            f"http {{\n    sendfile on;\n    tcp_nopush on;\n    access_log off;\n{temporary}"
            "    gzip on;\n    gzip_proxied any;\n    gzip_min_length 1;\n    gzip_types *;\n"
            f"    include {self.folder}/conf.d/*.conf;\n}}\n"
        )
        for name, text in {**self.files(), SERVERS: _nginx.render(self.members)}.items():
            if text is not None:
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_text(text)

    def files(self, **variables: Any) -> dict[str, str | None]:
        """The site's files, with these variables too."""
        if self.text:
            return {SITE: self.text.replace("{port}", str(self.port))}
        return role_files({**self.variables, **variables}, self.copies)

    # --- its life ---

    def __enter__(self) -> Self:
        command = [NGINX, "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", "daemon off;"]
        with (self.folder / "stderr").open("wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors)
        try:
            wait_for(self._is_up, f"nginx runs; it said: {(self.folder / 'stderr').read_text()}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _is_up(self) -> bool:
        assert self.process
        assert self.process.poll() is None, f"nginx ended: {(self.folder / 'stderr').read_text()}"
        return bool(self.nginx.master() and self.nginx.workers(self.process.pid).live)

    def __exit__(self, *_error: object) -> None:
        assert self.process
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        finally:
            self.process.kill()
            shutil.rmtree(self.folder, ignore_errors=True)

    def workers(self) -> _nginx.Workers:
        """The workers that accept, and the old ones that still have something to finish."""
        assert self.process
        return self.nginx.workers(self.process.pid)

    def log(self) -> str:
        """Its error logs, its own and the site's."""
        names = ("error.log", "site-error.log")
        return "".join(
            (self.folder / name).read_text(errors="replace") for name in names if (self.folder / name).exists()
        )

    def requests(self) -> list[dict[str, Any]]:
        """The access log, whose lines come after their clients have the answer, and in any order."""
        return [json.loads(line) for line in (self.folder / "access.log").read_text().splitlines()]

    def offers(self) -> list[list[str]]:
        """The addresses that each request was offered to."""
        return [re.split("(?:,| :) ", request["upstream"]) for request in self.requests()]

    # --- changes, each tested, reloaded and proven as the modules do it; seconds until the proof ---

    def apply(self, files: Mapping[str, str | None]) -> float:
        begun = time.monotonic()
        with self.nginx.lock():
            assert self.nginx.apply(files), "nginx does not run"
        return time.monotonic() - begun

    def reload(self) -> float:
        """The same files again."""
        return self.apply({SERVERS: _nginx.render(self.members)})

    def set_members(self, copies: Sequence[Member]) -> float:
        """Exactly these are admitted; one reload."""
        self.members = replace(self.members, servers=())
        for copy in copies:
            self.members = _nginx.admit(self.members, _nginx.Server(copy.name, copy.address))
        return self.reload()

    def admit(self, copy: Member) -> float:
        """One more."""
        self.members = _nginx.admit(self.members, _nginx.Server(copy.name, copy.address))
        return self.reload()

    def withdraw(self, copy: Member) -> float:
        """One less; its running requests go on."""
        self.members = _nginx.withdraw(self.members, copy.name)
        return self.reload()
