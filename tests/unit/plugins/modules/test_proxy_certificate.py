# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the check of a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import proxy_certificate
from ansible_collections.gb10.vllm.tests.unit.certificates import make


@pytest.mark.parametrize(("days", "warned"), [(20, True), (22, False)])
def test_the_module_warns_in_time(
    tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch, days: int, warned: bool
) -> None:
    said: list[str] = []
    monkeypatch.setattr(proxy_certificate.AnsibleModule, "warn", lambda _module, text: said.append(text))
    certificate, key = make(tmp_path, "llm.example.org", days=days)
    result = call(proxy_certificate, certificate=str(certificate), key=str(key))
    assert (result["changed"], result["days_left"]) == (False, days)
    assert [f"{certificate} ends in {days}.0 days" in text for text in said] == [True] * warned


@pytest.mark.parametrize(
    ("options", "words"), [({"warn_days": -1}, "warn_days is -1, must be 0 to 3650"), ({"server_name": "x"}, "'x'")]
)
def test_the_module_fails_with_the_reason(tmp_path: Path, call: Any, options: dict[str, Any], words: str) -> None:
    certificate, key = make(tmp_path, "llm.example.org")
    result = call(proxy_certificate, certificate=str(certificate), key=str(key), **options)
    assert result["failed"]
    assert words in result["msg"]
