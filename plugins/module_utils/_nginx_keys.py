# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys that clients of the proxy need, as a file of nginx's that nobody but root reads.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError

# What HTTP allows in a bearer token; nothing of it means anything to nginx's own language.
_PLAIN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
SHORTEST, LONGEST = 16, 256

_TEXT = """\
# keys: {known}; towards the engines: {towards}
# SPDX-License-Identifier: GPL-3.0-or-later
# Written by the module gb10.vllm.proxy_config. These are secrets: only root reads this file.

# A client is known by a digest of its key, in the log too. Patterns, because nginx compares plain words without case.
map $http_authorization $gb10_vllm_key {{
    default "";
{patterns}}}

map $gb10_vllm_key $gb10_vllm_engine_authorization {{
    default "{engine}";
    "" "";
}}
"""


def fingerprint(key: str) -> str:
    """By what a person recognises a key without learning it."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def flaw(key: str) -> str:
    """Why this is no key that the proxy can ask for, in words that do not contain it; empty when it is one."""
    if not SHORTEST <= len(key) <= LONGEST:
        return f"has {len(key)} characters, must have {SHORTEST} to {LONGEST}"
    if not _PLAIN.fullmatch(key):
        return "has a character other than letters, digits and . _ ~ + / - (and = at its end)"
    return ""


def check(name: str, keys: Sequence[str]) -> None:
    """Refuse what is no key, by its place in the list."""
    for number, key in enumerate(keys):
        if reason := flaw(key):
            raise NginxError(f"{name}[{number}] {reason}; `openssl rand -hex 24` makes a good one")


def render(keys: Sequence[str], engine_key: str) -> str | None:
    """The whole file; None when clients need no key, so that theirs, if any, goes to the engines."""
    if not keys:
        return None
    check("api_keys", keys)
    if engine_key and not re.fullmatch(r"[!#%-\[\]-~]+", engine_key):
        raise NginxError(
            "engine_api_key has a space, a quote, a backslash, a dollar sign or a character that is none of ASCII"
        )
    return _TEXT.format(
        known=" ".join(fingerprint(key) for key in keys),
        towards=fingerprint(engine_key) if engine_key else "none",
        patterns="".join(f'    "~^(?i:Bearer) +{re.escape(key)}$" "{fingerprint(key)}";\n' for key in keys),
        engine=f"Bearer {engine_key}" if engine_key else "",
    )


def shown(text: str | None) -> str:
    """What a diff may show of the file."""
    return f"{text.splitlines()[0]}\n" if text and text.startswith("# keys: ") else "# not shown\n" if text else ""
