# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has nothing to do, or is only asked what it would do, changes nothing: in check mode, the second time, and before a cutover.

Every test goes on from where the one before ended, on hosts that were new at the start.
"""

from __future__ import annotations

import re
from pathlib import Path

import observe
import pytest
import site_of_lab as lab

SITE = lab.Site("stand-in", {"vllm_topology": "replicated"})


def changed(output: str) -> dict[str, int]:
    """Changed tasks per host, from the recap of a playbook."""
    return {host: int(count) for host, count in re.findall(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)", output, re.M)}


def fingerprint(host: str) -> str:
    """Everything a playbook could have written: files of /etc and of our folders, units, images, links; not what services write."""
    return lab.on(
        host,
        "find /etc /var/lib/gb10-vllm /usr/local /root -xdev \\( -type f -o -type l \\) -not -path '/root/.ansible/*' "
        "-not -path '/var/lib/gb10-vllm/metrics/*' -not -path '/var/lib/gb10-vllm/watchdog.*' "
        "-not -name '.*.swp' -printf '%p %s %T@ %l\\n' 2>/dev/null | sort; docker image ls -q; systemctl list-unit-files --no-legend "
        "| grep -E 'vllm|nginx'; ls /var/lib/gb10-vllm 2>&1; true",
    )


@pytest.fixture(scope="module", autouse=True)
def new_hosts(hosts: None) -> None:
    """Hosts as they are when nothing of the collection has ever run on them."""
    lab.lab("fresh", *observe.HOSTS, "proxy1")


def test_check_mode_on_new_hosts_walks_through_and_writes_nothing() -> None:
    before = {host: fingerprint(host) for host in (*observe.HOSTS, "proxy1")}
    output = SITE.must_play("cutover", "--check", "--diff")
    assert "First start of the site as replicated" in output
    assert "exec docker run" in output, "the diff shows the start file"
    for host, seen in before.items():
        assert set(fingerprint(host).splitlines()) ^ set(seen.splitlines()) == set(), host


def test_second_run_changes_nothing(records: Path) -> None:
    with observe.nothing_stopped():
        output = SITE.must_play("cutover")
    assert "nothing changes" in output
    assert set(changed(output).values()) == {0}, changed(output)


def test_site_with_a_changed_argument_leaves_the_engine_running_and_says_what_to_do(records: Path) -> None:
    with observe.nothing_stopped():
        output = SITE.must_play("site", variables={"vllm_replicated_overrides": {"max-num-seqs": 12}})
    words = " ".join(output.split())
    assert "The running engine was not touched" in words
    assert "playbook cutover.yml brings the staged release into use" in words


def test_check_mode_on_a_running_site_says_the_plan_and_changes_nothing(records: Path) -> None:
    with observe.nothing_stopped():
        output = SITE.must_play("cutover", "--check", "--diff", variables={"vllm_topology": "split"})
    assert "Switch from replicated to split" in " ".join(output.split())
