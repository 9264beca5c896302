# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the check of the direct link has found on a host goes into that host's own release, where the owner left it open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.gb10.vllm.tests.unit.golden.test_recipe import HERE, HOSTS, IMAGE
from ansible_collections.gb10.vllm.tests.unit.playbooks import play

# As the module link_info answers on two machines with the cable in different ports.
FOUND: dict[str, dict[str, Any]] = {
    "spark1": {"interface": "enp1s0f0np0", "gid_index": 4, "devices": [{"name": "rocep1s0f0"}]},
    "spark2": {"interface": "enP2p1s0f1np1", "gid_index": 3, "devices": [{"name": "roceP2p1s0f1"}]},
}
OPEN = {"vllm_link_interface": "", "vllm_link_rdma_devices": []}


def rendered(folder: Path, **variables: Any) -> dict[str, str]:
    given = {
        "vllm_topology": "split",
        "vllm_image": IMAGE,
        "golden_folder": str(folder),
        "ansible_become": False,
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",
        "found": FOUND,
        "__vllm_link": "{{ found[inventory_hostname] }}",
    }
    done = play(folder, HERE / "render.yml", "inventories/two-sparks", {**given, **variables})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return {host: (folder / host).read_text() for host in HOSTS}


def test_each_host_gets_what_was_found_on_it(tmp_path: Path) -> None:
    texts = rendered(tmp_path, **OPEN)
    for host, other in (("spark1", "spark2"), ("spark2", "spark1")):
        mine, theirs = FOUND[host], FOUND[other]
        for name in ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "UCX_NET_DEVICES", "TP_SOCKET_IFNAME", "MN_IF_NAME"):
            assert f"--env {name}={mine['interface']} " in texts[host]
        assert f"--env NCCL_IB_HCA={mine['devices'][0]['name']} " in texts[host]
        assert f"--env NCCL_IB_GID_INDEX={mine['gid_index']} " in texts[host]
        assert theirs["interface"] not in texts[host]


def test_what_the_owner_says_stands(tmp_path: Path) -> None:
    own = {"vllm_link_interface": "eth7", "vllm_link_rdma_devices": ["roce7"]}
    for text in rendered(tmp_path, **own, vllm_environment={"NCCL_IB_GID_INDEX": "9"}).values():
        assert "--env NCCL_SOCKET_IFNAME=eth7 " in text
        assert "--env NCCL_IB_HCA=roce7 " in text
        assert "--env NCCL_IB_GID_INDEX=9 " in text
