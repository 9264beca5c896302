# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One unit as it is now: the links that enable it, and its mask.

Private to this collection: may change at any time. Host-side, standard library only.

The mask is a link in the folder that systemd reads before all others, so no unit file is moved away or changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from . import _foreign_host, _host
from ._foreign_host import Manager
from ._foreign_kinds import RUNNING


class Unit:
    """One unit as it is now."""

    def __init__(self, key: str) -> None:
        account, _slash, self.name = key.rpartition("/")
        self.key, self.manager = key, _foreign_host.manager(account)
        self.mask = f"{self.manager.masks}/{self.name}"
        self.look()

    def look(self) -> None:
        found = _foreign_host.properties(self.manager, [self.name]).get(self.name, {})
        self.load, self.active = found.get("LoadState", "not-found"), found.get("ActiveState", "inactive")
        self.enabled, self.type = found.get("UnitFileState", ""), found.get("Type", "")

    @property
    def is_masked_by_us(self) -> bool:
        return os.path.islink(self.mask) and os.readlink(self.mask) == "/dev/null"

    @property
    def is_silent(self) -> bool:
        return self.load == "masked" and self.active not in RUNNING and not self.links()

    def links(self) -> list[list[str]]:
        """Every link that enables it or is another name of it, as path and target; not the unit file, if that is a link itself."""
        found: list[list[str]] = []
        for root in self.manager.folders:
            names = {self.name}
            for entry in _entries(root):
                if (
                    entry.is_symlink()
                    and entry.name != self.name
                    and os.path.basename(os.readlink(entry.path)) == self.name
                ):
                    names.add(entry.name)
                    found.append([entry.path, os.readlink(entry.path)])
            for folder in _entries(root):
                if folder.name.endswith((".wants", ".requires", ".upholds")) and folder.is_dir():
                    found += [
                        [entry.path, os.readlink(entry.path)]
                        for entry in _entries(folder.path)
                        if entry.name in names and entry.is_symlink()
                    ]
        return found

    def entry(self, masked_before: bool) -> dict[str, Any]:
        return {
            "active": self.active,
            "enabled": self.enabled,
            "type": self.type,
            "links": self.links(),
            "masked_before": masked_before,
        }

    def add_mask(self) -> None:
        if self.is_masked_by_us:
            return
        _make_folder(self.manager)
        os.symlink("/dev/null", self.mask)
        self._own(self.mask)
        _host.sync_folder(self.manager.masks)

    def remove_mask(self) -> None:
        if self.is_masked_by_us:
            os.unlink(self.mask)
            _host.sync_folder(self.manager.masks)
            with contextlib.suppress(OSError):  # not empty: others have settings there
                os.rmdir(self.manager.masks)

    def put_back(self, links: Sequence[Sequence[str]]) -> None:
        for path, target in links:
            if not os.path.lexists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.symlink(target, path)
                self._own(path)
                _host.sync_folder(os.path.dirname(path))

    def _own(self, path: str) -> None:
        if self.manager.account:
            os.chown(path, self.manager.uid, self.manager.gid, follow_symlinks=False)

    def systemctl(self, *words: str, timeout: float = 60, check: bool = True) -> None:
        self.manager.systemctl(*words, self.name, timeout=timeout, check=check)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _make_folder(of: Manager) -> None:
    if not os.path.isdir(of.masks):
        os.makedirs(of.masks, mode=0o755)
        if of.account:
            os.chown(of.masks, of.uid, of.gid)
        _host.sync_folder(os.path.dirname(of.masks))


def reload(units: Sequence[Unit]) -> None:
    for of in {unit.manager for unit in units}:
        of.systemctl("daemon-reload")
    for unit in units:
        unit.look()
