# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit on this machine: a listener stands for the engine, this very process walks past the proxy."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _bypass_host
from ansible_collections.gb10.vllm.plugins.modules import bypass_audit


@pytest.fixture
def port() -> Iterator[int]:
    """A listening port with one client, this process."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        yield server.getsockname()[1]


@pytest.fixture
def audit(call: Any, commands: Any, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    # Tests may themselves be started by Ansible.
    monkeypatch.setattr(_bypass_host, "_is_ansible", lambda pid: False)
    commands.answers = {
        "journalctl": (0, "", ""),
        "systemctl show gb10-vllm-firewall.service": (0, "ActiveState=inactive\n", ""),
        "docker ps": (0, "", ""),
    }

    def run(**more: Any) -> dict[str, Any]:
        options: dict[str, Any] = {
            "host": "spark1",
            "engines": [{"name": "spark1", "places": ["192.0.2.11"], "port": port}],
            "sources": ["192.0.2.21"],
            "hosts": [{"name": "spark2", "places": ["192.0.2.12"]}],
            "proxy": "http://192.0.2.21:8080",
            "watch_seconds": 0,
            "paths": [str(tmp_path)],
        }
        result: dict[str, Any] = call(bypass_audit, **{**options, **more})
        assert not result.get("failed"), result
        return result

    return run


def test_a_process_on_the_loopback_is_named(audit: Any, port: int) -> None:
    (finding,) = audit()["findings"]
    assert finding["kind"] == "process"
    assert finding["pid"] == os.getpid()
    assert finding["address"] == f"127.0.0.1:{port}"
    assert finding["text"].startswith(f"spark1: process {finding['process']} (pid {os.getpid()}, {finding['unit']}, `")
    assert finding["text"].endswith("Let it use http://192.0.2.21:8080 instead.")


def test_it_is_accepted_by_name(audit: Any) -> None:
    name = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert audit(accept=[name])["findings"] == []


def test_another_hosts_loopback_is_not_the_engine(audit: Any, port: int) -> None:
    engines = [{"name": "spark1", "places": ["192.0.2.11"], "port": port}]
    assert audit(host="proxy1", engines=engines)["findings"] == []


def test_files_are_named_by_line_and_never_shown(audit: Any, port: int, tmp_path: Path) -> None:
    (tmp_path / "batch").mkdir()
    (tmp_path / "batch/config.yaml").write_text(f"key: sk-secret\nurl: http://192.0.2.11:{port}/v1?key=sk-secret\n")
    (tmp_path / "batch/binary").write_bytes(b"\0" + f"http://192.0.2.11:{port}".encode())
    (tmp_path / "batch/large.yaml").write_text("#" * 2000 + f"\nurl: http://192.0.2.11:{port}\n")
    (tmp_path / "link.yaml").symlink_to("batch/config.yaml")
    (tmp_path / ".bash_history").write_text(f"curl 192.0.2.11:{port}\n")
    (tmp_path / ".ansible/tmp").mkdir(parents=True)
    (tmp_path / ".ansible/tmp/AnsiballZ_bypass_audit.py").write_text(f"'192.0.2.11', {port}\n")
    (tmp_path / "gb10-vllm").mkdir()
    (tmp_path / "gb10-vllm/own.conf").write_text(f"server 192.0.2.11:{port};\n")
    result = audit(host="proxy1", file_kib=1, accept=["*/gb10-vllm*"])
    (finding,) = result["findings"]
    assert (finding["path"], finding["line"]) == (str(tmp_path / "batch/config.yaml"), 2)
    assert finding["text"] == (
        f"proxy1: {tmp_path}/batch/config.yaml:2 names the engine of spark1 (192.0.2.11:{port}). "
        "Put http://192.0.2.21:8080 there instead."
    )
    assert "secret" not in str(result["findings"])


def test_a_limit_is_said(audit: Any, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("a: b\n")
    result = audit(host="proxy1", files=2)
    assert result["files_read"] == 2
    assert result["limits"] == ["proxy1: 2 files were read, the rest was not (vllm_audit_files)"]


def test_requests_in_the_log_are_found(audit: Any, commands: Any) -> None:
    line = 'INFO:     192.0.2.12:41234 - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    commands.answers["journalctl"] = (0, f"1764460000.5 spark1 docker[8]: {line}\n" * 2, "")
    finding = next(entry for entry in audit()["findings"] if entry["kind"] == "request")
    assert finding["text"] == (
        "spark1: 192.0.2.12 (host spark2) sent 2 requests past the proxy within 60 minutes, the last one "
        "`POST /v1/chat/completions` at 2025-11-29T23:46:40Z. Let it use http://192.0.2.21:8080 instead."
    )
    (command,) = commands.begins("journalctl")
    assert "--lines=20000" in command


@pytest.mark.parametrize(("status", "kinds"), [(1, ["firewall"]), (0, [])])
def test_a_flushed_table_is_found(audit: Any, commands: Any, status: int, kinds: list[str]) -> None:
    commands.answers["systemctl show gb10-vllm-firewall.service"] = (0, "ActiveState=active\n", "")
    commands.answers["nft list table inet gb10_vllm"] = (status, "", "")
    name = Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert [finding["kind"] for finding in audit(accept=[name])["findings"]] == kinds


def test_a_number_out_of_range_is_refused(call: Any) -> None:
    result = call(bypass_audit, host="a", engines=[], watch_seconds=601)
    assert result["msg"] == "watch_seconds is 601: must be 0 to 600"
