# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Engine options: which are refused, how layers of them merge, and what they become on a command line."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"--port": 1}, "'--port' is not written like an option"),
        ({"max_model_len": 1}, "'max_model_len' is not written like an option"),
        ({"Port": 1}, "'Port' is not written like an option"),
        ({"dtype\n": "x"}, "is not written like an option"),
        ({"": 1}, "'' is not written like an option"),
        ({"x": [["y"]]}, "'x' has a list with something else than texts and numbers"),
        ({"x": [None]}, "'x' has a list with something else"),
        *(
            ({name: "x"}, f"'{name}' is set by the collection: use {where}")
            for name, where in _arguments.RESERVED.items()
        ),
        ({"no-headless": True}, "'no-headless' is set by the collection"),
    ],
)
def test_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(_arguments.ArgumentError) as error:
        _arguments.check(arguments)
    assert message in str(error.value)


def test_accepted() -> None:
    _arguments.check(
        {"max-model-len": 1, "dtype": "auto", "o": None, "a": ["x", 1, 0.5], "b": {"c": [None]}, "no-x": True}
    )


@pytest.mark.parametrize(
    ("layers", "merged"),
    [
        (({"a": 1}, {"a": 2, "b": 3}), {"a": 2, "b": 3}),
        (({"a": 1, "b": 2}, {"a": None}), {"b": 2}),
        (({"a": 1}, None, {"b": False}), {"a": 1, "b": False}),
        (({"a": None}, {"a": 1}), {"a": 1}),
        (({"a": {"b": 1}}, {"a": {"c": 2}}), {"a": {"c": 2}}),
        ((), {}),
    ],
)
def test_merge(layers: tuple[dict[str, Any] | None, ...], merged: dict[str, Any]) -> None:
    assert _arguments.merge(*layers) == merged


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--x"]),
        (False, ["--no-x"]),
        (0, ["--x", "0"]),
        (1, ["--x", "1"]),
        (0.78, ["--x", "0.78"]),
        ("", ["--x", ""]),
        ("a b", ["--x", "a b"]),
        ([1, "b"], ["--x", "1", "b"]),
        ([], ["--x"]),
        ({"b": 1, "a": {"c": True}}, ["--x", '{"a":{"c":true},"b":1}']),
    ],
)
def test_one_option(value: Any, words: list[str]) -> None:
    assert _arguments.groups({"x": value}) == [words]


def test_the_order_stays() -> None:
    assert [words[0] for words in _arguments.groups({"b": 1, "a": 2, "c": True})] == ["--b", "--a", "--c"]
