# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images by digest; docker answers from a table."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gb10.vllm.plugins.modules import image

NAME = f"eugr/vllm@sha256:{'1' * 64}"
FOUND = (0, '[{"Id": "sha256:i", "Architecture": "arm64"}]', "")
MISSING = (1, "[]", "Error response from daemon: No such image: x")


@pytest.fixture
def docker(commands: Any) -> Any:
    commands.answers = {"docker image inspect": FOUND, "docker images": (0, "", ""), "docker pull": (0, "", "")}
    return commands


def test_present(call: Any, docker: Any) -> None:
    result = call(image, name=NAME)
    assert (result["changed"], result["id"], result["architecture"]) == (False, "sha256:i", "arm64")
    assert docker.asked == [f"docker image inspect {NAME}"]


def test_pulled(call: Any, docker: Any) -> None:
    answers = [MISSING, FOUND]
    docker.answers["docker image inspect"] = lambda: answers.pop(0)
    result = call(image, name=NAME)
    assert (result["changed"], result["id"]) == (True, "sha256:i")
    assert docker.begins("docker pull") == [f"docker pull --quiet {NAME}"]


def test_check_mode(call: Any, docker: Any) -> None:
    docker.answers["docker image inspect"] = MISSING
    result = call(image, check_mode=True, name=NAME)
    assert (result["changed"], result["id"]) == (True, "")
    assert docker.begins("docker pull") == []


@pytest.mark.parametrize(
    ("copies", "hint"),
    [
        ("", "under its digest, and vllm_image_pull is never"),
        (
            "eugr/vllm:latest <none>\neugr/vllm:old sha256:2\n",
            "(eugr/vllm:latest is there without a digest, as `docker load` leaves it)",
        ),
    ],
)
def test_never_pulled(call: Any, docker: Any, copies: str, hint: str) -> None:
    docker.answers.update({"docker image inspect": MISSING, "docker images": (0, copies, "")})
    result = call(image, name=NAME, pull="never")
    assert result["failed"] is True
    assert hint in result["msg"]
    assert docker.begins("docker pull") == []


def test_pulled_but_not_there(call: Any, docker: Any) -> None:
    docker.answers["docker image inspect"] = MISSING
    assert "does not know it under that digest afterwards" in call(image, name=NAME)["msg"]


@pytest.mark.parametrize(
    ("name", "answers", "message"),
    [
        ("eugr/vllm:latest", {}, "is not pinned by digest"),
        (
            NAME,
            {"docker image inspect": (1, "", "Cannot connect to the Docker daemon")},
            "cannot be asked for images: Cannot connect",
        ),
        (NAME, {"docker image inspect": MISSING, "docker pull": (1, "", "no route to host")}, "no route to host"),
    ],
)
def test_explained(call: Any, docker: Any, name: str, answers: dict[str, Any], message: str) -> None:
    docker.answers.update(answers)
    result = call(image, name=name)
    assert result["failed"] is True
    assert message in result["msg"]
