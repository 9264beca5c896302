# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real systemd hosts with a real container engine, a registry and real vLLM, on one machine without a GPU."""

from __future__ import annotations

import argparse
import json
import signal
import sys

import engine_site
import hosts
import images
import machine_memory
import network
import prerequisites
import registry
import remote
import tiny_model
import trees
from settings import ENGINE_MOUNTS, ENGINES, FOLDERS, HOSTS, MODEL_IN_HOST
from shell import LabError, lock, remove_tree, require_root, say, step, together, write_atomically


def up(engines: tuple[str, ...]) -> None:
    prerequisites.install()
    machine_memory.bring_online()
    for folder in (FOLDERS.engines, FOLDERS.models):
        folder.mkdir(parents=True, exist_ok=True)
    remote.create_keys()
    # Labs that share a cache build one after the other; the second finds everything there.
    with lock(FOLDERS.cache / "build.lock"):
        # Fetching packages waits for the network most of the time, building trees for the processor.
        together(trees.build_all, *([engine_site.install] if "real" in engines else []))
        if "real" in engines:
            engine_site.compile_bytecode()
            tiny_model.train()
    tiny_model.provide()
    network.create_bridge()
    registry.start()
    known = json.loads(FOLDERS.lab_json.read_text())["images"] if FOLDERS.lab_json.exists() else {}
    together(*(lambda name=name: hosts.boot(name) for name in HOSTS), lambda: _publish(engines, known))
    write_atomically(FOLDERS.lab_json, json.dumps(description(known), indent=2) + "\n")


def _publish(engines: tuple[str, ...], known: dict[str, str]) -> None:
    for engine in list(known):
        if not registry.has(known[engine].rpartition("@")[2]):
            del known[engine]
    for engine in engines:
        known[engine] = images.publish(engine, trees.image_layer_path())


def description(image_names: dict[str, str]) -> dict[str, object]:
    """What tests and inventories need to know about the lab."""
    return {
        "hosts": {name: {"address": address} for name, address in HOSTS.items()},
        "ssh_key": str(FOLDERS.ssh_key),
        "known_hosts": str(FOLDERS.known_hosts),
        "images": image_names,
        "model": MODEL_IN_HOST,
        "venv_mounts": ENGINE_MOUNTS,
    }


def down() -> None:
    together(*(lambda name=name: hosts.throw_away(name) for name in HOSTS))
    hosts.cgroups.remove_parent()
    registry.stop()
    network.remove_bridge()
    for part in FOLDERS.run.glob("*"):
        # The lock files stay: another lab command may be waiting for one of them.
        if part.is_dir():
            remove_tree(part)
        elif part.suffix != ".lock":
            part.unlink()
    if not FOLDERS.shared_cache:
        prune()


def prune() -> None:
    """Drop what older recipes left in the cache; nothing runs on it now."""
    keep = {trees.base_tree_path(), trees.image_layer_path(), engine_site.folder(), tiny_model.trained(),
            FOLDERS.engines / "current"}  # fmt: skip
    for pattern in ("base-*", "layer-*", "engines/*", "models/*"):
        for path in set(FOLDERS.cache.glob(pattern)) - keep:
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink()


def status() -> None:
    for name, address in HOSTS.items():
        power = "on" if hosts.running(name) else "off"
        wire = "wire ok" if network.wire_is_up(name) else "no wire"
        ready = "docker ready" if remote.answers(name, ["systemctl", "is-active", "docker"]) else "does not answer"
        print(f"{name:<8} {address:<14} {power:<4} {wire:<8} {ready}")
    print(f"{'registry':<8} {'on' if registry.running() else 'off'}")
    if FOLDERS.lab_json.exists():
        for engine, image in json.loads(FOLDERS.lab_json.read_text())["images"].items():
            print(f"{engine:<8} {image}")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python3 tests/lab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    start = commands.add_parser("up", help="set up whatever is missing and wait until every host is ready")
    start.add_argument("--engine", choices=(*ENGINES, "both"), default="real")
    commands.add_parser("down", help="take the lab away; the caches stay")
    commands.add_parser("status", help="what runs")
    for command, text in (
        ("fresh", "throw hosts away whole and boot new ones"),
        ("kill", "power loss"),
        ("boot", "power on"),
        ("cut", "pull the network cable"),
        ("mend", "plug it in again"),
    ):
        commands.add_parser(command, help=text).add_argument("hosts", nargs="+", choices=HOSTS, metavar="HOST")
    supervise = commands.add_parser("supervise")
    supervise.add_argument("host", choices=HOSTS)
    execute = commands.add_parser("exec", help="run a command on a host: exec HOST -- COMMAND ...")
    execute.add_argument("host", choices=HOSTS)
    execute.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    return parser.parse_args(arguments)


def act(options: argparse.Namespace) -> int:
    command: str = options.command
    if command == "exec":
        return remote.execute(options.host, options.argv[1:] if options.argv[:1] == ["--"] else options.argv)
    require_root()
    lab_lock = FOLDERS.run / "lab.lock"
    if command == "supervise":
        return hosts.supervise(options.host)
    if command == "up":
        with lock(lab_lock), step("lab is up"):
            up(ENGINES if options.engine == "both" else (options.engine,))
    elif command == "down":
        with lock(lab_lock), step("lab is down"):
            down()
    elif command == "status":
        status()
    elif command in ("cut", "mend"):
        for name in options.hosts:
            network.set_wire(name, up=command == "mend")
    else:
        with lock(lab_lock, shared=True):
            if not FOLDERS.lab_json.exists():
                raise LabError("there is no lab here yet: python3 tests/lab up")
            together(*(lambda name=name: host_command(command, name) for name in options.hosts))
    return 0


def host_command(command: str, name: str) -> None:
    if command == "fresh":
        hosts.fresh(name)
    elif command == "boot":
        hosts.boot(name)
    else:
        with hosts.locked(name), step(f"{name} lost its power"):
            hosts.kill(name)


def main() -> int:
    # A polite end runs the clean-up, like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return act(parse(sys.argv[1:]))
    except LabError as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the same command again takes it from here")
        return 130


if __name__ == "__main__":
    sys.exit(main())
