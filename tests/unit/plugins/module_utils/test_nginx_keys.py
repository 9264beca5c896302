# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file with the keys, and what may be said of it."""

from __future__ import annotations

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_keys as keys
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError

GOOD = "sk-0123456789.abc"


def test_without_keys_there_is_no_file() -> None:
    assert keys.render([], "engine") is None
    assert keys.shown(None) == ""


def test_what_is_shown_has_no_key() -> None:
    text = keys.render([GOOD, GOOD + "=="], "the-engines-key")
    assert text is not None
    assert '"~^(?i:Bearer) +sk\\-0123456789\\.abc$" "' in text
    assert 'default "Bearer the-engines-key";' in text
    shown = keys.shown(text)
    assert shown == (
        f"# keys: {keys.fingerprint(GOOD)} {keys.fingerprint(GOOD + '==')}; "
        f"towards the engines: {keys.fingerprint('the-engines-key')}\n"
    )
    assert keys.shown("something else\n") == "# not shown\n"


def test_without_an_engines_key_none_is_sent() -> None:
    text = keys.render([GOOD], "")
    assert text is not None
    assert "towards the engines: none" in text
    assert 'default "";\n    "" "";' in text


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("short", "has 5 characters, must have 16 to 256"),
        ("x" * 257, "has 257 characters"),
        ("a key with spaces in it", "a character other than"),
        ('a"quote"in-the-middle', "a character other than"),
        ("a-line-break-at-the-end\n", "a character other than"),
        ("dollar$and;brace{here}", "a character other than"),
        ("=starts-with-the-padding", "a character other than"),
    ],
)
def test_what_is_no_key_is_refused_by_its_place_alone(key: str, words: str) -> None:
    with pytest.raises(NginxError, match=rf"api_keys\[1\] .*{words}") as refused:
        keys.render([GOOD, key], "")
    assert key not in str(refused.value)


@pytest.mark.parametrize("key", ["has space", 'has"quote', "has$dollar", "has\\slash", "has\nline", "é"])
def test_an_engines_key_that_nginx_would_read_otherwise_is_refused(key: str) -> None:
    with pytest.raises(NginxError, match="engine_api_key has a space") as refused:
        keys.render([GOOD], key)
    assert key not in str(refused.value)
