# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a release is made of, its name, and the files that are in it.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A release is everything that decides what runs on one host: the image by digest, the command line, the environment,
mounts and container options, the mods, and the time budgets of the unit. Its id is derived from that content, so equal
content is the same release on every run, and a changed byte is another one.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

from ansible_collections.gb10.vllm.plugins.module_utils import _arguments

SCHEMA = 1
CONTAINER = "vllm"
MODS_TARGET = "/workspace/mods"
# Kept by digest and topology: a cache of another image can give silently wrong answers, an interrupted start can leave
# corrupt entries, and going back must find the old cache as it was.
CACHE_FOLDERS: dict[str, str] = {
    "vllm": "/root/.cache/vllm",
    "flashinfer": "/root/.cache/flashinfer",
    "triton": "/root/.triton",
    "tilelang": "/root/.tilelang",
    "b12x": "/root/.cache/b12x",
}
IMAGE = re.compile(r"(?P<repository>[a-z0-9][a-z0-9._:/-]*[a-z0-9])@sha256:(?P<digest>[0-9a-f]{64})")
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ReleaseError(ValueError):
    """A release that cannot be described; the message names the value and the way out."""


def parse_image(reference: str) -> tuple[str, str]:
    """Split `repository@sha256:digest`; anything else is refused with the reason."""
    match = IMAGE.fullmatch(reference)
    if match and match["digest"].strip("0"):
        return match["repository"], match["digest"]
    if match:
        reason = "has the examples' placeholder of 64 zeros for a digest"
    elif not reference:
        reason = "is not pinned by digest (no image is given)"
    elif "@" in reference:
        reason = "is not pinned by digest (the part after @ is not sha256: and 64 hexadecimal digits)"
    else:
        reason = (
            "is not pinned by digest (a tag can point to another image tomorrow, so going back to it would not bring "
            "the old engine back)"
        )
    raise ReleaseError(
        f"image {reference!r} {reason}. Write repository@sha256:...; the digest of your image is printed "
        f"by `docker buildx imagetools inspect REPOSITORY:TAG` or `skopeo inspect docker://REPOSITORY:TAG`"
    )


def check_environment(environment: Mapping[str, Any]) -> None:
    """Refuse what would not arrive in the engine as it was meant."""
    for name, value in environment.items():
        if not _ENVIRONMENT_NAME.fullmatch(name):
            raise ReleaseError(f"environment name {name!r} is not a name that a process can have")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ReleaseError(f"environment name {name} has the value {value!r}: write a number, or a text in quotes")


def cache_folder(root: str, digest: str, topology: str) -> str:
    return f"{root}/{digest[:12]}-{topology}"


def manifest(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The complete, ordered description of a release from the module's options (see the module `release`)."""
    repository, digest = parse_image(spec["image"])
    topology, rank, ranks = spec["topology"], spec["rank"], spec["ranks"]
    _arguments.check(spec["arguments"])
    check_environment(spec["environment"])
    cache = cache_folder(spec["cache_root"], digest, topology)
    volumes = [f"{spec['huggingface_home']}:/root/.cache/huggingface"]
    volumes += [f"{cache}/{name}:{target}" for name, target in CACHE_FOLDERS.items()]
    volumes += spec["volumes"]
    return {
        "schema": SCHEMA,
        "topology": topology,
        "rank": rank,
        "ranks": ranks,
        "image": spec["image"],
        "repository": repository,
        "digest": digest,
        "model": spec["model"],
        "revision": spec["revision"] or "",
        "served_model_name": spec["served_model_name"] or spec["model"],
        "max_model_len": spec["arguments"].get("max-model-len"),
        "port": spec["port"],
        "command": _command(spec),
        "environment": {name: str(value) for name, value in sorted(_environment(spec).items())},
        "secrets_file": spec["secrets_file"] or "",
        "volumes": volumes,
        "container_options": list(spec["container_options"]),
        "mods": {name: _sha256(files) for name, files in spec["mods"].items()},
        "budgets": dict(spec["budgets"]),
    }


def release_id(content: Mapping[str, Any]) -> str:
    """`<topology>-<12 hexadecimal digits>` of the content and of the files made from it."""
    whole = {"manifest": content, "files": _files(content, "ID", "")}
    return f"{content['topology']}-{_sha256(whole)[:12]}"


def files(content: Mapping[str, Any], root: str) -> dict[str, str]:
    """The rendered files of the release, by name; `root` is the folder of all releases."""
    return _files(content, release_id(content), root)


def _files(content: Mapping[str, Any], identity: str, root: str) -> dict[str, str]:
    return {"start": _start(content, identity, root), "unit.conf": _unit_conf(content, identity)}


def _sha256(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _command(spec: Mapping[str, Any]) -> list[list[str]]:
    """The engine's command, one list per line of the start file."""
    own: dict[str, Any] = {}
    if spec["revision"]:
        own["revision"] = spec["revision"]
    if spec["served_model_name"]:
        own["served-model-name"] = spec["served_model_name"]
    if spec["ranks"] > 1:
        own["nnodes"] = spec["ranks"]
        own["node-rank"] = spec["rank"]
        own["master-addr"] = spec["master_address"]
        own["master-port"] = spec["master_port"]
        if spec["rank"] > 0:
            own["headless"] = True
    if spec["rank"] == 0:
        # A headless rank has no HTTP port.
        own["host"] = spec["listen_address"]
        own["port"] = spec["port"]
    own["shutdown-timeout"] = spec["budgets"]["shutdown"]
    return [["serve", spec["model"]], *_arguments.groups(spec["arguments"]), *_arguments.groups(own)]


def _environment(spec: Mapping[str, Any]) -> dict[str, Any]:
    environment = dict(spec["environment"])
    environment.setdefault("VLLM_ENGINE_READY_TIMEOUT_S", spec["budgets"]["engine_ready"])
    return environment


def _start(content: Mapping[str, Any], identity: str, root: str) -> str:
    role = "one full copy" if content["ranks"] == 1 else f"rank {content['rank']} of {content['ranks']}"
    lines: list[list[str]] = [
        ["--rm"],
        ["--name", CONTAINER],
        *(_option(option) for option in content["container_options"]),
    ]
    if content["secrets_file"]:
        lines.append(["--env-file", content["secrets_file"]])
    lines += [["--env", f"{name}={value}"] for name, value in content["environment"].items()]
    lines += [["--volume", volume] for volume in content["volumes"]]
    if content["mods"]:
        steps = [f"(cd {MODS_TARGET}/{shlex.quote(name)} && bash ./run.sh)" for name in content["mods"]]
        lines.append(["--volume", f"{root}/{identity}/mods:{MODS_TARGET}:ro"])
        lines.append(["--entrypoint", "/bin/bash"])
        lines.append([content["image"]])
        lines.append(["-c", "set -e; " + "; ".join(steps) + '; exec vllm "$@"', "vllm"])
    else:
        lines.append(["--entrypoint", "vllm"])
        lines.append([content["image"]])
    lines += content["command"]
    body = " \\\n".join("  " + shlex.join(line) for line in lines)
    return (
        "#!/bin/bash\n"
        f"# {content['served_model_name']} as {role}, release {identity} (gb10.vllm).\n"
        "# Written once and never changed: change the inventory and run the cutover instead.\n"
        "# vllm.service runs this in the foreground; with the service stopped, a person can run it too.\n"
        "set -eu\n"
        f"exec docker run \\\n{body}\n"
    )


def _option(option: str) -> list[str]:
    """`--name=value` reads better as two words. Switches take their value in one word only."""
    name, separator, value = option.partition("=")
    return [name, value] if separator and value not in ("true", "false") else [option]


# While vLLM ends its running requests it answers new ones with 500, and the fastest answer attracts the most requests. So a
# stop closes the door first: connections that are open go on, new ones are refused, and the proxy goes to the next copy.
# Without nftables on the host the stop goes on without a door ("-").
_DOOR = "inet gb10_vllm_door"
_CLOSE_DOOR = (
    f"table {_DOOR} {{ chain input {{ type filter hook input priority -10; "
    "tcp dport %d tcp flags & (syn|ack) == syn reject with tcp reset; }; }"
)
_OPEN_DOOR = f"add table {_DOOR}; delete table {_DOOR}"


def _unit_conf(content: Mapping[str, Any], identity: str) -> str:
    """The part of the unit that depends on the release, linked as a drop-in: its time budgets and its port."""
    budgets = content["budgets"]
    lines = [
        f"# Release {identity} (gb10.vllm): every budget follows from an expected load of {budgets['expected_load']} s.",
        "[Unit]",
        f"StartLimitIntervalSec={budgets['restart_window']}",
        f"StartLimitBurst={budgets['restart_burst']}",
        "",
        "[Service]",
        f"TimeoutStartSec={budgets['unit_start']}",
        f"TimeoutStopSec={budgets['unit_stop']}",
        f"RestartSec={budgets['restart_delay']}",
    ]
    if content["rank"] == 0:
        lines += [
            f'ExecStartPre=-/usr/sbin/nft "{_OPEN_DOOR}"',
            f'ExecStop=-/usr/sbin/nft "{_CLOSE_DOOR % content["port"]}"',
        ]
    lines.append(f"ExecStop=-/usr/bin/docker stop --time {budgets['container_stop']} {CONTAINER}")
    if content["rank"] == 0:
        lines.append(f'ExecStopPost=-/usr/sbin/nft "{_OPEN_DOOR}"')
    return "\n".join(lines) + "\n"
