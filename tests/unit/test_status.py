# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook status.yml on a site that is off: it shows the table, and fails nobody."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.gb10.vllm.tests.unit.playbooks import connections, play


def test_site_that_is_off(tmp_path: Path) -> None:
    done = play(tmp_path, "playbooks/status.yml", "inventories/two-sparks")
    assert done.returncode == 0, done.stdout[-3000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    for host in ("spark1", "spark2"):
        assert [host, *"???????", "could", "not", "be", "reached"] in lines
    assert "proxy spark1: could not be reached" in done.stdout
    assert any("192.168.1.12" in call for call in connections(tmp_path))
