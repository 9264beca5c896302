# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook on a site of which no host can be reached, as on a controller whose network is down: it says just that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.tests.unit.playbooks import ROOT, connections, play
from ansible_collections.gb10.vllm.tests.unit.test_refusals import site

PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("[!_]*.yml"))
# What Ansible says of an expression that nobody guarded.
UNGUARDED = r"Error while resolving|Finalization of task args|is undefined|has no attribute|No first item"


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_it_says_who_cannot_be_reached(tmp_path: Path, playbook: str) -> None:
    engines = {"spark1": {"vllm_address": "192.0.2.11"}, "spark2": {"vllm_address": "192.0.2.12"}}
    inventory = site(tmp_path, engines, ["proxy1"], monitors={"hosts": {"proxy1": {}}})
    done = play(tmp_path, f"playbooks/{playbook}.yml", inventory)
    said = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert connections(tmp_path) != []
    assert re.search(UNGUARDED, said) is None
    assert re.search("UNREACHABLE|could not be reached", said)
    # What runs is shown as far as it is seen.
    assert (done.returncode == 0) == (playbook == "status")
