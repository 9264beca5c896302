# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mods, folders on the controller with a `run.sh` that is run in the container before the engine starts.

Private to this collection: may change at any time. Controller only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Mods are patches of a few kilobytes; a model folder named by mistake must not be read into memory.
MOST_BYTES = 4 * 1024 * 1024


class ModError(ValueError):
    """A mod that cannot be used; the message names the folder and the way out."""


def read_all(folders: Sequence[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """The files of every mod by the mod's name, in the order in which they are run."""
    mods: dict[str, dict[str, dict[str, Any]]] = {}
    for folder in folders:
        path = Path(os.path.expanduser(folder))
        if path.name in mods:
            raise ModError(f"two mod folders are called {path.name}: in the container they would be one, so rename one")
        mods[path.name] = read_mod(path)
    return mods


def read_mod(folder: Path) -> dict[str, dict[str, Any]]:
    """Every file of a mod: relative name to text and whether it is executable."""
    if not (folder / "run.sh").is_file():
        raise ModError(
            f"mod folder {folder} on the controller has no run.sh: correct the path, or fetch what it should hold "
            f"(each mod is a folder whose run.sh is run in the container before the engine starts)"
        )
    content: dict[str, dict[str, Any]] = {}
    size = 0
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        size += path.stat().st_size
        if size > MOST_BYTES:
            raise ModError(
                f"mod folder {folder} holds more than {MOST_BYTES // 1024 // 1024} MiB; is it the right folder?"
            )
        try:
            text = path.read_text()
        except UnicodeDecodeError as error:
            raise ModError(f"{path} of the mod is not a text file; mods are scripts and patches") from error
        content[str(path.relative_to(folder))] = {"content": text, "executable": os.access(path, os.X_OK)}
    return content
