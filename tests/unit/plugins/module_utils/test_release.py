# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a release is named, and what its files say; the files of a whole GB10 are in tests/unit/golden."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.module_utils import _budgets, _release

DIGEST = "0123456789abcdef" * 4
IMAGE = f"registry:5000/eugr/vllm@sha256:{DIGEST}"


def spec(**changes: Any) -> dict[str, Any]:
    """Options of the module release."""
    return {
        "topology": "replicated",
        "rank": 0,
        "ranks": 1,
        "image": IMAGE,
        "model": "org/model",
        "revision": "",
        "served_model_name": "",
        "arguments": {"max-model-len": 2048},
        "environment": {"B": "2", "A": 1},
        "secrets_file": "",
        "listen_address": "0.0.0.0",
        "port": 8000,
        "master_address": "192.0.2.1",
        "master_port": 29501,
        "container_options": ["--init"],
        "volumes": [],
        "huggingface_home": "/root/.cache/huggingface",
        "cache_root": "/c",
        "mods": {},
        "budgets": _budgets.derive(60, 20).as_dict(),
        **changes,
    }


def words(**changes: Any) -> list[str]:
    """The words of the start file's command after `docker run`."""
    start = _release.files(_release.manifest(spec(**changes)), "/r")["start"]
    return shlex.split(start.partition("exec docker run")[2].replace("\\\n", " "))


@pytest.mark.parametrize("repository", ["eugr/spark-vllm-b12x", "198.18.90.1:5000/a/b", "a/b:nightly-20261015", "x1"])
def test_image(repository: str) -> None:
    assert _release.parse_image(f"{repository}@sha256:{DIGEST}") == (repository, DIGEST)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("", "no image is given"),
        ("eugr/vllm", "a tag can point to another image tomorrow"),
        ("eugr/vllm:latest", "a tag can point to another image tomorrow"),
        ("eugr/vllm@sha256:1234", "the part after @ is not sha256: and 64 hexadecimal digits"),
        (f"eugr/vllm@md5:{DIGEST}", "the part after @ is not sha256:"),
        (f"eugr/vllm@sha256:{DIGEST.upper()}", "the part after @ is not sha256:"),
        (f"@sha256:{DIGEST}", "the part after @ is not sha256:"),
        (f"eugr/vllm@sha256:{DIGEST}\n", "the part after @ is not sha256:"),
        (f"eugr/vllm@sha256:{'0' * 64}", "has the examples' placeholder of 64 zeros for a digest"),
    ],
)
def test_image_refused(reference: str, reason: str) -> None:
    with pytest.raises(_release.ReleaseError) as error:
        _release.parse_image(reference)
    assert repr(reference) in str(error.value)
    assert reason in str(error.value)
    assert "docker buildx imagetools inspect" in str(error.value)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"A B": "x"}, "'A B' is not a name"),
        ({"1A": "x"}, "'1A' is not a name"),
        ({"A=": "x"}, "'A=' is not a name"),
        ({"A\n": "x"}, "is not a name"),
        ({"A": True}, "A has the value True"),
        ({"A": None}, "A has the value None"),
        ({"A": ["x"]}, r"A has the value \['x'\]"),
    ],
)
def test_environment_refused(environment: dict[str, Any], message: str) -> None:
    with pytest.raises(_release.ReleaseError, match=message):
        _release.manifest(spec(environment=environment))


def test_same_content_same_id() -> None:
    assert _release.release_id(_release.manifest(spec())) == _release.release_id(_release.manifest(spec()))
    assert re.fullmatch(r"replicated-[0-9a-f]{12}", _release.release_id(_release.manifest(spec())))


@pytest.mark.parametrize(
    "changes",
    [
        {"image": f"xy@sha256:{'1' * 64}"},
        {"model": "m"},
        {"revision": "r"},
        {"served_model_name": "n"},
        {"arguments": {"max-model-len": 2049}},
        {"arguments": {"max-model-len": 2048, "enforce-eager": True}},
        {"environment": {"A": 2, "B": "2"}},
        {"port": 8001},
        {"listen_address": "127.0.0.1"},
        {"container_options": ["--init", "--ipc=host"]},
        {"volumes": ["/a:/a"]},
        {"huggingface_home": "/h"},
        {"cache_root": "/d"},
        {"secrets_file": "/s"},
        {"mods": {"m": {"run.sh": {"content": "a", "executable": False}}}},
        {"budgets": _budgets.derive(61, 20).as_dict()},
        {"budgets": _budgets.derive(60, 21).as_dict()},
        {"topology": "split", "ranks": 2},
    ],
    ids=str,
)
def test_any_change_is_another_release(changes: dict[str, Any]) -> None:
    assert _release.release_id(_release.manifest(spec(**changes))) != _release.release_id(_release.manifest(spec()))


def test_a_byte_of_a_mod_counts() -> None:
    ids = {
        _release.release_id(_release.manifest(spec(mods={"m": {"run.sh": {"content": text, "executable": mode}}})))
        for text in ("a", "b")
        for mode in (False, True)
    }
    assert len(ids) == 4


def test_caches_belong_to_image_and_topology() -> None:
    folders = {
        _release.cache_folder("/c", digest, topology)
        for digest in ("a" * 64, "b" * 64)
        for topology in ("replicated", "split")
    }
    assert folders == {f"/c/{letter * 12}-{topology}" for letter in "ab" for topology in ("replicated", "split")}


def test_manifest() -> None:
    manifest = _release.manifest(spec())
    assert manifest["served_model_name"] == "org/model"
    assert manifest["max_model_len"] == 2048
    assert (manifest["repository"], manifest["digest"]) == ("registry:5000/eugr/vllm", DIGEST)
    assert manifest["environment"] == {"A": "1", "B": "2", "VLLM_ENGINE_READY_TIMEOUT_S": "90"}
    assert list(manifest["environment"]) == sorted(manifest["environment"])


def test_an_operators_ready_limit_stays() -> None:
    manifest = _release.manifest(spec(environment={"VLLM_ENGINE_READY_TIMEOUT_S": 5}))
    assert manifest["environment"]["VLLM_ENGINE_READY_TIMEOUT_S"] == "5"


@pytest.mark.parametrize(
    ("rank", "there", "absent"),
    [
        (0, ["--node-rank 0", "--host 0.0.0.0", "--port 8000"], ["--headless"]),
        (1, ["--node-rank 1", "--headless"], ["--host", "--port"]),
    ],
)
def test_ranks(rank: int, there: list[str], absent: list[str]) -> None:
    said = words(topology="split", ranks=2, rank=rank)
    for expected in [*there, "--nnodes 2", "--master-addr 192.0.2.1", "--master-port 29501"]:
        assert expected in " ".join(said)
    assert not set(absent) & set(said)


def test_a_copy_knows_no_ranks() -> None:
    assert not {"--nnodes", "--node-rank", "--master-addr", "--master-port", "--headless"} & set(words())


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--init", ["--init"]),
        ("--network=host", ["--network", "host"]),
        ("--log-opt=max-size=50m", ["--log-opt", "max-size=50m"]),
        ("--label=a b", ["--label", "a b"]),
        ("--init=true", ["--init=true"]),
        ("--read-only=false", ["--read-only=false"]),
    ],
)
def test_container_option(option: str, expected: list[str]) -> None:
    """A switch of docker takes no second word: it would be the image."""
    said = words(container_options=[option])
    at = said.index(expected[0])
    assert said[at : at + len(expected)] == expected
    assert said[at + len(expected)].startswith("--")


def test_odd_values_survive_the_shell(tmp_path: Path) -> None:
    """The start file is run for real, with a `docker` that writes down its words."""
    odd = "a b $HOME `id` 'q' \"d\" \\ ; | & * \n#"
    mod = {"m d": {"run.sh": {"content": "", "executable": False}}}
    changes = {"environment": {"ODD": odd}, "arguments": {"x": odd, "y": {"k": odd}}, "mods": mod}
    start = tmp_path / "start"
    start.write_text(_release.files(_release.manifest(spec(**changes)), "/r")["start"])
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/bash\nprintf "%s\\0" "$@"\n')
    docker.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", str(start)], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=True
    )
    said = done.stdout.decode().split("\0")[:-1]
    assert said[0] == "run"
    assert f"ODD={odd}" in said
    assert said[said.index("--x") + 1] == odd
    assert said[said.index("--rm") :].count("vllm") == 2
    assert said[said.index("-c") + 1] == "set -e; (cd /workspace/mods/'m d' && bash ./run.sh); exec vllm \"$@\""


def test_mods_run_in_order_and_stop_at_the_first_failure(tmp_path: Path) -> None:
    """The shell part is run for real, with folders of this machine as the mods."""
    entry = {"run.sh": {"content": "", "executable": False}}
    said = words(mods={"b": entry, "a": entry})
    script = said[said.index("-c") + 1].replace("/workspace/mods", str(tmp_path))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.sh").write_text(f'echo "{name} in $(basename "$PWD")"\n')
    vllm = tmp_path / "vllm"
    vllm.write_text('#!/bin/bash\necho "vllm $*"\n')
    vllm.chmod(0o755)
    command = ["/bin/bash", "-c", script, "vllm", "serve", "m"]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["b in b", "a in a", "vllm serve m"]
    (tmp_path / "b" / "run.sh").write_text("exit 7\n")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "")


def test_secrets_stay_in_their_file() -> None:
    said = words(secrets_file="/etc/s")
    assert said[said.index("--env-file") + 1] == "/etc/s"
    assert "--env-file" not in words()


def test_unit_conf_has_the_budgets() -> None:
    budgets = _budgets.derive(60, 20).as_dict()
    text = _release.files(_release.manifest(spec()), "/r")["unit.conf"]
    for line in (
        f"StartLimitIntervalSec={budgets['restart_window']}",
        f"StartLimitBurst={budgets['restart_burst']}",
        f"TimeoutStartSec={budgets['unit_start']}",
        f"TimeoutStopSec={budgets['unit_stop']}",
        f"RestartSec={budgets['restart_delay']}",
        f"ExecStop=-/usr/bin/docker stop --time {budgets['container_stop']} vllm",
    ):
        assert line in text.splitlines()
    assert (
        text.index("[Unit]")
        < text.index("StartLimitIntervalSec")
        < text.index("[Service]")
        < text.index("TimeoutStopSec")
    )
