# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own checks of what no linter knows: that things which say the same in two places do say the same.

Usage: consistency.py [ROOT]. One line per finding; exit status 1 when there is one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

MOST_LINES = 450
# Longer files, each with its reason.
LONG_FILES = {
    "tests/standin/vllm_standin.py": "one file, because it is copied into an image whole",
    "tests/benchmarks/kv-observations.yml": "a table of observations",
}
# What Ansible itself defines with this prefix; everything else would be a fact that was put among the variables.
ANSIBLE_NAMES = {
    *("host", "user", "password", "port", "connection", "python_interpreter", "playbook_python", "playbook"),
    *(
        "async_dir",
        "check_mode",
        "diff_mode",
        "managed",
        "facts",
        "version",
        "inventory_sources",
        "loop",
        "loop_var",
        "index_var",
    ),
    *("role_name", "play_name", "play_hosts", "play_hosts_all", "play_batch", "failed_result", "failed_task", "limit"),
}
ANSIBLE_PREFIXES = ("ssh_", "become")
SET_FILTER = re.compile(r"\|\s*(union|intersect|difference|symmetric_difference)\(.*")


class Loader(yaml.SafeLoader):
    """Reads vault values and other tags as plain text."""


Loader.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


def load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader) or {}


def roles(root: Path) -> Iterator[str]:
    """A role's defaults and its argument specs have the same keys, and the same simple values."""
    for role in sorted(path for path in (root / "roles").iterdir() if path.is_dir()):
        defaults = load(role / "defaults" / "main.yml")
        options = load(role / "meta" / "argument_specs.yml")["argument_specs"]["main"].get("options", {})
        for name in sorted(defaults.keys() - options.keys()):
            yield f"role {role.name}: {name} is in defaults/main.yml, but not in meta/argument_specs.yml"
        for name in sorted(options.keys() - defaults.keys()):
            yield f"role {role.name}: {name} is in meta/argument_specs.yml, but not in defaults/main.yml"
        for name in sorted(defaults.keys() & options.keys()):
            value, said = defaults[name], options[name].get("default")
            templated = isinstance(value, str) and "{{" in value
            if said is None:
                if not templated and not (isinstance(value, dict | list) and value):
                    yield f"role {role.name}: meta/argument_specs.yml does not say that the default of {name} is {value!r}"
            elif (value, type(value)) != (said, type(said)):
                yield f"role {role.name}: {name} is {value!r} in defaults/main.yml, but {said!r} in meta/argument_specs.yml"


def plugins(root: Path) -> Iterator[str]:
    """Every module is in the action group, and every action has a module of the same name with its documentation."""
    group = set(load(root / "meta" / "runtime.yml")["action_groups"]["vllm"])
    modules = {path.stem for path in (root / "plugins" / "modules").glob("*.py")} - {"__init__"}
    actions = {path.stem for path in (root / "plugins" / "action").glob("*.py")} - {"__init__"}
    for name in sorted(modules - group):
        yield f"meta/runtime.yml: the module {name} is not in the action group vllm"
    for name in sorted(group - modules):
        yield f"meta/runtime.yml: the action group vllm names {name}, which is no module"
    for name in sorted(actions - modules):
        yield f"plugins/action/{name}.py has no module of the same name that documents it"


def host_side(root: Path) -> Iterator[str]:
    """What runs on a host needs nothing but Python's own library, and what Ansible sends along."""
    own = "ansible_collections.gb10.vllm.plugins.module_utils"
    for path in sorted([*(root / "plugins/module_utils").rglob("*.py"), *(root / "plugins/modules").glob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in names:
                if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(
                    ("ansible.module_utils", own)
                ):
                    yield f"{path.relative_to(root)} imports {name}, but no host has more than Python's standard library"


def readme(root: Path) -> Iterator[str]:
    """The README names every public playbook, and no make target that does not exist."""
    path = root / "README.md"
    if not path.is_file():
        yield "README.md is missing"
        return
    text = path.read_text()
    for playbook in sorted((root / "playbooks").glob("[!_]*.yml")):
        if not re.search(rf"\b{re.escape(playbook.name)}\b|gb10\.vllm\.{playbook.stem}\b", text):
            yield f"README.md does not name the playbook {playbook.name}"
    targets = set(re.findall(r"^([a-z0-9][a-z0-9-]*):", (root / "Makefile").read_text(), re.MULTILINE))
    # A name in capitals or a pattern stands for several targets.
    for target in sorted(
        set(re.findall(r"\bmake ((?:[A-Z_]+=\S+ )*[a-z0-9][a-z0-9-]*)(?![\w-]*[A-Z*])", commands(text)))
    ):
        if target.split()[-1] not in targets:
            yield f"README.md names `make {target}`, but the Makefile has no such target"


def commands(markdown: str) -> str:
    """What stands in code, in blocks or within a line: `make` is an English word too."""
    return "\n".join(re.findall(r"^```.*?^```|`[^`\n]+`", markdown, re.MULTILINE | re.DOTALL))


def files(root: Path) -> Iterator[str]:
    """No file is too long for a person, and no fact is read as a variable of its own."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in sorted(listed.stdout.split("\0")):
        path = root / name
        if not path.is_file() or path.is_symlink() or name.startswith("LICENSES/"):
            continue
        try:
            lines = path.read_text().splitlines()
        except UnicodeDecodeError:
            continue
        if len(lines) > MOST_LINES and name not in LONG_FILES:
            yield f"{name} has {len(lines)} lines, more than {MOST_LINES}: split it, or list it here with a reason"
        if name.startswith(("roles/", "playbooks/", "inventories/", "extensions/")) and path.suffix in (".yml", ".j2"):
            for number, line in enumerate(lines, 1):
                for variable in re.findall(r"(?<![\w.'\"])ansible_(\w+)", line.split(" #", 1)[0]):
                    if variable not in ANSIBLE_NAMES and not variable.startswith(ANSIBLE_PREFIXES):
                        yield f"{name}:{number}: ansible_{variable} is a fact: write ansible_facts['{variable}']"
    for name in sorted(LONG_FILES):
        if not (root / name).is_file():
            yield f"{name} is listed here as a long file, but does not exist"


def inventories(root: Path) -> Iterator[str]:
    """A variable that an example site sets is one that a role reads."""
    known = {name for path in (root / "roles").glob("*/defaults/main.yml") for name in load(path)}
    for path in sorted((root / "inventories").glob("*-spark*/*_vars/*.yml")):
        for name in load(path):
            if name not in known and not name.startswith("ansible_"):
                yield f"{path.relative_to(root)}: {name} is in no role's defaults"


def order(root: Path) -> Iterator[str]:
    """Ansible's filters for sets give another order in each run: only where there is none, or where it is made right away."""
    for folder in ("roles", "playbooks"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".yml", ".j2"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = SET_FILTER.search(line)
                if found and not re.search(r"\|\s*(length|sort)\b", found[0]):
                    yield f"{path.relative_to(root)}:{number}: {found[1]} has another order in each run; use unique or reject('in', ...), or sort it"


def defaults_of_roles(root: Path) -> Iterator[str]:
    """A playbook's own tasks do not see the defaults of roles: it says beside each of their variables what holds without it."""
    known = {name for path in (root / "roles").glob("*/defaults/main.yml") for name in load(path)}
    for path in sorted((root / "playbooks").glob("*.yml")):
        text = "\n".join(line.split("# ", 1)[0] for line in path.read_text().splitlines())
        given = set(re.findall(r"^ +(vllm_\w+):", text, re.MULTILINE))
        for expression in re.finditer(r"\{\{.*?\}\}|^ +(?:when|that): [^\n]*", text, re.MULTILINE | re.DOTALL):
            for found in re.finditer(r"(?<![\w'\"])vllm_\w+", expression[0]):
                guarded = rf"\b{found[0]} (?:\| default\(|is defined)"
                if found[0] in known - given and not re.search(guarded, expression[0]):
                    number = text.count("\n", 0, expression.start() + found.start()) + 1
                    yield f"{path.relative_to(root)}:{number}: {found[0]} is undefined where no inventory has it: add a default"


CHECKS = (roles, plugins, host_side, readme, files, inventories, order, defaults_of_roles)


def findings(root: Path) -> list[str]:
    return [line for check in CHECKS for line in check(root)]


if __name__ == "__main__":
    found = findings(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2])
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
