# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates of every kind, made with the library that ansible-core brings along."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def make(
    folder: Path, *names: str, begin: float = -1, days: float = 30, called: str = "site", passphrase: str = ""
) -> tuple[Path, Path]:
    """Certificate and key in the folder: valid from `begin` days from now on, until `days` days from now."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, called)])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = []
    for entry in names:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(entry)))
        except ValueError:
            alternatives.append(x509.DNSName(entry))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=begin))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(key, hashes.SHA256())
    )
    closed = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else serialization.NoEncryption()
    (folder / f"{called}.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / f"{called}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, closed)
    )
    return folder / f"{called}.pem", folder / f"{called}.key"
