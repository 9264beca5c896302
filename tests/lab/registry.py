# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The registry on the lab's bridge. Its contents are a cache: they survive `down`."""

from __future__ import annotations

import http.client
import subprocess
from pathlib import Path

import processes
from settings import BRIDGE_ADDRESS, FOLDERS, REGISTRY, REPOSITORY
from shell import LabError, run, step, wait_until, write_atomically

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


def _pid_file() -> Path:
    return FOLDERS.run / "registry.pid"


def _configuration(storage: Path) -> str:
    return f"""version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {storage}}}
  maintenance: {{uploadpurging: {{enabled: false}}}}
http: {{addr: "{REGISTRY}"}}
"""


def _status(method: str, path: str) -> int | None:
    connection = http.client.HTTPConnection(BRIDGE_ADDRESS, int(REGISTRY.rpartition(":")[2]), timeout=5)
    try:
        connection.request(method, path, headers={"Accept": _MANIFEST})
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def running() -> bool:
    return processes.remembered(_pid_file()) is not None


def start() -> None:
    if running():
        return
    if _status("GET", "/v2/") is not None:
        raise LabError(f"{REGISTRY} is taken by a process that the lab did not start; end it first")
    with step(f"registry listens on {REGISTRY}"):
        storage = FOLDERS.cache / "registry"
        storage.mkdir(parents=True, exist_ok=True)
        configuration = FOLDERS.run / "registry.yml"
        write_atomically(configuration, _configuration(storage))
        with (FOLDERS.run / "registry.log").open("ab") as log:
            process = subprocess.Popen(
                ["docker-registry", "serve", str(configuration)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        processes.remember(_pid_file(), process.pid)

        def answers() -> bool:
            if process.poll() is not None:
                raise LabError(f"docker-registry ended with {process.returncode}, see {FOLDERS.run / 'registry.log'}")
            return _status("GET", "/v2/") == 200

        wait_until(answers, 20, f"registry on {REGISTRY}", interval=0.05)


def stop() -> None:
    processes.end(_pid_file())


def has(digest: str) -> bool:
    return _status("HEAD", f"/v2/{REPOSITORY}/manifests/{digest}") == 200


def push(archive: Path, tag: str) -> str:
    """Copy a docker-archive into the registry; the digest is what the hosts pull by."""
    digest_file = archive.with_suffix(".digest")
    destination = f"docker://{REGISTRY}/{REPOSITORY}:{tag}"
    run(
        [
            "skopeo",
            "copy",
            "--quiet",
            "--insecure-policy",
            "--dest-tls-verify=false",
            f"--digestfile={digest_file}",
            f"docker-archive:{archive}",
            destination,
        ],
        timeout=180,
    )
    return digest_file.read_text().strip()
