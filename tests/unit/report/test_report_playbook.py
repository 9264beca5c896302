# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook report.yml on a site that is folders of this machine, one of its hosts being off."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gb10.vllm.tests.unit.playbooks import play
from ansible_collections.gb10.vllm.tests.unit.plugins.plugin_utils import report_samples as samples

ROLLOUT = "20260528-202640-cutover"
# What the engine of this test writes while it loads, seconds after its start.
LOG = [
    (0, "systemd", "Started vllm.service"),
    (4, "vllm", "vLLM API server version 0.33.0"),
    (20, "vllm", "Starting to load model /m"),
]
LOG += [(118, "vllm", "Application startup complete.")]


def access_log() -> str:
    """A request per second: answered before and after, refused in between."""
    lines = []
    for second in range(-100, 216):
        away = 3 < second < 141
        moment = datetime.fromtimestamp(samples.BEGAN + second, UTC).isoformat(timespec="seconds")
        entry = {
            "time": moment,
            "path": "/v1/chat/completions",
            "status": 503 if away else 200,
            "seconds": 2.0,
            "copy": "spark1",
        }
        lines.append(json.dumps(entry))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for rollout, events in ((ROLLOUT, samples.switch()), ("20260101-000000-cutover", samples.failed())):
        path = folder / "rollouts" / f"{rollout}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(event) + "\n" for event in events) + '{"cut')
    for topology in ("split", "replicated"):
        record = samples.record(topology, "spark1")
        release = folder / "base" / "releases" / record["id"]
        release.mkdir(parents=True)
        (release / "release.json").write_text(
            json.dumps({**record, "environment": {"HF_TOKEN": f"hunter2-{topology}"}})
        )
    measured = folder / "state" / "measured"
    measured.mkdir(parents=True)
    (measured / "x.json").write_text(json.dumps({"starts": samples.traces("spark1", 21, 118)["memory"]}))
    (folder / "access.log").write_text(access_log())
    journal = folder / "bin" / "journalctl"
    journal.parent.mkdir()
    journal.write_text(
        "#!/bin/sh\n"
        + "".join(f"echo '{samples.BEGAN + 21 + at:.6f} spark1 {who}[1]: {text}'\n" for at, who, text in LOG)
    )
    journal.chmod(0o755)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    engine = {"vllm_base_dir": str(folder / "base"), "vllm_state_dir": str(folder / "state")}
    hosts = {"engines": {"hosts": {"spark1": {**local, **engine}, "spark2": {"ansible_host": "192.0.2.9"}}}}
    proxies = {"hosts": {"proxy1": {**local, "vllm_proxy_access_log": str(folder / "access.log")}}}
    shared = {"vllm_rollout_dir": str(folder / "rollouts"), "vllm_report_dir": str(folder / "reports")}
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"vars": shared, "children": {**hosts, "proxies": proxies}}})
    )
    return folder


def run(site: Path, **variables: Any) -> Any:
    return play(site, "playbooks/report.yml", site / "inventory.yml", variables, programs=site / "bin")


def test_a_report_although_a_host_is_off(site: Path) -> None:
    done = run(site)
    assert done.returncode == 0, done.stdout[-3000:]
    page = site / "reports" / f"{ROLLOUT}.html"
    assert f"The report: {page}" in " ".join(done.stdout.split())
    assert page.read_bytes() == (site / "rollouts" / page.name).read_bytes()
    assert page.read_text().count("<figure>") == 4
    report = json.loads((site / "rollouts" / f"{ROLLOUT}.report.json").read_text())
    spark1, spark2 = report["hosts"]
    assert [(phase["phase"], phase["seconds"]) for phase in spark1["phases"]] == [
        ("starting the container", 4), ("importing", 16), ("loading weights", 98)
    ]  # fmt: skip
    assert spark2["phases"] == []
    assert [(row["host"], row["when"]) for row in report["memory"]] == [("spark1", "before"), ("spark1", "now")]
    known, unknown = report["changes"]
    assert ({"what": "environment", "name": "HF_TOKEN", "before": "(hidden)", "after": "(hidden, value 2)"}) in known[
        "items"
    ]
    assert "could not be read" in unknown["words"]
    assert report["traffic"]["spans"]["window"]["statuses"] == {"200": 2, "503": 137}
    assert report["traffic"]["spans"]["before"]["statuses"] == {"200": 104}
    assert [entry["rollout"] for entry in report["earlier"]] == ["20260101-000000-cutover"]
    assert "hunter2" not in page.read_text() + json.dumps(report)


def test_a_folder_that_cannot_be_made_is_said_and_the_site_keeps_the_report(site: Path) -> None:
    (site / "rollouts" / f"{ROLLOUT}.html").unlink()
    done = run(site, vllm_report_dir="/proc/nowhere")
    assert done.returncode != 0
    assert "or not be put where it belongs" in " ".join(done.stdout.split())
    assert "/proc/nowhere" in done.stdout
    assert (site / "rollouts" / f"{ROLLOUT}.html").is_file()


def test_the_same_again_changes_nothing_and_one_that_never_was_is_refused(site: Path) -> None:
    done = run(site)
    assert "changed=0" in done.stdout
    done = run(site, vllm_report_of="20250101-000000-cutover")
    assert done.returncode != 0
    assert f"The newest are {ROLLOUT}" in " ".join(done.stdout.split())
