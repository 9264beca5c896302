# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a program of the collection and all that it imports from it into one file that `python3 FILE` runs.

Private to this collection: may change at any time. Controller only. The same sources always give the same bytes, whoever packs
them, so a service is restarted only when its own code has changed.
"""

from __future__ import annotations

import ast
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

OWN = "ansible_collections.gb10.vllm.plugins.module_utils"
# The time of every entry; the format knows none before it.
EPOCH = (1980, 1, 1, 0, 0, 0)


class ProgramError(ValueError):
    """There is no such program."""


def _modules(source: str, name: str) -> Iterator[str]:
    """The modules of the collection that a source, by its path below module_utils, may mean, with dots."""
    package = [OWN, *name.split("/")[:-1]]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (above, node.module) if part)
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name[len(OWN) + 1 :] for name in names if name.startswith(f"{OWN}."))


def _files(root: Path, module: str) -> Iterator[Path]:
    """The files that importing a module reads; none for a name that is something inside a module."""
    path = root.joinpath(*module.split("."))
    found = [path.with_suffix(".py"), path / "__init__.py"]
    yield from (file for file in found if file.is_file())
    if any(file.is_file() for file in found):
        packages = list(path.relative_to(root).parents)[:-1]
        yield from (
            root / package / "__init__.py" for package in packages if (root / package / "__init__.py").is_file()
        )


def needed(root: Path, program: str) -> dict[str, str]:
    """Path below module_utils and source of everything that a program is made of; ProgramError when there is no such program."""
    entry = root / "_programs" / f"{program}.py"
    if not program.isidentifier() or not entry.is_file():
        known = ", ".join(sorted(path.stem for path in (root / "_programs").glob("[!_]*.py"))) or "none"
        raise ProgramError(f"program is '{program}', which this collection does not have; it has: {known}")
    sources: dict[str, str] = {}
    waiting = [f"_programs.{program}"]
    while waiting:
        for file in _files(root, waiting.pop()):
            name = file.relative_to(root).as_posix()
            if name not in sources:
                sources[name] = file.read_text(encoding="utf-8")
                waiting.extend(_modules(sources[name], name))
    return dict(sorted(sources.items()))


def pack(sources: dict[str, str], program: str) -> bytes:
    """A zip file that Python runs; not compressed, because compressors differ and this is small."""
    folder = OWN.replace(".", "/")
    packages = ["/".join(OWN.split(".")[:depth]) for depth in range(1, OWN.count(".") + 2)]
    files = {f"{package}/__init__.py": "" for package in packages}
    files |= {f"{folder}/{name}": source for name, source in sources.items()}
    files["__main__.py"] = f"import sys\n\nfrom {OWN}._programs.{program} import main\n\nsys.exit(main())\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, source in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), source.encode())
    return packed.getvalue()
