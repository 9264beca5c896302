# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proxy modules against a real nginx: tested candidates, proven reloads, nothing lost between two callers."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _members, _nginx_membership
from ansible_collections.gb10.vllm.plugins.module_utils._nginx import NginxError
from ansible_collections.gb10.vllm.plugins.module_utils._nginx_host import KEYS, SERVERS, SITE


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of the configuration with its inode, so that a rewritten equal file shows too."""
    return {
        str(path.relative_to(folder)): (path.stat().st_ino, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.suffix in (".conf", ".new")
    }


def test_admit_is_proven_and_quiet_the_second_time(proxy: Any, copies: list[Any]) -> None:
    before = proxy.info()["worker_pids"]
    first = proxy.server("spark1", copies[0].address)
    assert (first["changed"], first["tested"], first["running"]) == (True, True, True)
    assert first["admitted"] == [{"name": "spark1", "server": copies[0].address}]
    assert first["started_at"] < first["reloaded_at"] <= first["done_at"]
    workers = proxy.info()["worker_pids"]
    assert len(workers) == 2
    assert not set(workers) & set(before)
    assert proxy.request("GET", "/v1/models")[0] == 200

    kept = tree(proxy.folder)
    second = proxy.server("spark1", copies[0].address)
    assert (second["changed"], second["tested"], second["reloaded_at"]) == (False, False, None)
    assert tree(proxy.folder) == kept
    assert proxy.info()["worker_pids"] == workers


@pytest.mark.parametrize("state", ["admitted", "withdrawn"])
def test_what_the_proxy_took_out_by_itself_is_kept_until_somebody_decides(
    proxy: Any, copies: list[Any], state: str
) -> None:
    proxy.server("spark1", copies[0].address)
    with proxy.nginx.lock():
        _nginx_membership.revise(
            proxy.nginx, lambda now, _site: _members.taken_out(now, "spark1", _members.HOST, "it is stalled", 1.0)
        )
    proxy.configure(proxy.site(copies), max_fails=5)  # as each run of the role
    info = proxy.info()
    assert info["admitted"] == []
    assert info["withdrawn"] == {"spark1": {"since": 1.0, "by": "host", "reason": "it is stalled"}}
    decided = proxy.server("spark1", copies[0].address, state=state)
    assert decided["changed"] is True
    assert proxy.info()["withdrawn"] == {}
    assert len(proxy.info()["admitted"]) == (state == "admitted")


def test_info_tells_the_limits_in_force(proxy: Any, copies: list[Any]) -> None:
    proxy.server("spark1", copies[0].address)
    proxy.server("spark2", copies[1].address, max_fails=0, fail_timeout_seconds=9)
    proxy.configure(proxy.site(copies), max_fails=5, fail_timeout_seconds=4)
    info = proxy.info()
    limits = {entry["name"]: (entry["max_fails"], entry["fail_timeout_seconds"]) for entry in info["admitted"]}
    assert limits == {"spark1": (5, 4), "spark2": (0, 9)}
    assert f"server {copies[0].address} max_fails=5 fail_timeout=4s;" in (proxy.folder / SERVERS).read_text()
    assert info["configured"] is True
    assert info["running"] is True


def test_two_callers_at_once_both_end_admitted(proxy: Any, copies: list[Any]) -> None:
    barrier = threading.Barrier(2)
    results: list[Any] = []

    def call(copy: Any) -> None:
        barrier.wait()
        results.append(proxy.server(copy.name, copy.address))

    threads = [threading.Thread(target=call, args=[copy]) for copy in copies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(result["admitted"]) for result in results) == [1, 2]
    assert [entry["name"] for entry in proxy.info()["admitted"]] == ["spark1", "spark2"]
    assert {proxy.request("GET", "/v1/models")[1]["copy"] for _ in range(10)} == {"spark1", "spark2"}


def test_a_lock_that_is_not_released_is_named(proxy: Any) -> None:
    handle = os.open(proxy.folder / "gb10-vllm", os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(NginxError, match="holds the lock"), proxy.nginx.lock(0.1):
        pass
    os.close(handle)
    with proxy.nginx.lock(0.1):
        pass


def test_a_bad_candidate_changes_nothing(proxy: Any, copies: list[Any]) -> None:
    proxy.server("spark1", copies[0].address)
    kept, workers = tree(proxy.folder), proxy.info()["worker_pids"]
    bad = proxy.site(copies).replace("least_conn;", "least_con;")
    message = r"\[emerg\].* unknown directive .least_con. in " + re.escape(f"{proxy.folder}/{SITE}:")
    with pytest.raises(NginxError, match=message):
        proxy.configure(bad)
    with pytest.raises(NginxError, match=message):
        proxy.configure(bad, check=True)
    assert tree(proxy.folder) == kept
    assert proxy.info()["worker_pids"] == workers
    assert proxy.request("GET", "/v1/models")[0] == 200


def test_a_reload_that_fails_after_the_test_is_taken_back(proxy: Any, copies: list[Any]) -> None:
    proxy.server("spark1", copies[0].address)
    kept = {name: text for name, (_inode, text) in tree(proxy.folder).items()}
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        # `nginx -t` does not mind a port that somebody else has; only the reload does.
        with pytest.raises(NginxError, match=rf"goes on as before.*\[emerg\].*bind\(\) to 127.0.0.1:{taken} failed"):
            proxy.configure(proxy.site(copies, vllm_proxy_port=taken))
    assert {name: text for name, (_inode, text) in tree(proxy.folder).items()} == kept
    assert proxy.request("GET", "/v1/models")[0] == 200


def test_a_reload_that_does_not_come_is_named(proxy: Any, copies: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    signals: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: signals.append(number))
    started = time.monotonic()
    with pytest.raises(NginxError, match="did not replace its workers within 1 s"):
        proxy.server("spark1", copies[0].address, reload_seconds=1)
    assert time.monotonic() - started >= 1
    assert signals == [1, 1]
    assert proxy.info()["admitted"] == []
    monkeypatch.undo()


def test_a_file_that_nginx_does_not_read_is_refused(proxy: Any, copies: list[Any]) -> None:
    main = proxy.folder / "nginx.conf"
    main.write_text(main.read_text().replace("conf.d/*.conf", "elsewhere/*.conf"))
    kept = tree(proxy.folder)
    with pytest.raises(NginxError, match=r"nginx.conf does not include .*conf.d/gb10-vllm.conf.*http block"):
        proxy.configure(proxy.site(copies).replace("64m", "65m"))
    with pytest.raises(NginxError, match=r"does not include .*servers.conf.*run the role"):
        proxy.server("spark1", copies[0].address)
    assert tree(proxy.folder) == kept


def test_the_candidate_is_what_is_tested_even_behind_links(proxy: Any, copies: list[Any]) -> None:
    """A site that is a link, and one that includes by absolute path, take part; a key is linked and never copied."""
    (proxy.folder / "available").mkdir()
    (proxy.folder / "available" / "other").write_text(f"include {proxy.folder}/{SERVERS}.none*;\n")
    (proxy.folder / "conf.d" / "other.conf").symlink_to(proxy.folder / "available" / "other")
    (proxy.folder / "key.pem").write_text("not for copies")
    assert proxy.server("spark1", copies[0].address)["tested"]
    (proxy.folder / "available" / "other").write_text("nonsense;\n")
    with pytest.raises(NginxError, match='unknown directive "nonsense"'):
        proxy.server("spark2", copies[1].address)


def test_check_mode_writes_nothing(proxy: Any, copies: list[Any]) -> None:
    kept, workers = tree(proxy.folder), proxy.info()["worker_pids"]
    result = proxy.server("spark1", copies[0].address, check=True)
    assert (result["changed"], result["tested"], result["reloaded_at"]) == (True, True, None)
    assert copies[0].address in result["diff"]["after"]
    new = proxy.site(copies).replace("/access.log", "/another.log")
    assert proxy.configure(new, check=True)["tested"] is True
    assert not (proxy.folder / "another.log").exists()
    assert tree(proxy.folder) == kept
    assert proxy.info()["worker_pids"] == workers


def test_before_the_role_has_run(tmp_path: Path, proxy: Any) -> None:
    proxy.places |= {"conf_dir": str(tmp_path / "fresh"), "pid_file": str(tmp_path / "none")}
    with pytest.raises(NginxError, match="servers.conf is missing: run the role gb10.vllm.proxy"):
        proxy.server("spark1", "198.51.100.1:8000")
    assert proxy.server("spark1", "198.51.100.1:8000", check=True)["changed"] is True
    assert proxy.server("spark1", None, "withdrawn", check=True)["changed"] is False
    prediction = proxy.configure("anything", check=True, program=None)
    assert (prediction["changed"], prediction["tested"]) == (True, False)
    assert [entry["after_header"] for entry in prediction["diff"]] == [SERVERS, SITE]
    with pytest.raises(NginxError, match="nginx is not installed on this host"):
        proxy.configure("anything", program=None)
    assert not (tmp_path / "fresh").exists()
    assert proxy.info()["configured"] is False


def test_without_a_running_nginx_the_list_is_written_and_it_says_so(proxy: Any, copies: list[Any]) -> None:
    proxy.stop()
    assert proxy.server("spark1", copies[0].address, check=True)["tested"] is False
    assert not (proxy.folder / "nginx.pid").exists()
    result = proxy.server("spark1", copies[0].address)
    assert (result["changed"], result["tested"], result["running"], result["reloaded_at"]) == (True, True, False, None)
    assert "takes effect when it starts" in result["msg"]
    (proxy.folder / "nginx.pid").write_text(str(os.getpid()))  # stale: the pid belongs to somebody else now
    assert proxy.info()["running"] is False
    proxy.start()
    assert proxy.request("GET", "/v1/models")[0] == 200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"server": "spark1.lan:8000"}, r"'spark1\.lan' is not an IP address"),
        ({"server": "198.51.100.1"}, "not of the form IP:PORT"),
        ({"fail_timeout_seconds": 3600}, "fail_timeout_seconds is 3600, must be 1 to 10"),
        ({"max_fails": 11}, "max_fails is 11, must be 0 to 10"),
        ({"weight": 0}, "weight is 0, must be 1 to 100"),
        ({"max_conns": 70000}, "max_conns is 70000, must be 0 to 65535"),
        ({"drain_seconds": -1}, "drain_seconds is -1, must be 0 to 86400"),
        ({"reload_seconds": 0}, "reload_seconds is 0, must be 1 to 300"),
        ({"name": "spark1; }"}, "is not a plain inventory name"),
    ],
)
def test_a_wrong_option_is_refused_by_name(proxy: Any, change: dict[str, Any], message: str) -> None:
    kept = tree(proxy.folder)
    with pytest.raises(NginxError, match=message):
        proxy.server(**({"name": "spark1", "server": "198.51.100.1:8000"} | change))
    assert tree(proxy.folder) == kept


def test_own_and_shared_addresses_are_refused(proxy: Any, copies: list[Any]) -> None:
    with pytest.raises(NginxError, match="the proxy's own address"):
        proxy.server("spark1", f"127.0.0.1:{proxy.port}")
    everywhere = proxy.site(copies, vllm_proxy_listen_address="")
    with pytest.raises(NginxError, match="Address already in use.*stop nginx"):
        proxy.configure(everywhere)
    proxy.stop()
    proxy.configure(everywhere)
    with pytest.raises(NginxError, match="the proxy's own address"):
        proxy.server("spark1", f"127.0.0.1:{proxy.port}")
    proxy.server("spark1", copies[0].address)
    with pytest.raises(NginxError, match="already admitted as 'spark1'"):
        proxy.server("spark2", copies[0].address)
    moved = proxy.server("spark1", copies[1].address)
    assert moved["admitted"] == [{"name": "spark1", "server": copies[1].address}]


def test_a_damaged_list_is_not_overwritten(proxy: Any, copies: list[Any]) -> None:
    (proxy.folder / SERVERS).write_text("server 198.51.100.1:8000;\n")
    for call in (
        lambda: proxy.server("spark1", copies[0].address),
        lambda: proxy.configure(proxy.site(copies)),
        proxy.info,
    ):
        with pytest.raises(NginxError, match="was not written by this collection or is damaged"):
            call()
    assert (proxy.folder / SERVERS).read_text() == "server 198.51.100.1:8000;\n"


@pytest.mark.parametrize("path", ["/etc/passwd", "../escape.conf", SERVERS])
def test_a_path_outside_the_folder_is_refused(proxy: Any, path: str) -> None:
    with pytest.raises(NginxError, match="must be relative to"):
        proxy.configure("", files=[{"path": path, "content": "x"}])


def test_an_empty_text_removes_the_file(proxy: Any, copies: list[Any]) -> None:
    site = {"path": SITE, "content": proxy.site(copies)}
    limit = {"path": "modules-enabled/99-gb10-vllm.conf", "content": "worker_shutdown_timeout 3600s;\n"}
    assert proxy.configure("", files=[limit, site])["changed"] is True
    assert (proxy.folder / limit["path"]).read_text() == limit["content"]
    assert proxy.configure("", files=[limit | {"content": ""}, site])["changed"] is True
    assert not (proxy.folder / limit["path"]).exists()
    assert proxy.configure("", files=[limit | {"content": ""}, site])["changed"] is False


def test_keys_are_for_root_only_and_in_no_output(proxy: Any, copies: list[Any]) -> None:
    proxy.server("spark1", copies[0].address)
    key, engine = "aKeyOfTheClients01", "the-engines-own"
    site = proxy.site(copies, vllm_proxy_api_keys=[key])
    result = proxy.configure(site, api_keys=[key], engine_api_key=engine)
    path = proxy.folder / KEYS
    assert (result["changed"], path.stat().st_mode & 0o777) == (True, 0o600)
    assert key in path.read_text()
    for secret in (key, engine):
        assert secret not in str(result)
    assert "# keys: " in str(result["diff"])
    assert proxy.request("GET", "/v1/models")[0] == 401
    assert proxy.request("GET", "/v1/models", Authorization=f"Bearer {key}")[0] == 200

    assert proxy.configure(site, api_keys=[key], engine_api_key=engine)["changed"] is False
    path.chmod(0o644)
    assert proxy.configure(site, api_keys=[key], engine_api_key=engine)["changed"] is True
    assert path.stat().st_mode & 0o777 == 0o600

    proxy.configure(proxy.site(copies))
    assert not path.exists()
    assert proxy.request("GET", "/v1/models")[0] == 200


def test_a_key_that_the_site_does_not_ask_for_is_refused(proxy: Any, copies: list[Any]) -> None:
    kept = tree(proxy.folder)
    with pytest.raises(NginxError, match=r"does not include .*keys\.conf, so it would have no effect"):
        proxy.configure(proxy.site(copies), api_keys=["aKeyOfTheClients01"])
    assert tree(proxy.folder) == kept


def test_shares_are_kept_beside_the_list_and_brought_up_to_date(proxy: Any, copies: list[Any]) -> None:
    share = [{"name": "spark1", "weight": 3, "max_conns": 8, "server": "ignored"}]
    proxy.configure(proxy.site(copies), copies=share)
    proxy.server("spark1", copies[0].address)
    assert (
        f"server {copies[0].address} max_fails=2 fail_timeout=3s weight=3 max_conns=8;"
        in (proxy.folder / SERVERS).read_text()
    )
    assert (proxy.info()["admitted"][0]["weight"], proxy.info()["admitted"][0]["max_conns"]) == (3, 8)
    proxy.server("spark1", None, "withdrawn")
    assert proxy.configure(proxy.site(copies), copies=share)["changed"] is False
    proxy.server("spark1", copies[0].address)
    assert proxy.info()["admitted"][0]["weight"] == 3
    proxy.server("spark1", copies[0].address, weight=1, max_conns=0)
    assert f"server {copies[0].address} max_fails=2 fail_timeout=3s;" in (proxy.folder / SERVERS).read_text()
