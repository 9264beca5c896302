# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lab is made of: names, addresses, folders. Nothing here touches the machine."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

# A second lab beside the first needs a network (and a GB10_LAB_DIR) of its own; the names of its bridge, wires and
# control groups follow from the number.
FIRST_NET = 90
NET = int(os.environ.get("GB10_LAB_NET", FIRST_NET))
SUFFIX = "" if NET == FIRST_NET else f"-{NET}"
BRIDGE = "gb10lab0" if NET == FIRST_NET else f"gb10lab{NET}"
BRIDGE_ADDRESS = f"198.18.{NET}.1"
PREFIX_LENGTH = 24
HOSTS = {"spark1": f"198.18.{NET}.11", "spark2": f"198.18.{NET}.12", "proxy1": f"198.18.{NET}.21"}

REGISTRY = f"{BRIDGE_ADDRESS}:5000"
REPOSITORY = "eugr/spark-vllm-b12x"
ENGINES = ("real", "stand-in")

# The hosts run Debian 12 whatever the machine runs: its Python is the one the engine's packages are chosen for.
SUITE = "bookworm"
PYTHON = "3.11"
MIRROR = os.environ.get("GB10_LAB_MIRROR", "")

MODEL_IN_HOST = "/models/tiny"
ENGINE_IN_HOST = "/opt/vllm"
ENGINE_MOUNTS = [f"{ENGINE_IN_HOST}:{ENGINE_IN_HOST}:ro"]

MACHINE = platform.machine()
IMAGE_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(MACHINE, MACHINE)

SOURCE = Path(__file__).resolve().parent
STANDIN = SOURCE.parent / "standin" / "vllm_standin.py"


@dataclass(frozen=True)
class Folders:
    """Where the lab keeps its things: `cache` survives `down`, `run` does not."""

    base: Path
    # The cache of another lab, which keeps it tidy.
    shared_cache: Path | None = None

    @property
    def cache(self) -> Path:
        return self.shared_cache or self.base / "cache"

    @property
    def run(self) -> Path:
        return self.base / "run"

    @property
    def engines(self) -> Path:
        return self.cache / "engines"

    @property
    def models(self) -> Path:
        return self.run / "models"

    @property
    def ssh_key(self) -> Path:
        return self.run / "ssh" / "id_ed25519"

    @property
    def host_key(self) -> Path:
        return self.run / "ssh" / "host_ed25519"

    @property
    def known_hosts(self) -> Path:
        return self.run / "ssh" / "known_hosts"

    @property
    def lab_json(self) -> Path:
        return self.run / "lab.json"

    def host(self, name: str) -> Path:
        return self.run / "hosts" / name


_SHARED = os.environ.get("GB10_LAB_CACHE")
FOLDERS = Folders(Path(os.environ.get("GB10_LAB_DIR", "/var/lib/gb10-vllm-lab")), Path(_SHARED) if _SHARED else None)
