# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host says of its memory: /proc, the container engine, the GPU driver, and figures kept from earlier starts.

Private to this collection: may change at any time. Host-side, standard library only; the arithmetic is in ``_memory``.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from . import _host
from ._memory import holders, records

MEASURED = "measured"
NOTABLE = 256 << 20
"""Bytes below which a unit counts as part of the idle system. It only keeps lists short."""

# Asked of the driver without a context, which alone would take gigabytes beside a serving model.
_ASK_TOTAL = """
import ctypes, sys
cuda, device, total = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_size_t()
if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0) or cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device):
    sys.exit(1)
print(total.value)
"""


def meminfo() -> dict[str, int]:
    return holders.read_meminfo(Path("/proc/meminfo").read_text())


def engine_view() -> tuple[int, int, str]:
    """Total and available bytes as the engine counts them before it was ever started, and where the total is from.

    With a GPU that shares the host's memory it reads MemAvailable; without a GPU it looks at the memory node it is bound to.
    """
    node, now = Path("/sys/devices/system/node/node0/meminfo"), meminfo()
    if has_gpu() or not node.exists():
        return now["MemTotal"], now["MemAvailable"], "MemTotal"
    return *holders.read_node(node.read_text()), "memory node 0"


def has_gpu() -> bool:
    return os.path.exists("/dev/nvidiactl")


def container_names() -> dict[str, str]:
    """Names of the running containers by full id; empty where there is no container engine."""
    if shutil.which("docker") is None:
        return {}
    done = _host.run(["docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"], timeout=30, check=False)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)


def device_bytes() -> dict[int, int]:
    """GPU memory by process; empty without a GPU or where the driver does not list it."""
    if not has_gpu() or shutil.which("nvidia-smi") is None:
        return {}
    query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    return holders.read_compute_apps(_host.run(query, timeout=30, check=False).stdout)


def processes(device: dict[int, int]) -> list[holders.Process]:
    """All processes that hold memory of their own. One that ends while it is looked at is left out."""
    page, found = os.sysconf("SC_PAGE_SIZE"), []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            size = holders.own_bytes(_quiet(folder / "smaps_rollup"), (folder / "statm").read_text(), page)
            pid, taken = int(folder.name), device.get(int(folder.name), 0)
            if size or taken:
                name = (folder / "comm").read_text().strip()
                found.append(holders.Process(pid, name, (folder / "cgroup").read_text(), size, taken))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def _quiet(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, ValueError):
        return ""


def sample(names: dict[str, str]) -> list[holders.Holder]:
    return holders.gather(processes(device_bytes()), names)


def total_of_image(image: str, container_options: list[str]) -> int | None:
    """The device's total in bytes, asked of CUDA inside the image; None where it does not answer."""
    if not image or not has_gpu():
        return None
    gpus = [option for option in container_options if option.startswith(("--gpus", "--device", "--runtime"))]
    command = [
        "docker",
        "run",
        "--rm",
        "--pull=never",
        "--network=none",
        *gpus,
        "--entrypoint=python3",
        image,
        "-c",
        _ASK_TOTAL,
    ]
    done = _host.run(command, timeout=120, check=False)
    text = done.stdout.strip().splitlines()
    return int(text[-1]) if done.returncode == 0 and text and text[-1].isdigit() else None


def log_of_start(invocation: str) -> list[str]:
    """Every log line of one start of the unit, oldest first."""
    command = ["journalctl", f"_SYSTEMD_INVOCATION_ID={invocation}", "--output=cat", "--no-pager", "--quiet", "--all"]
    return _host.run(command, timeout=120, check=False).stdout.splitlines()


def stored(state_dir: str) -> list[dict[str, Any]]:
    """Every file of measured figures. A file that is no JSON object is an error, never silently nothing."""
    folder = Path(state_dir) / MEASURED
    contents = [_host.read_json(str(path)) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    return [content for content in contents if content is not None]


def keep(state_dir: str, name: str, content: dict[str, Any]) -> None:
    """Write one file of measured figures."""
    folder = Path(state_dir) / MEASURED
    folder.mkdir(parents=True, exist_ok=True)
    _host.write_atomically(str(folder / name), json.dumps(content, indent=2, sort_keys=True) + "\n")


def total(contents: list[dict[str, Any]], image: str, options: list[str]) -> tuple[int, str]:
    """Device memory as the engine sees it, and where the figure is from.

    Args:
        contents: measured figures.
        image: image to ask, empty for none.
        options: options with which containers are given the GPU.
    """
    installed, _available, source = engine_view()
    seen = records.last_value(contents, "total_bytes")
    # a figure from before a change of the machine or of its firmware says nothing
    if seen and abs(seen - installed) <= installed // 20:
        return seen, "last start"
    asked = total_of_image(image, options)
    return (asked, "image") if asked else (installed, source)
