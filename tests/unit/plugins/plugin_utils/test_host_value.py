# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One number in a host's variables; whatever else is in the file stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gb10.vllm.plugins.plugin_utils import _host_value

NAME = "vllm_replicated_max_num_seqs"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"---\n{NAME}: 12\n"),
        ("---\na: 1\n", f"---\na: 1\n{NAME}: 12\n"),
        ("a: 1", f"a: 1\n{NAME}: 12\n"),
        (f"{NAME}: 8\na: 1\n", f"{NAME}: 12\na: 1\n"),
        (f"a: 1\n{NAME}: 8  # measured in May\n# more\n", f"a: 1\n{NAME}: 12  # measured in May\n# more\n"),
        (f"{NAME}: 12\n", f"{NAME}: 12\n"),
        ("key: !vault |\n  $ANSIBLE_VAULT;1.1\n  6162\n", f"key: !vault |\n  $ANSIBLE_VAULT;1.1\n  6162\n{NAME}: 12\n"),
        (f"note: |\n  {NAME}: 3\n", f"note: |\n  {NAME}: 3\n{NAME}: 12\n"),
    ],
)
def test_the_line_and_nothing_else(before: str, after: str) -> None:
    assert _host_value.changed(before, NAME, 12, "f") == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("$ANSIBLE_VAULT;1.1;AES256\n6162\n", "encrypted as a whole"),
        ('{"a": 1}\n', "no YAML"),
        ("- a\n", "no variables"),
        (f"{NAME}: {{\n  x: 1}}\n", "no YAML"),
        ("a: 1\n...\n", "no YAML"),
        (f"{NAME}: 8\n{NAME}: 9\nb: [\n", "no YAML"),
        (f'"{NAME}": 8\n', "cannot be changed safely"),
    ],
)
def test_files_that_are_left_alone(text: str, why: str) -> None:
    with pytest.raises(_host_value.ValueRefused, match=f"{why}.*write `{NAME}: 12` into it yourself"):
        _host_value.changed(text, NAME, 12, "f")


def test_the_place(tmp_path: Path) -> None:
    folder = tmp_path / "host_vars"
    folder.mkdir()
    assert _host_value.place(str(tmp_path), "spark2", NAME) == folder / "spark2.yml"
    (folder / "spark2.yaml").write_text("a: 1\n")
    assert _host_value.place(str(tmp_path), "spark2", NAME) == folder / "spark2.yaml"
    (folder / "spark2").mkdir()
    (folder / "spark2/b.yml").write_text(f"{NAME}: 3\n")
    (folder / "spark2/c.yml").write_text("c: 3\n")
    assert _host_value.place(str(tmp_path), "spark2", NAME) == folder / "spark2/b.yml", "Ansible reads the folder only"
    (folder / "spark2/b.yml").unlink()
    assert _host_value.place(str(tmp_path), "spark2", NAME) == folder / f"spark2/{NAME}.yml"
    with pytest.raises(_host_value.ValueRefused, match="no folder"):
        _host_value.place("", "spark2", NAME)
