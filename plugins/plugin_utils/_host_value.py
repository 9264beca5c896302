# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One number among a host's variables in the inventory, with everything else of the file left as its owner wrote it.

Private to this collection: may change at any time. Controller only; pure but for `place`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

# In Ansible's own order: the first one that exists is read, the others are not.
ENDINGS = ("", ".yml", ".yaml", ".json")
NEW_FILE = "---\n"


class ValueRefused(ValueError):
    """The file cannot be changed safely; the message says what to write by hand."""


class _Loader(yaml.SafeLoader):
    """Reads vault values and other tags as plain text."""


def _plain(loader: yaml.SafeLoader, _suffix: str, node: Any) -> Any:
    return loader.construct_scalar(node)


_Loader.add_multi_constructor("!", _plain)


def place(inventory: str, host: str, name: str) -> Path:
    """The file of the host's variables that has the name, or is the place for it; it may not exist yet."""
    if not inventory or not Path(inventory).is_dir():
        raise ValueRefused(
            f"the inventory of {host} is no folder or file, so there is no place for {name}: set it where you keep its variables"
        )
    base = Path(inventory, "host_vars", host)
    found = next((path for ending in ENDINGS if (path := Path(f"{base}{ending}")).exists()), Path(f"{base}.yml"))
    if not found.is_dir():
        return found
    files = sorted(path for path in found.rglob("*") if path.is_file() and path.suffix in (".yml", ".yaml", ""))
    having = [path for path in files if re.search(rf"^{re.escape(name)}\s*:", path.read_text(), re.MULTILINE)]
    return having[-1] if having else found / f"{name}.yml"


def changed(text: str, name: str, value: int, path: str) -> str:
    """The text of the file with `name: value`.

    Raises:
        ValueRefused: it is encrypted, JSON, or would not mean the same otherwise.
    """
    by_hand = f"{path}: write `{name}: {value}` into it yourself, then run cutover.yml"
    if text.startswith("$ANSIBLE_VAULT"):
        raise ValueRefused(f"the file is encrypted as a whole. {by_hand}")
    line = f"{name}: {value}"
    pattern = re.compile(rf"^{re.escape(name)}[ \t]*:[^\n#]*?(?P<comment>[ \t]+#[^\n]*)?$", re.MULTILINE)
    before = _read(text, by_hand)
    if pattern.search(text):
        found = pattern.sub(lambda match: line + (match["comment"] or ""), text)
    else:
        found = (text or NEW_FILE) + ("" if not text or text.endswith("\n") else "\n") + line + "\n"
    # A key in quotes would be there twice.
    if _read(found, by_hand) != {**before, name: value} or (name in before and not pattern.search(text)):
        raise ValueRefused(f"the file is written in a way that cannot be changed safely. {by_hand}")
    return found


def _read(text: str, by_hand: str) -> dict[str, Any]:
    try:
        content = yaml.load(text, _Loader) or {}
    except yaml.YAMLError as error:
        raise ValueRefused(f"the file is no YAML ({' '.join(str(error).split())[:120]}). {by_hand}") from None
    if not isinstance(content, dict):
        raise ValueRefused(f"the file holds no variables. {by_hand}")
    return content
