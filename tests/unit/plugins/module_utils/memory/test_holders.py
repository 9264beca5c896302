# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds the memory of a host."""

from __future__ import annotations

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils._memory import holders, units

ID = "9d3515650307" + "0" * 52
MEMINFO = """MemTotal:       127600000 kB
MemFree:         2000000 kB
MemAvailable:   24000000 kB
Buffers:          100000 kB
Cached:         20000000 kB
AnonPages:       4000000 kB
SUnreclaim:       500000 kB
SReclaimable:     900000 kB
HugePages_Total:       0
"""
NODE = """Node 0 MemTotal:       17524948 kB
Node 0 MemFree:         9000000 kB
Node 0 Active(file):    1000000 kB
Node 0 Inactive(file):   500000 kB
Node 0 SReclaimable:      24948 kB
"""


def test_meminfo_in_bytes_and_what_nobody_accounts_for() -> None:
    found = holders.read_meminfo(MEMINFO)
    assert found["MemAvailable"] == 24_000_000 * 1024
    assert "HugePages_Total" not in found
    assert holders.unaccounted(found) == (127_600_000 - 27_500_000) * 1024


def test_a_host_without_available_memory_is_refused_by_the_name_of_the_entry() -> None:
    with pytest.raises(units.PlanError, match="MemAvailable"):
        holders.read_meminfo("MemTotal: 1 kB\nMemFree: 1 kB\n")


def test_a_memory_node_as_an_engine_without_a_gpu_counts_it() -> None:
    assert holders.read_node(NODE) == (17_524_948 * 1024, 10_524_948 * 1024)


@pytest.mark.parametrize(
    ("cgroup", "name"),
    [
        ("0::/system.slice/postgresql.service\n", "postgresql.service"),
        (f"0::/system.slice/docker-{ID}.scope\n", "container qdrant"),
        (f"0::/docker/{ID}\n", "container qdrant"),
        (f"0::/machine.slice/libpod-{'e' * 64}.scope/container\n", f"container {'e' * 12}"),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3 of user 1000"),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service\n", "jupyter.service"),
        ("12:memory:/system.slice/old.service\n1:name=systemd:/system.slice/old.service\n", "old.service"),
        ("0::/init.scope\n", "init.scope"),
        ("0::/\n", "no unit"),
    ],
)
def test_the_owner_of_a_process(cgroup: str, name: str) -> None:
    assert holders.owner(cgroup, {ID: "qdrant"}) == name


@pytest.mark.parametrize(
    ("rollup", "statm", "size"),
    [
        (
            "Rss: 900 kB\nPss: 500 kB\nPss_Anon:  300 kB\nPss_File:  150 kB\nPss_Shmem:  50 kB\n",
            "9 9 9 1 0 1 0",
            350 * 1024,
        ),
        ("", "1000 300 100 1 0 50 0", 200 * 4096),
        ("", "", 0),
    ],
    ids=["without the page cache", "where the kernel does not say", "a process that has ended"],
)
def test_what_a_process_holds(rollup: str, statm: str, size: int) -> None:
    assert holders.own_bytes(rollup, statm, 4096) == size


def process(pid: int, unit: str, size: int, device: int = 0) -> holders.Process:
    return holders.Process(pid, f"p{pid}", f"0::/system.slice/{unit}.service\n", size, device)


def test_sums_and_peaks_by_owner_largest_first() -> None:
    first = holders.gather([process(1, "a", 10), process(2, "a", 30), process(3, "b", 5, device=100)], {})
    assert [(one.name, one.held, one.process, one.pid) for one in first] == [
        ("b.service", 105, "p3", 3),
        ("a.service", 40, "p2", 2),
    ]
    second = holders.gather([process(1, "a", 500), process(3, "b", 1)], {})
    assert [(one.name, one.held) for one in holders.peak([first, second])] == [("a.service", 500), ("b.service", 105)]
    assert first[1].words == "a.service: p2, pid 2"


def test_gpu_memory_by_process_without_what_the_driver_does_not_know() -> None:
    assert holders.read_compute_apps("12, 1024\n13, [N/A]\n12, 1\n\n") == {12: 1025 << 20}
