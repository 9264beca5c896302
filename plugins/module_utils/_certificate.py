# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate and its key, tried out in memory between a server and a client that knows the certificate.

Private to this collection: may change at any time. Host-side, standard library only.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import Any

# OpenSSL's X509_V_FLAG_NO_CHECK_TIME: the dates are read and judged here, so that the message can name them.
_NO_CHECK_TIME = 0x200000


class CertificateError(Exception):
    """Why clients would not accept it; the message names the file and the way out."""


def check(certificate: str, key: str, server_name: str, now: float) -> dict[str, Any]:
    """Its digest and its end; CertificateError for what is wrong with it at the time `now` (seconds since the epoch)."""
    text = _read(certificate)
    _read(key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # A key with a passphrase fails on the empty one, instead of asking at a terminal.
        server.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise CertificateError(
                f"the key {key} does not belong to the certificate {certificate}: give the two that were made together"
            ) from None
        raise CertificateError(
            f"the certificate {certificate} and the key {key} cannot be used: {error.reason or error}. "
            "Both must be in PEM format, the key without a passphrase"
        ) from None
    said = _shake_hands(server, text, certificate)
    begin, end = ssl.cert_time_to_seconds(said["notBefore"]), ssl.cert_time_to_seconds(said["notAfter"])
    if now >= end:
        raise CertificateError(f"the certificate {certificate} has expired, at {said['notAfter']}: renew it")
    if now < begin:
        raise CertificateError(
            f"the certificate {certificate} is not valid before {said['notBefore']}: wait, or correct the clock of this host"
        )
    if server_name:
        names = ", ".join(name for _kind, name in said.get("subjectAltName", ())) or "none"
        _shake_hands(server, text, certificate, server_name, names)
    return {
        "digest": hashlib.sha256(text.encode()).hexdigest(),
        "not_after": said["notAfter"],
        "days_left": round((end - now) / 86400, 1),
    }


def ends(certificate: str, key: str) -> float:
    """When it ends, in seconds since the epoch, also when that is over; CertificateError for one that cannot be used at all."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        server.load_cert_chain(certificate, key, password="")
    except (OSError, ssl.SSLError) as error:
        raise CertificateError(f"the certificate {certificate} and the key {key} cannot be used: {error}") from None
    return ssl.cert_time_to_seconds(_shake_hands(server, _read(certificate), certificate)["notAfter"])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}. Put it onto this host first") from None


def _shake_hands(server: ssl.SSLContext, text: str, path: str, name: str = "", names: str = "") -> Any:
    """What a client learns of the certificate that trusts it for itself and asks for `name`, where it is for `names`."""
    mark = "-----END CERTIFICATE-----"
    begin = text.find("-----BEGIN CERTIFICATE-----")
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = bool(name)
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | _NO_CHECK_TIME
    client.load_verify_locations(cadata=text[begin : text.find(mark) + len(mark)] + "\n")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    asks = client.wrap_bio(to_client, to_server, server_hostname=name or None)
    answers = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [asks, answers]
    try:
        while pending:
            for side in list(pending):
                try:
                    side.do_handshake()
                    pending.remove(side)
                except ssl.SSLWantReadError:
                    continue
    except ssl.SSLCertVerificationError as error:
        why = f"is not for the name '{name}' but for: {names}" if name else f"is refused: {error.verify_message}"
        raise CertificateError(f"the certificate {path} {why}. Give one that clients accept") from None
    except ssl.SSLError as error:
        raise CertificateError(f"the certificate {path} cannot be used: {error.reason or error}") from None
    return asks.getpeercert()
