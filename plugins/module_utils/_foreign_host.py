# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host has of units, containers and cron tables. Reads only.

Private to this collection: may change at any time. Host-side, standard library only; what of it matters is decided in ``_foreign``.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import _bypass, _bypass_host, _foreign_text, _host
from ._foreign_kinds import Container, Cron, Unit
from ._memory import holders

TYPES = "service,timer,path,socket"
LINGER = Path("/var/lib/systemd/linger")
CRON = {
    "lines": ("/etc/crontab", "/etc/cron.d", "/var/spool/cron/crontabs", "/var/spool/cron"),
    "scripts": ("/etc/cron.hourly", "/etc/cron.daily", "/etc/cron.weekly", "/etc/cron.monthly"),
}
_PROPERTIES = (
    *("Id", "LoadState", "ActiveState", "UnitFileState", "FragmentPath", "DropInPaths", "Conflicts", "ConflictedBy"),
    *("Type", "Triggers", "WantedBy", "RequiredBy", "BoundBy", "UpheldBy", "OnFailureOf", "OnSuccessOf"),
    *("Wants", "Requires", "BindsTo", "Upholds", "OnFailure", "OnSuccess"),
)
_PULLED_BY = ("WantedBy", "RequiredBy", "BoundBy", "UpheldBy", "OnFailureOf", "OnSuccessOf")
_PULLS = ("Wants", "Requires", "BindsTo", "Upholds", "OnFailure", "OnSuccess")
_TELLING = re.compile(
    r"^\s*(?:Exec\w*|Environment\w*|WorkingDirectory|Image|PublishPort|ContainerName)\s*=", re.MULTILINE
)
_PATH = re.compile(r"(?<![\w=:.~-])/[\w./@+-]+|(?<=[=\"'-])/[\w./@+-]+")
# Programs of the distribution: what they are told is in the command, not in them.
_SYSTEM = (
    "/usr/bin/",
    "/usr/sbin/",
    "/bin/",
    "/sbin/",
    "/usr/lib/",
    "/lib/",
    "/proc/",
    "/sys/",
    "/dev/",
    "/usr/share/",
)
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True)
class Manager:
    """The system's manager, or that of an account."""

    account: str = ""
    uid: int = 0
    gid: int = 0
    home: str = ""

    @property
    def command(self) -> list[str]:
        if not self.account:
            return ["systemctl"]
        bus = f"/run/user/{self.uid}"
        return [
            *("setpriv", f"--reuid={self.uid}", f"--regid={self.gid}", "--init-groups", "env", f"HOME={self.home}"),
            *(f"XDG_RUNTIME_DIR={bus}", f"DBUS_SESSION_BUS_ADDRESS=unix:path={bus}/bus", "systemctl", "--user"),
        ]

    @property
    def folders(self) -> list[str]:
        """Where links that enable a unit are: for good, and until the next boot."""
        if not self.account:
            return ["/etc/systemd/system", "/run/systemd/system"]
        return [f"{self.home}/.config/systemd/user", f"/run/user/{self.uid}/systemd/user"]

    @property
    def masks(self) -> str:
        """Before every other folder, so that a mask there needs no unit file to be moved away."""
        return f"{self.home}/.config/systemd/user.control" if self.account else "/etc/systemd/system.control"

    def systemctl(self, *words: str, timeout: float = 60, check: bool = True) -> str:
        return _host.run([*self.command, *words], timeout=timeout, check=check).stdout


def managers() -> list[Manager]:
    """The system's, and that of each account whose manager runs: it lingers, or somebody is logged in."""
    found = [Manager()]
    for entry in sorted(pwd.getpwall(), key=lambda entry: entry.pw_name):
        if entry.pw_uid and os.path.exists(f"/run/user/{entry.pw_uid}/systemd/private"):
            found.append(Manager(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir))
    return found


def manager(account: str) -> Manager:
    for found in managers():
        if found.account == account:
            return found
    raise _host.HostError(
        f"the account {account} has no running systemd manager on this host: `loginctl enable-linger {account}` starts it"
    )


def sleeping_accounts() -> list[str]:
    """Accounts that linger, so that their units start at the boot, whose manager cannot be asked now."""
    awake = {found.account for found in managers()}
    return sorted({path.name for path in LINGER.glob("*")} - awake) if LINGER.is_dir() else []


def properties(of: Manager, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """systemd's own view of each unit, by its name."""
    wanted, found = sorted(set(names)), {}
    if not wanted:
        return {}
    text = of.systemctl("show", f"--property={','.join(_PROPERTIES)}", "--", *wanted, check=False)
    for block in text.split("\n\n"):
        entry = dict(line.split("=", maxsplit=1) for line in block.splitlines() if "=" in line)
        if entry.get("Id"):
            found[entry["Id"]] = entry
    return found


def _names(of: Manager) -> set[str]:
    """Every unit that is loaded or has a file; a template is none."""
    words = ("--all", "--no-legend", "--plain", "--no-pager", "--full", f"--type={TYPES}")
    lines = of.systemctl("list-units", *words).splitlines() + of.systemctl("list-unit-files", *words).splitlines()
    names = {line.split(maxsplit=1)[0] for line in lines if line.strip()}
    return {name for name in names if not re.search(r"@\.\w+$", name)}


def look(port: int) -> tuple[list[Unit], list[Container]]:
    """Every unit and container; no containers where there is no container engine, or where it does not answer."""
    try:
        inspected = _inspected()
    except _host.HostError:
        inspected = []
    listening = _listening(port, {str(one["Id"]): str(one["Name"]).lstrip("/") for one in inspected})
    return _units(listening), [_container(one, listening) for one in inspected]


def _units(listening: set[str]) -> list[Unit]:
    found = []
    for of in managers():
        for name, entry in properties(of, _names(of)).items():
            if entry.get("LoadState") in ("not-found", "bad-setting"):
                continue
            found.append(_unit(of, name, entry, listening))
    return found


def _unit(of: Manager, name: str, entry: dict[str, str], listening: set[str]) -> Unit:
    def names(*properties: str) -> frozenset[str]:
        return frozenset(word for key in properties for word in entry.get(key, "").split())

    masked = entry.get("LoadState") == "masked"
    return Unit(
        name=name,
        text="" if masked else _text(of, [entry.get("FragmentPath", ""), *entry.get("DropInPaths", "").split()]),
        account=of.account,
        active=entry.get("ActiveState", ""),
        enabled=entry.get("UnitFileState", "") or "transient",
        masked=masked,
        conflicts=names("Conflicts", "ConflictedBy"),
        triggers=names("Triggers"),
        pulled_by=names(*_PULLED_BY),
        pulls=names(*_PULLS),
        holds_port=name in listening if not of.account else f"{of.account}/{name}" in listening,
    )


def _text(of: Manager, paths: Iterable[str]) -> str:
    """What the unit runs, and the scripts that it names, and those that they name."""
    own = "\n".join(_foreign_text.flat(read(path)) for path in paths if path)
    telling = "\n".join(line for line in own.splitlines() if _TELLING.match(line)).replace("%h", of.home or "/root")
    return with_scripts(telling)


def with_scripts(text: str, depth: int = 2) -> str:
    parts, seen, new = [text], set(), text
    for _level in range(depth):
        paths = [
            path for path in dict.fromkeys(_PATH.findall(new)) if path not in seen and not path.startswith(_SYSTEM)
        ]
        seen.update(paths)
        texts = [_foreign_text.flat(read(path)) for path in _with_compose(paths, new)]
        new = "\n".join(part for part in texts if part)
        parts.append(new)
    return "\n".join(part for part in parts if part)


def _with_compose(paths: list[str], text: str) -> list[str]:
    """A folder is one of a compose file, where something composes."""
    names = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
    if "compose" not in text:
        return paths
    return [
        part for path in paths for part in ([f"{path}/{name}" for name in names] if os.path.isdir(path) else [path])
    ]


def read(path: str) -> str:
    """The text of a small file; empty for a program, a folder, or nothing."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return ""
        data = Path(path).read_bytes()
    except OSError:
        return ""
    return "" if b"\0" in data[:4096] else data.decode(errors="replace")


def _listening(port: int, names: dict[str, str]) -> set[str]:
    """Units and containers (`container NAME`) of the processes that listen on the host's own port.

    A port that the container engine publishes is held by its own unit, and known from the container.
    """
    inodes = {
        socket.inode
        for socket in _bypass_host.sockets(_bypass_host.PROC / "self")
        if socket.local_port == port and socket.state == _bypass.LISTEN and socket.inode
    }
    found = set()
    for pid in _bypass_host.holders(inodes).values():
        cgroup = _bypass_host.read(_bypass_host.PROC / str(pid) / "cgroup")
        account = re.search(r"user@(\d+)\.service/(?:.*/)?([\w@:.-]+\.service)", cgroup)
        if account:
            found.add(f"{pwd.getpwuid(int(account[1])).pw_name}/{account[2]}")
        else:
            found.add(holders.owner(cgroup, names))
    return found - {"docker.service"}


def _inspected() -> list[dict[str, object]]:
    listed = _host.run(["docker", "ps", "--all", "--quiet", "--no-trunc"], check=False)
    ids = listed.stdout.split() if listed.returncode == 0 else []
    if not ids:
        return []
    done = _host.run(["docker", "inspect", "--type=container", *ids], check=False)
    found: list[dict[str, object]] = json.loads(done.stdout or "[]")
    return found


def _container(one: dict[str, object], listening: set[str]) -> Container:
    config: dict[str, object] = one["Config"]  # type: ignore[assignment]
    host: dict[str, object] = one["HostConfig"]  # type: ignore[assignment]
    state: dict[str, object] = one["State"]  # type: ignore[assignment]
    name = str(one["Name"]).lstrip("/")
    words = [str(config["Image"]), *_words(config.get("Entrypoint")), *_words(config.get("Cmd"))]
    bindings = dict(host.get("PortBindings") or {})  # type: ignore[call-overload]
    devices = [str(part) for part in (host.get("DeviceRequests") or [])]  # type: ignore[attr-defined]
    devices += [str(part) for part in (host.get("Devices") or [])]  # type: ignore[attr-defined]
    policy: dict[str, object] = host.get("RestartPolicy") or {}  # type: ignore[assignment]
    return Container(
        name=name,
        text=" ".join(words),
        policy=str(policy.get("Name") or "no"),
        running=bool(state["Running"]) or bool(state.get("Restarting")),
        removed_at_end=bool(host.get("AutoRemove")),
        ports=frozenset(
            int(entry["HostPort"]) for group in bindings.values() for entry in group or [] if entry.get("HostPort")
        ),
        holds_port=f"container {name}" in listening,
        has_gpu=host.get("Runtime") == "nvidia" or any("nvidia" in part or "gpu" in part for part in devices),
    )


def _words(value: object) -> list[str]:
    return [str(word) for word in value] if isinstance(value, list) else [str(value)] if value else []


def crons() -> list[Cron]:
    found = []
    for path in _files(CRON["lines"]):
        for number, line in enumerate(read(path).splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                found.append(Cron(f"{path}:{number}", with_scripts(line)))
    for path in _files(CRON["scripts"]):
        if os.access(path, os.X_OK):
            found.append(Cron(path, with_scripts(_foreign_text.flat(read(path)), depth=1)))
    return found


def _files(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if os.path.isdir(place):
            yield from (
                entry.path for entry in sorted(os.scandir(place), key=lambda entry: entry.name) if entry.is_file()
            )
        elif os.path.isfile(place):
            yield place


def our_unit_is_ours(base: str) -> bool:
    """Whether vllm.service, if there is one, was written by this collection."""
    entry = properties(Manager(), [_host.UNIT]).get(_host.UNIT, {})
    return entry.get("LoadState") in (None, "not-found", "masked") or f"{base}/current" in read(
        entry.get("FragmentPath", "")
    )
