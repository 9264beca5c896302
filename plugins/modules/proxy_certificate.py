#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Is this certificate one that clients will accept today?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_certificate
short_description: Check the proxy's certificate before nginx gets it
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Used by the role P(gb10.vllm.proxy#role). nginx itself takes a certificate that expired years ago; clients do not.
  - Lets a client and a server with this certificate talk to each other in memory, and refuses a key that does not belong to it, one that is
    expired or not yet valid, and one that is for another name.
  - Whether clients trust its issuer is theirs to know, and is not checked.
  - Reads the two files; changes nothing.
options:
  certificate:
    description: Path of the certificate on the host, in PEM format, the server's own first, then its chain.
    type: path
    required: true
  key:
    description: Path of its private key, in PEM format, without a passphrase.
    type: path
    required: true
  server_name:
    description: Host name or IP address that the certificate must be for. Empty is not checked.
    type: str
    default: ""
  warn_days:
    description: From how many days before its end on to warn. Range 0 to 3650.
    type: int
    default: 21
extends_documentation_fragment:
  - gb10.vllm._attributes
attributes:
  check_mode:
    support: full
    details: Reads only, so it does the same in check mode.
  diff_mode:
    support: none
    details: It changes nothing.
  idempotent:
    support: full
    details: It changes nothing.
seealso:
  - module: gb10.vllm.proxy_config
"""

EXAMPLES = r"""
- name: Check the certificate
  gb10.vllm.proxy_certificate:
    certificate: /etc/ssl/certs/llm.pem
    key: /etc/ssl/private/llm.key
    server_name: llm.example.org
"""

RETURN = r"""
digest:
  description: SHA-256 of the certificate file, so another value means another certificate.
  returned: success
  type: str
not_after:
  description: When it ends, as the certificate says it.
  returned: success
  type: str
  sample: Nov 30 00:00:00 2027 GMT
days_left:
  description: For how many days more it is valid.
  returned: success
  type: float
"""

import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _certificate


def run(params: dict[str, Any], now: float) -> dict[str, Any]:
    """The whole module on plain values."""
    if not 0 <= params["warn_days"] <= 3650:
        raise _certificate.CertificateError(f"warn_days is {params['warn_days']}, must be 0 to 3650")
    return _certificate.check(params["certificate"], params["key"], params["server_name"], now)


def main() -> None:
    """Entry point."""
    module = AnsibleModule(
        argument_spec={
            "certificate": {"type": "path", "required": True},
            # A path, not the key itself.
            "key": {"type": "path", "required": True, "no_log": False},
            "server_name": {"type": "str", "default": ""},
            "warn_days": {"type": "int", "default": 21},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params, time.time())
    except _certificate.CertificateError as error:
        module.fail_json(msg=str(error))
    if result["days_left"] < module.params["warn_days"]:
        module.warn(
            f"the certificate {module.params['certificate']} ends in {result['days_left']:.1f} days, at {result['not_after']}: renew it"
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
