# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventories that cannot work, refused by the real playbooks by variable, value and host, before any host is touched.

The addresses are of RFC 5737 and reach nobody; `ssh` is a script that writes down that it was called.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.tests.unit.playbooks import ROOT, connections, play

IMAGE = f"eugr/spark-vllm-b12x@sha256:{'60b0d2e8a57c91f4' * 4}"
ZEROS = f"eugr/spark-vllm-b12x@sha256:{'0' * 64}"


def site(folder: Path, engines: dict[str, Any], proxies: list[str] | None, **other: Any) -> Path:
    """Write an inventory: hosts of the group engines with their own variables, names of the proxies, other groups."""
    groups: dict[str, Any] = {"engines": {"hosts": engines, "vars": {"vllm_image": IMAGE}}, **other}
    if proxies is not None:
        groups["proxies"] = {"hosts": dict.fromkeys(proxies)}
    path = folder / "hosts.json"
    path.write_text(json.dumps({"all": {"children": groups, "hosts": {"proxy1": {"ansible_host": "192.0.2.90"}}}}))
    return path


def refuse(folder: Path, playbook: str, inventory: Path | str) -> str:
    """What a run that must be refused prints, in one line; no host was contacted and no task of a host was run."""
    done = play(folder, f"playbooks/{playbook}.yml", inventory)
    assert done.returncode not in (0, 4), done.stdout[-3000:]  # 4: a host was unreachable, so it was asked
    assert connections(folder) == []
    assert "Converge the proxy" not in done.stdout
    return re.sub(r"\s+", " ", done.stdout + done.stderr)


# By name of the host: its variables, and what the refusal says about it.
FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "no-digest": (
        {"vllm_image": ""},
        "vllm_image is '' on no-digest: image '' is not pinned by digest (no image is given)",
    ),
    "tag-only": (
        {"vllm_image": "eugr/spark-vllm-b12x:latest"},
        "vllm_image is 'eugr/spark-vllm-b12x:latest' on tag-only: image 'eugr/spark-vllm-b12x:latest' is not pinned by digest "
        "(a tag can point to another image tomorrow",
    ),
    "zeros": (
        {"vllm_image": ZEROS},
        f"vllm_image is '{ZEROS}' on zeros: image '{ZEROS}' has the examples' placeholder",
    ),
    "topology": (
        {"vllm_topology": "both"},
        "vllm_topology is 'both' on topology: must be one of 'replicated' or 'split'",
    ),
    "address": ({"ansible_host": "192.0.2.300"}, "vllm_address is '192.0.2.300' on address: is not an IP address"),
    "link": ({"vllm_link_address": "spark1-link"}, "vllm_link_address is 'spark1-link' on link: is not an IP address"),
    "port-zero": ({"vllm_port": 0}, "vllm_port is 0 on port-zero: must be at least 1"),
    "port-high": ({"vllm_port": 65536}, "vllm_port is 65536 on port-high: must be at most 65535"),
    "own-port": (
        {"vllm_replicated_overrides": {"port": 9000}},
        "on own-port: engine option 'port' is set by the collection: use vllm_port instead",
    ),
    "own-key": (
        {"vllm_replicated_overrides": {"api-key": "s"}},
        "on own-key: engine option 'api-key' is set by the collection: use vllm_api_key",
    ),
    "restart": (
        {"vllm_container_options": ["--init", "--restart=always"]},
        "on restart: '--restart=always' is the unit's business",
    ),
    "no-mod": (
        {"vllm_replicated_mods": ["/nowhere/fix-dtype"]},
        "vllm_replicated_mods of no-mod: mod folder /nowhere/fix-dtype on the controller has no run.sh",
    ),
    "two-faults": ({"vllm_port": "http", "vllm_image": "x"}, "vllm_port is 'http' on two-faults: "),
}


def test_each_host_is_told_its_own_fault(tmp_path: Path) -> None:
    """One run over a host per fault; the failure names the hosts that were not told, with what was expected."""
    engines = {
        name: {"ansible_host": f"192.0.2.{number}", **variables}
        for number, (name, (variables, _message)) in enumerate(FAULTS.items(), 1)
    }
    said = refuse(tmp_path, "site", site(tmp_path, engines, ["proxy1"])).replace("''", "'")
    told = said.replace("is ' on", "is '' on").replace("image ' is", "image '' is")
    assert {name: message for name, (_variables, message) in FAULTS.items() if message not in told} == {}
    assert "vllm_image is 'x' on two-faults" in told, "all faults of a host at once"


def test_a_secret_is_not_shown(tmp_path: Path) -> None:
    """The refusal names what stands in two places, never the value."""
    engines = {
        "spark1": {
            "ansible_host": "192.0.2.1",
            "vllm_secret_environment": {"HF_TOKEN": "hf_very_secret"},
            "vllm_environment_overrides": {"HF_TOKEN": "in-the-open"},
        }
    }
    said = refuse(tmp_path, "site", site(tmp_path, engines, ["spark1"]))
    assert "environment name HF_TOKEN on spark1 stands in vllm_secret_environment" in said
    assert "hf_very_secret" not in said


def test_split_with_one_host(tmp_path: Path) -> None:
    engines = {"spark1": {"ansible_host": "192.0.2.1", "vllm_topology": "split"}}
    said = refuse(tmp_path, "cutover", site(tmp_path, engines, ["spark1"]))
    assert "vllm_topology is 'split' on spark1, but the group engines has only 1 host" in said


def test_parallel_size_that_does_not_fit(tmp_path: Path) -> None:
    engines = {
        f"spark{n}": {
            "ansible_host": f"192.0.2.{n}",
            "vllm_topology": "split",
            "vllm_split_overrides": {"tensor-parallel-size": 4},
        }
        for n in (1, 2)
    }
    said = refuse(tmp_path, "cutover", site(tmp_path, engines, ["proxy1"]))
    assert (
        "vllm_split_arguments on spark1: tensor-parallel-size 4 x pipeline-parallel-size 1 must be 2, the number of hosts"
        in said
    )
    assert "vllm_split_arguments on spark2: tensor-parallel-size 4" in said


def test_groups_that_are_empty_or_missing(tmp_path: Path) -> None:
    """proxy1 is in no group then, which is said too."""
    said = refuse(tmp_path, "site", site(tmp_path, {}, None))
    assert "the group engines of the inventory is empty or missing" in said
    assert "the group proxies of the inventory is empty or missing" in said
    assert "host proxy1 is in no group" in said


def test_hosts_that_do_not_fit_together(tmp_path: Path) -> None:
    engines = {
        "spark1": {"ansible_host": "192.0.2.1", "vllm_link_address": "192.0.2.65"},
        "spark2": {"ansible_host": "192.0.2.1", "vllm_link_address": "192.0.2.65", "vllm_topology": "split"},
    }
    said = refuse(tmp_path, "cutover", site(tmp_path, engines, None))
    assert "vllm_topology differs between the hosts (spark1: replicated, spark2: split)" in said
    assert "vllm_address and vllm_port 192.0.2.1:8000 are the same on spark1 and spark2" in said
    assert "vllm_link_address 192.0.2.65 is the same on spark1 and spark2" in said
    assert "the group proxies of the inventory is empty or missing" in said


@pytest.mark.parametrize("name", ["two-sparks", "one-spark"])
def test_example_site_before_it_is_filled_in(tmp_path: Path, name: str) -> None:
    """An owner who did not fill in the digest or has no clone of the mods is told both, for each host."""
    said = refuse(tmp_path, "site", ROOT / "inventories" / name).replace("''", "'")
    for host in {"two-sparks": ("spark1", "spark2"), "one-spark": ("spark1",)}[name]:
        assert f"vllm_image is '{ZEROS}' on {host}: image '{ZEROS}' has the examples' placeholder of 64 zeros" in said
        assert (
            f"vllm_replicated_mods of {host}: mod folder {tmp_path}/spark-vllm-docker/mods/fix-qwen3.8-ple-dtype"
            in said
        )


def test_a_good_site_is_contacted(tmp_path: Path) -> None:
    """What the tests above rely on: the same inventory without a fault does call `ssh`."""
    done = play(tmp_path, "playbooks/site.yml", site(tmp_path, {"spark1": {"ansible_host": "192.0.2.1"}}, ["proxy1"]))
    assert done.returncode == 4
    assert any("192.0.2.90" in call for call in connections(tmp_path))
