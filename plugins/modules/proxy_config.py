#!/usr/bin/python
# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Install the proxy's configuration files, tested and proven as one change."""

from __future__ import annotations

DOCUMENTATION = r"""
module: proxy_config
short_description: Install configuration files of nginx only if nginx accepts them, and prove the reload
version_added: "1.0.0"
author:
  - gb10.vllm contributors (@gb10-vllm)
description:
  - Used by the role P(gb10.vllm.proxy#role). All files of one call are one change.
  - nginx tests a shadow copy of its configuration that contains the new files. A file that C(nginx.conf) does not include is refused,
    because it would have no effect. Only then the files are replaced, each atomically, and nginx is reloaded if it is running.
    The module waits for the proof that every worker which accepts connections is a new one. Without it the old files are put back,
    and the module fails with the error line of nginx.
  - Creates the list of admitted servers without a server if there is none. An existing list keeps its servers; only the limits
    O(max_fails) and O(fail_timeout_seconds) and the shares of O(copies) are brought up to date.
  - Reads the configuration of nginx and the process table. Changes only the files named in O(files) and C(gb10-vllm/servers.conf)
    and C(gb10-vllm/keys.conf) in O(conf_dir). Never touches another site, and never starts or stops nginx.
options:
  files:
    description: The files that make up the configuration.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Where the file is, relative to O(conf_dir).
        type: str
        required: true
      content:
        description: The whole text. An empty text means that the file must not exist.
        type: str
        required: true
  max_fails:
    description: After how many failures within O(fail_timeout_seconds) nginx leaves out a server for a while. Range 0 (never) to 10.
    type: int
    default: 2
  fail_timeout_seconds:
    description: How long nginx leaves out a server that failed, in seconds. Range 1 to 10.
    type: int
    default: 3
  copies:
    description:
      - The share of each copy, with the keys C(name), C(weight) (1 to 100) and C(max_conns) (0, which is no limit, to 65535). Further keys are ignored.
      - They are kept beside the list, so a copy has its share whenever it is admitted.
    type: list
    elements: dict
    default: []
  api_keys:
    description:
      - The keys of which clients have to send one, in the header C(Authorization) as C(Bearer KEY); each 16 to 256 characters long. Several are valid at once.
      - Kept in C(gb10-vllm/keys.conf), which only root can read; a diff shows digests of them. Without a key the file is removed.
      - The files in O(files) have to include that file and use its variables C($gb10_vllm_key) (a digest of the client's key, or empty) and
        C($gb10_vllm_engine_authorization).
    type: list
    elements: str
    default: []
  engine_api_key:
    description: The key that the proxy sends to the engines in place of the client's; empty for none. Only with O(api_keys).
    type: str
    default: ""
extends_documentation_fragment:
  - gb10.vllm._attributes
  - gb10.vllm._nginx
  - gb10.vllm._nginx.change
attributes:
  check_mode:
    support: full
    details:
      - The candidate is tested where nginx is running, without creating the log files that it names.
      - Elsewhere nothing is tested; also on a host without nginx every file is reported as new.
  diff_mode:
    support: full
  idempotent:
    support: full
    details:
      - nginx is reloaded only when a file changes.
seealso:
  - module: gb10.vllm.proxy_server
"""

EXAMPLES = r"""
- name: Install the proxy's site
  gb10.vllm.proxy_config:
    files:
      - path: conf.d/gb10-vllm.conf
        content: "{{ lookup('ansible.builtin.template', 'gb10-vllm.conf.j2') }}"
    fail_timeout_seconds: 3
"""

RETURN = r"""
running:
  description: Whether nginx is running. If not, the files take effect when nginx starts.
  returned: success
  type: bool
tested:
  description: Whether nginx tested the files; false when nothing changed, or in check mode where nginx does not run.
  returned: success
  type: bool
reloaded_at:
  description: When the reload was proven, in seconds since the epoch; null without a reload.
  returned: success
  type: float
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gb10.vllm.plugins.module_utils import _nginx_keys
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import (
    Membership,
    NginxError,
    check_limits,
    parse,
    render,
    shares,
)
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import KEYS, PRIVATE, SERVERS, Nginx


def _wanted(params: dict[str, Any], nginx: Nginx) -> dict[str, str | None]:
    """Every file with the text it should have; the list of servers first, because the others include it."""
    limits = {"max_fails": params["max_fails"], "fail_timeout_seconds": params["fail_timeout_seconds"]}
    check_limits(**limits)
    text = nginx.read(SERVERS)
    membership = Membership() if text is None else parse(text, f"{nginx.conf_dir}/{SERVERS}")
    membership = replace(membership, **limits, shares=shares(params["copies"]))
    wanted: dict[str, str | None] = {SERVERS: render(membership)}
    wanted[KEYS] = _nginx_keys.render(params["api_keys"], params["engine_api_key"])
    for entry in params["files"]:
        path = PurePosixPath(entry["path"])
        if path.is_absolute() or ".." in path.parts or str(path) in wanted:
            raise NginxError(f"path '{path}' must be relative to {nginx.conf_dir}, inside it, and given once")
        wanted[str(path)] = entry["content"] or None
    return wanted


def _shown(name: str, text: str | None) -> str:
    return _nginx_keys.shown(text) if name in PRIVATE else text or ""


def _change(nginx: Nginx, params: dict[str, Any], check_mode: bool) -> dict[str, Any]:
    wanted = _wanted(params, nginx)
    before = {name: nginx.read(name) for name in wanted}
    changes = {name: text for name, text in wanted.items() if before[name] != text or (text and nginx.is_open(name))}
    result: dict[str, Any] = {
        "changed": bool(changes),
        "tested": False,
        "reloaded_at": None,
        "running": nginx.master() is not None,
        "diff": [
            {
                "before": _shown(name, before[name]),
                "after": _shown(name, text),
                "before_header": name,
                "after_header": name,
            }
            for name, text in changes.items()
        ],
    }
    if not changes or (check_mode and not result["running"]):
        return result
    # Tested with all files, also the unchanged ones: each has to be part of what nginx reads.
    if check_mode:
        nginx.test(wanted, traceless=True)
    else:
        result["reloaded_at"] = nginx.apply(wanted)
    result["tested"] = True
    return result


def run(params: dict[str, Any], check_mode: bool, program: str | None) -> dict[str, Any]:
    """The whole module on plain values."""
    if not 1 <= params["reload_seconds"] <= 300:
        raise NginxError(f"reload_seconds is {params['reload_seconds']}, must be 1 to 300")
    if not program and not check_mode:
        raise NginxError("nginx is not installed on this host: run the role gb10.vllm.proxy, which installs it")
    nginx = Nginx(params["conf_dir"], params["pid_file"], program, params["reload_seconds"])
    if not check_mode:
        (nginx.conf_dir / SERVERS).parent.mkdir(mode=0o755, exist_ok=True)
    with nullcontext() if check_mode else nginx.lock():
        return _change(nginx, params, check_mode)


def main() -> None:
    """Entry point."""
    file_spec = {"path": {"type": "str", "required": True}, "content": {"type": "str", "required": True}}
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "list", "elements": "dict", "required": True, "options": file_spec},
            "max_fails": {"type": "int", "default": 2},
            "fail_timeout_seconds": {"type": "int", "default": 3},
            "copies": {"type": "list", "elements": "dict", "default": []},
            "api_keys": {"type": "list", "elements": "str", "default": [], "no_log": True},
            "engine_api_key": {"type": "str", "default": "", "no_log": True},
            "reload_seconds": {"type": "int", "default": 10},
            "conf_dir": {"type": "path", "default": "/etc/nginx"},
            "pid_file": {"type": "path", "default": "/run/nginx.pid"},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params, module.check_mode, module.get_bin_path("nginx", opt_dirs=["/usr/sbin", "/sbin"]))
    except NginxError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
