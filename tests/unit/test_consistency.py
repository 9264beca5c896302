# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own lint checks: silent about a tree in order, one message for each fault."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.tests.lint import consistency

TREE = {
    "roles/engine/defaults/main.yml": "vllm_port: 8000\nvllm_list: []\nvllm_set: {a: 1}\nvllm_address: '{{ ansible_host }}'\n",
    "roles/engine/meta/argument_specs.yml": """
argument_specs:
  main:
    options:
      vllm_port: {default: 8000}
      vllm_list: {default: []}
      vllm_set: {}
      vllm_address: {}
""",
    "roles/engine/tasks/main.yml": "- when: ansible_facts['os_family'] == 'Debian' and not ansible_check_mode\n",
    "meta/runtime.yml": "action_groups: {vllm: [engine]}\n",
    "plugins/modules/engine.py": "",
    "plugins/action/engine.py": "",
    "playbooks/site.yml": "  vllm_list: []\n  when: vllm_port | default(1) == vllm_port\n  a: '{{ vllm_list }}' # {{ vllm_set }}\n",
    "playbooks/_part.yml": "",
    "inventories/two-sparks/group_vars/all.yml": "vllm_port: 8000\nansible_user: nvidia\n# vllm_key\nvllm_list: !vault x\n",
    "Makefile": ".PHONY: test\ntest:\n\ttrue\n",
    "README.md": "Run `playbooks/site.yml`, or make one; then `make test`, or `make bench-NAME`.\n```\nmake test\n```\n",
}
FAULTS = [
    ("roles/engine/defaults/main.yml", "vllm_new: 1\n", "vllm_new is in defaults/main.yml, but not in meta"),
    (
        "roles/engine/meta/argument_specs.yml",
        "      vllm_new: {}\n",
        "vllm_new is in meta/argument_specs.yml, but not in d",
    ),
    ("roles/engine/defaults/main.yml", "vllm_port: 9000\n", "vllm_port is 9000 in defaults/main.yml, but 8000 in meta"),
    ("roles/engine/defaults/main.yml", "vllm_port: true\n", "vllm_port is True in defaults/main.yml, but 8000 in meta"),
    ("roles/engine/defaults/main.yml", "vllm_set: 3\n", "does not say that the default of vllm_set is 3"),
    (
        "roles/engine/tasks/main.yml",
        "- when: ansible_os_family == 'x'\n",
        "tasks/main.yml:2: ansible_os_family is a fact",
    ),
    (
        "roles/engine/vars/main.yml",
        "a: '{{ b | union(c) | sort }}'\nd: '{{ b | union(c) }}'\n",
        "vars/main.yml:2: union has another order in each run",
    ),
    (
        "playbooks/site.yml",
        "  b: '{{ vllm_port }}'\n",
        "playbooks/site.yml:4: vllm_port is undefined where no inventory has it",
    ),
    (
        "playbooks/_part.yml",
        "a:\n  that: vllm_set\n",
        "playbooks/_part.yml:2: vllm_set is undefined where no inventory",
    ),
    ("plugins/modules/image.py", "", "the module image is not in the action group vllm"),
    ("plugins/action/image.py", "", "plugins/action/image.py has no module of the same name"),
    ("playbooks/status.yml", "", "README.md does not name the playbook status.yml"),
    ("README.md", "`make demo`", "README.md names `make demo`, but the Makefile has no such target"),
    ("README.md", "`make demo ENGINE=stand-in`", "README.md names `make demo`, but the Makefile has no such target"),
    ("inventories/one-spark/host_vars/a.yml", "vllm_prot: 1\n", "one-spark/host_vars/a.yml: vllm_prot is in no role's"),
    (
        "plugins/modules/engine.py",
        "import json, yaml.nodes\n",
        "engine.py imports yaml.nodes, but no host has more than",
    ),
    (
        "plugins/module_utils/a/b.py",
        "def f():\n    from pydantic import x\n",
        "a/b.py imports pydantic, but no host has",
    ),
    ("plugins/modules/engine.py", "x\n" * 451, "plugins/modules/engine.py has 451 lines, more than 450"),
]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setattr(consistency, "LONG_FILES", {})
    return tmp_path


def test_in_order(tree: Path) -> None:
    assert consistency.findings(tree) == []


@pytest.mark.parametrize(("name", "added", "message"), FAULTS)
def test_fault(tree: Path, name: str, added: str, message: str) -> None:
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    with open(tree / name, "a") as file:
        file.write(added)
    (found,) = consistency.findings(tree)
    assert message in found


def test_long_file_that_is_gone(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consistency, "LONG_FILES", {"old.py": "a reason"})
    assert consistency.findings(tree) == ["old.py is listed here as a long file, but does not exist"]


def test_readme_is_missing(tree: Path) -> None:
    (tree / "README.md").unlink()
    assert consistency.findings(tree) == ["README.md is missing"]
