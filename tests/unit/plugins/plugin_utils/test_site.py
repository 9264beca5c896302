# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about variables that cannot work; through the playbooks it is in tests/unit/test_refusals.py."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _site

IMAGE = f"eugr/vllm@sha256:{'1' * 64}"
TWO = ["spark1", "spark2"]
OURS = ("--restart=no", "--rm", "--name=x", "-d", "--detach=true", "--entrypoint=sh", "--env-file=/x")


def values(**changes: Any) -> dict[str, Any]:
    return {
        "topology": "replicated",
        "image": IMAGE,
        "model": "m",
        "arguments": {"tensor-parallel-size": 1},
        "environment": {"A": "1", "B": 2, "C": 0.5},
        "container_options": ["--init", "--network=host", "--log-opt=max-size=50m", "-v=/a:/b"],
        "volumes": ["/a:/b", "name:/c:ro"],
        "mods": [],
        "port": 8000,
        "master_port": 29501,
        "listen_address": "0.0.0.0",
        "expected_load_seconds": 60,
        "shutdown_seconds": 20,
        "address": "192.0.2.1",
        "link_address": "2001:db8::1",
        "ranks": 1,
        **changes,
    }


def test_good() -> None:
    assert _site.problems("spark1", TWO, values()) == []
    pair = values(topology="split", ranks=2, arguments={"tensor-parallel-size": 2})
    assert _site.problems("spark1", TWO, pair) == []


@pytest.mark.parametrize(
    "arguments", [{"tensor-parallel-size": 2}, {"tensor-parallel-size": "2"}, {"pipeline-parallel-size": 2}]
)
def test_parallel_size_fits(arguments: dict[str, Any]) -> None:
    assert _site.problems("spark1", TWO, values(topology="split", arguments=arguments)) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"topology": "both"}, "vllm_topology is 'both' on spark1: must be one of 'replicated' or 'split'"),
        ({"image": "x:latest"}, "vllm_image is 'x:latest' on spark1: image 'x:latest' is not pinned by digest"),
        ({"model": ""}, "vllm_replicated_model is '' on spark1: must not be empty"),
        ({"arguments": {"port": 1}}, "engine option 'port' is set by the collection: use vllm_port instead"),
        ({"environment": {"A B": "1"}}, "environment name 'A B' is not a name"),
        ({"environment": {"A": True}}, "environment name A has the value True: write a number, or a text in quotes"),
        ({"environment": {"A": None}}, "environment name A has the value None"),
        ({"container_options": ["host"]}, "'host' is not an option of docker run: write --name=value in one piece"),
        ({"container_options": ["--restart always"]}, "'--restart always' is not an option of docker run"),
        ({"container_options": ["--"]}, "'--' is not an option of docker run"),
        *(({"container_options": [option]}, f"'{option}' is the unit's business") for option in OURS),
        ({"container_options": "--init"}, "vllm_container_options or vllm_split_container_options is '--init' on spark1: input should be a valid list"),
        ({"volumes": ["/a"]}, "'/a' is not source:target"),
        ({"volumes": ["/a:b"]}, "'/a:b' is not source:target"),
        ({"volumes": ["/a:/b:ro:z"]}, "'/a:/b:ro:z' is not source:target"),
        ({"mods": "~/mod"}, "vllm_replicated_mods is '~/mod' on spark1: input should be a valid list"),
        ({"port": 0}, "vllm_port is 0 on spark1: must be at least 1"),
        ({"port": 65536}, "vllm_port is 65536 on spark1: must be at most 65535"),
        ({"port": "http"}, "vllm_port is 'http' on spark1: input should be a valid integer"),
        ({"port": None}, "vllm_port is None on spark1"),
        ({"master_port": 0}, "vllm_master_port is 0 on spark1: must be at least 1"),
        ({"listen_address": "all"}, "vllm_listen_address is 'all' on spark1: is not an IP address"),
        ({"address": "spark1"}, "vllm_address is 'spark1' on spark1: is not an IP address"),
        ({"address": "192.0.2.300"}, "vllm_address is '192.0.2.300' on spark1: is not an IP address"),
        ({"address": "192.0.2.1/24"}, "vllm_address is '192.0.2.1/24' on spark1"),
        ({"link_address": ""}, "vllm_link_address is '' on spark1: is not an IP address"),
        ({"expected_load_seconds": 0}, "vllm_replicated_expected_load_seconds is 0 on spark1: must be at least 1"),
        ({"expected_load_seconds": 90000}, "must be at most 86400"),
        ({"shutdown_seconds": -1}, "vllm_shutdown_seconds is -1 on spark1: must be at least 0"),
        ({"arguments": {"tensor-parallel-size": 2}}, "vllm_replicated_arguments on spark1: tensor-parallel-size 2 x pipeline-parallel-size 1 must be 1"),
    ],
)  # fmt: skip
def test_one_problem(changes: dict[str, Any], problem: str) -> None:
    (found,) = _site.problems("spark1", TWO, values(**changes))
    assert problem in found
    assert "spark1" in found


@pytest.mark.parametrize(
    ("engines", "arguments", "problem"),
    [
        (TWO, {"tensor-parallel-size": 4}, "tensor-parallel-size 4 x pipeline-parallel-size 1 must be 2"),
        (TWO, {"tensor-parallel-size": "4"}, "tensor-parallel-size 4 x pipeline-parallel-size 1 must be 2"),
        (TWO, {}, "tensor-parallel-size 1 x pipeline-parallel-size 1 must be 2"),
        (TWO, {"tensor-parallel-size": 2, "pipeline-parallel-size": 2}, "must be 2"),
        ([*TWO, "spark3"], {"tensor-parallel-size": 2}, "must be 3"),
        (["spark1"], {"tensor-parallel-size": 1}, "a split needs two or more hosts"),
    ],
)
def test_split(engines: list[str], arguments: dict[str, Any], problem: str) -> None:
    (found,) = _site.problems("spark1", engines, values(topology="split", arguments=arguments))
    assert problem in found
    assert "spark1" in found


def test_all_problems_at_once() -> None:
    found = _site.problems("spark9", TWO, values(topology="split", port=0, image="", model=""))
    assert len(found) == 5
    assert any("host spark9 is not in the group engines" in problem for problem in found)
    assert any(problem.startswith("vllm_split_model is ''") for problem in found)


def host(name: str, **changes: Any) -> dict[str, Any]:
    number = name[-1]
    default = {"name": name, "address": f"192.0.2.{number}", "link_address": f"198.51.100.{number}", "port": 8000}
    return {**default, "topology": "split", **changes}


GROUPS = {"all": [*TWO, "p"], "ungrouped": [], "engines": TWO, "proxies": ["p"]}


@pytest.mark.parametrize(
    ("hosts", "groups", "expected"),
    [
        ([host("spark1"), host("spark2")], {}, []),
        ([host("spark1"), host("spark2")], {"proxies": ["spark1"]}, []),
        ([], {"engines": []}, ["the group engines of the inventory is empty or missing"]),
        ([host("spark1"), host("spark2")], {"proxies": []}, ["the group proxies of the inventory is empty or missing"]),
        ([host("spark1"), host("spark2")], {"ungrouped": ["x"]}, ["host x is in no group"]),
        ([host("spark1", topology="replicated"), host("spark2")], {}, ["vllm_topology differs between the hosts (spark1: replicated, spark2: split)"]),
        ([host("spark1"), host("spark2", address="192.0.2.1")], {}, ["192.0.2.1:8000 are the same on spark1 and spark2"]),
        ([host("spark1"), host("spark2", link_address="198.51.100.1")], {}, ["vllm_link_address 198.51.100.1 is the same on spark1 and spark2"]),
        ([host("spark1", topology="replicated"), host("spark2", topology="replicated", link_address="198.51.100.1")], {}, []),
    ],
)  # fmt: skip
def test_between_hosts(hosts: list[dict[str, Any]], groups: dict[str, list[str]], expected: list[str]) -> None:
    found = _site.site_problems(hosts, {**GROUPS, **groups})
    assert len(found) == len(expected)
    for problem, words in zip(found, expected, strict=True):
        assert words in problem


def test_groups_that_are_not_there() -> None:
    assert len(_site.site_problems([], {"all": [], "ungrouped": []})) == 2
