# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate that clients would not accept is refused by name."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _certificate
from ansible_collections.gb10.vllm.tests.unit.certificates import make


@pytest.mark.parametrize("name", ["", "llm.example.org", "192.0.2.7", "a.wild.example.org"])
def test_a_good_one(tmp_path: Path, name: str) -> None:
    certificate, key = make(tmp_path, "llm.example.org", "192.0.2.7", "*.wild.example.org", days=30)
    said = _certificate.check(str(certificate), str(key), name, time.time())
    assert said["days_left"] == 30
    assert said["not_after"].endswith("GMT")
    renewed = _certificate.check(*map(str, make(tmp_path, "llm.example.org")), "", time.time())
    assert said["digest"] != renewed["digest"]


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        ({"begin": -30, "days": -1}, "", r"has expired, at .* GMT: renew it"),
        ({"begin": 1}, "", r"is not valid before .* GMT: wait, or correct the clock"),
        ({}, "other.example.org", "not for the name 'other.example.org' but for: llm.example.org, 192.0.2.7"),
        ({}, "192.0.2.8", "not for the name '192.0.2.8'"),
        ({"passphrase": "secret"}, "", "cannot be used.*without a passphrase"),
    ],
)
def test_a_bad_one_is_refused_by_name(tmp_path: Path, kind: dict[str, Any], name: str, words: str) -> None:
    certificate, key = make(tmp_path, "llm.example.org", "192.0.2.7", **kind)
    with pytest.raises(_certificate.CertificateError, match=words) as refused:
        _certificate.check(str(certificate), str(key), name, time.time())
    assert str(certificate) in str(refused.value)


def test_two_files_that_do_not_belong_together(tmp_path: Path) -> None:
    certificate, own = make(tmp_path, "llm.example.org")
    other = make(tmp_path, "llm.example.org", called="other")[1]
    for key, words in (
        (other, f"the key {other} does not belong to the certificate {certificate}"),
        (tmp_path / "none", "none cannot be read: No such file or directory"),
        (certificate, "cannot be used"),
    ):
        with pytest.raises(_certificate.CertificateError, match=words):
            _certificate.check(str(certificate), str(key), "", time.time())
    certificate.write_text("no certificate")
    with pytest.raises(_certificate.CertificateError, match="cannot be used"):
        _certificate.check(str(certificate), str(own), "", time.time())
