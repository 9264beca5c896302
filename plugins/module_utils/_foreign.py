# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on a host could start or stop an engine behind our back: units, containers and cron tables that are not ours.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.

A finding *acts* when it runs an engine, holds our port, conflicts with our unit, or commands one that does; everything else only
*names* an engine and is told, not silenced. A finding is *live* when something can start it: its being enabled, a timer, another unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import _foreign_text
from ._foreign_kinds import RUNNING, Container, Cron, Finding, Our, Unit, matches

# Nothing that everybody starts, such as a target of the boot, is a reason of its own.
_TARGETS = (".target", ".slice", ".mount")


def find(
    units: Sequence[Unit],
    containers: Sequence[Container],
    crons: Sequence[Cron],
    our: Our,
    names: Sequence[str] = (),
    accept: Sequence[str] = (),
) -> list[Finding]:
    """Everything that acts or names an engine, except what is ours or accepted; units first."""
    theirs = [unit for unit in units if not our.is_unit(unit) and not matches(unit.key, accept)]
    reasons = _actors(theirs, units, containers, our, names)
    found = [_unit(unit, reasons.get(unit.key, []), units, theirs, reasons, our, names) for unit in theirs]
    acting_containers = [one.name for one in containers if _container_reasons(one, our) or matches(one.name, names)]
    found += [
        _container(one, our, names, units)
        for one in containers
        if not matches(one.name, accept) and (one.name != our.container or one.policy != "no")
    ]
    found += [_cron(one, our, reasons, acting_containers) for one in crons if not matches(one.where, accept)]
    return [_told(finding) for finding in found if finding.acts or finding.named or finding.reasons]


def unknown(names: Sequence[str], units: Sequence[Unit], containers: Sequence[Container]) -> list[str]:
    """Names of the owner's list that are nothing on this host."""
    known = [unit.key for unit in units] + [one.name for one in containers]
    return [name for name in names if not any(matches(one, [name]) for one in known)]


def _actors(
    theirs: Sequence[Unit], units: Sequence[Unit], containers: Sequence[Container], our: Our, names: Sequence[str]
) -> dict[str, list[str]]:
    """Why each unit acts, by its key: first what does by itself, then what starts those, until nothing is added."""
    reasons: dict[str, list[str]] = {}
    conflicting = next((unit.conflicts for unit in units if our.is_unit(unit) and unit.name == our.unit), frozenset())
    foreign = [one.name for one in containers if one.name != our.container and _container_reasons(one, our)]
    for unit in theirs:
        why = []
        if not unit.account and (our.unit in unit.conflicts or unit.name in conflicting):
            why.append(f"conflicts with {our.unit}: starting the one stops the other")
        if _foreign_text.engine(unit.text, our.port) == _foreign_text.OURS:
            why.append(f"runs an engine (port {our.port} or a part of a pair)")
        if unit.holds_port:
            why.append(f"listens on port {our.port}, which is the engine's")
        if _foreign_text.commands_unit(unit.text, our.unit):
            why.append(f"starts or stops {our.unit}")
        why += [
            f"starts or stops the container {name}"
            for name in [our.container, *foreign]
            if _foreign_text.commands_container(unit.text, name)
            and not (name in foreign and _named_by(unit.text, name))
        ]
        if why:
            reasons[unit.key] = why
    known = [unit.name for unit in units]
    grown = True
    while grown:
        grown = False
        engines = {key.rpartition("/")[2]: key for key in reasons} | {
            unit.name: unit.key for unit in theirs if matches(unit.key, names)
        }
        for unit in theirs:
            if unit.key in reasons:
                continue
            why = [f"starts {engines[name]}" for name in sorted(unit.triggers & set(engines))]
            if not _foreign_text.commands_others(unit.text, known, [*engines, our.unit, unit.name]):
                why += [
                    f"starts or stops {key} by its script"
                    for name, key in sorted(engines.items())
                    if name != unit.name and _foreign_text.commands_unit(unit.text, name)
                ]
            if why:
                reasons[unit.key], grown = why, True
    return reasons


def _unit(
    unit: Unit,
    reasons: Sequence[str],
    units: Sequence[Unit],
    theirs: Sequence[Unit],
    acting: Mapping[str, Sequence[str]],
    our: Our,
    names: Sequence[str],
) -> Finding:
    named = matches(unit.key, names)
    told = list(reasons)
    if not told:
        told += [f"names {what}" for what in _foreign_text.mentions(unit.text, our.unit, our.container, our.port)]
        told += [
            f"starts or stops {key}, among others" for key in acting if _foreign_text.commands_unit(unit.text, key)
        ]
        told += [f"would start {name} as its own" for name in sorted(unit.pulls) if name == our.unit or name in acting]
        if _foreign_text.engine(unit.text, our.port) == _foreign_text.OTHER:
            told.append("runs an engine on another port")
    starters = [other for other in units if unit.name in other.triggers and other.account == unit.account]
    startable = sorted(other.name for other in starters)
    startable += sorted(name for name in unit.pulled_by if not name.endswith(_TARGETS))
    startable += sorted(
        other.key
        for other in theirs
        if other is not unit and not unit.masked and _foreign_text.commands_unit(other.text, unit.name)
    )
    transient = unit.enabled == "transient" and unit.is_running and (bool(reasons) or named)
    woken = any(other.is_running or other.is_enabled for other in starters)
    return Finding(
        kind="unit",
        name=unit.key,
        what=f"unit {unit.key} ({unit.active}, {unit.enabled})",
        acts=bool(reasons),
        named=named,
        enabled=unit.enabled,
        active=unit.active,
        startable_by=list(dict.fromkeys(startable)),
        reasons=told or (["is named in vllm_legacy_units"] if named else []),
        live=unit.is_running or (not unit.masked and (unit.is_enabled or woken or bool(startable) or named)),
        would=_unit_would(unit, reasons, our),
        refused=f"unit {unit.key} has no file (systemd-run), so it could not be put back: stop it yourself, with whatever started it"
        if transient
        else "",
    )


def _unit_would(unit: Unit, reasons: Sequence[str], our: Our) -> str:
    joined = " ".join(reasons)
    if "conflicts" in joined:
        return f"when somebody starts it (the boot, its timer, whoever starts enabled units), systemd stops {our.unit}"
    if "engine" in joined:
        return "a second engine would take the port and the memory of ours"
    if "starts" in joined:
        return "it would bring that back while ours runs, and with it what that does"
    return ""


def _container_reasons(one: Container, our: Our) -> list[str]:
    why = []
    if one.holds_port or our.port in one.ports:
        why.append(f"has port {our.port}, which is the engine's")
    elif not one.ports and _foreign_text.engine(f"docker run {one.text}", our.port) == _foreign_text.OURS:
        why.append("runs an engine")
    return why


def _container(one: Container, our: Our, names: Sequence[str], units: Sequence[Unit]) -> Finding:
    reasons = _container_reasons(one, our)
    named = matches(one.name, names)
    told = list(reasons)
    if not told and one.has_gpu and (one.running or one.policy != "no"):
        told.append("uses the GPU, whose memory is the engine's too (say how much in vllm_plan_other_engines)")
    unit = next(
        (unit for unit in units if _named_by(unit.text, one.name) and unit.is_running and not our.is_unit(unit)), None
    )
    if unit and one.policy == "no" and not named:
        return Finding("container", one.name)  # goes with its unit
    refused = ""
    if one.name == our.container:
        reasons = told = ["has the name of our own container, so every start of ours would remove it"]
        refused = f"container {one.name} has the name of our own: `docker rename {one.name} {one.name}-before`, then run this again"
    elif one.removed_at_end and one.running:
        refused = (
            f"container {one.name} runs an engine and would be removed by its stop (--rm), so it could not be put back: stop it yourself, "
            f"with whatever started it"
        )
    return Finding(
        kind="container",
        name=one.name,
        what=f"container {one.name} ({'running' if one.running else 'stopped'}, restart policy {one.policy})",
        acts=bool(reasons),
        named=named,
        enabled=one.policy,
        active="running" if one.running else "stopped",
        startable_by=["docker.service"] if one.policy != "no" else [],
        reasons=told or (["is named in vllm_legacy_units"] if named else []),
        live=one.running or one.policy != "no",
        would="the container engine starts it again by itself, and it takes the port and the memory of ours"
        if one.policy != "no"
        else "it takes the port and the memory of ours",
        refused=refused if reasons or named else "",
    )


def _named_by(text: str, container: str) -> bool:
    return bool(container) and (f"--name {container} " in f"{text} " or f"--name={container} " in f"{text} ")


def _cron(one: Cron, our: Our, acting: Mapping[str, Sequence[str]], containers: Sequence[str]) -> Finding:
    """A table is the owner's text: it is never edited, and what starts only silenced units does no harm, as these are masked."""
    reasons, harmless = [], []
    if _foreign_text.engine(one.text, our.port) == _foreign_text.OURS:
        reasons.append("runs an engine")
    if _foreign_text.commands_unit(one.text, our.unit):
        reasons.append(f"starts or stops {our.unit}")
    reasons += [
        f"starts or stops the container {name}"
        for name in dict.fromkeys([our.container, *containers])
        if _foreign_text.commands_container(one.text, name)
    ]
    harmless = [
        f"starts or stops {key}"
        for key in acting
        if _foreign_text.commands_unit(one.text, key.rpartition("/")[2]) and not reasons
    ]
    return Finding(
        kind="cron",
        name=one.where,
        what=f"cron entry {one.where}",
        acts=bool(reasons),
        live=True,
        enabled="enabled",
        startable_by=["cron"],
        reasons=reasons + [f"{words}, which does nothing while that is silenced" for words in harmless],
        would="at its next time it does so while ours runs" if reasons else "",
        refused=(
            f"cron entry {one.where} {reasons[0]}: a cron table is not edited by this collection. Comment the line out (and in again after a "
            f"rollback), or name {one.where} in vllm_legacy_accept if it does no harm"
        )
        if reasons
        else "",
    )


def _told(finding: Finding) -> Finding:
    starts = f"; can be started by {', '.join(finding.startable_by)}" if finding.startable_by else ""
    would = f"; {finding.would}" if finding.would and finding.live else ""
    finding.text = f"{finding.what} {'; '.join(finding.reasons)}{starts}{would}"
    return finding


def not_ours(unit: Unit) -> Finding:
    """A unit of somebody else that has the name of ours: it would be overwritten."""
    return _told(
        Finding(
            kind="unit",
            name=unit.name,
            what=f"unit {unit.name}",
            acts=True,
            live=True,
            enabled=unit.enabled,
            active=unit.active,
            reasons=["was not written by this collection, which has a unit of the same name"],
            would="it would be overwritten, and could not be put back",
            refused=f"unit {unit.name} was not written by this collection, which has a unit of the same name: give yours another name "
            f"(`systemctl disable --now {unit.name}`, rename its file, `systemctl daemon-reload`, enable it again) and name that in "
            f"vllm_legacy_units",
        )
    )


def serves(finding: Finding) -> bool:
    """Whether it runs an engine now that a client may be served by."""
    engine = ("runs an engine", "listens on port", "has port")
    return finding.active in (*RUNNING, "running") and any(reason.startswith(engine) for reason in finding.reasons)


def gives_back(findings: Sequence[Finding], units: Sequence[Unit], containers: Sequence[Container]) -> list[str]:
    """Whose memory comes back when these are silenced; the container that a unit runs is one of its own."""
    silenced = {(finding.kind, finding.name) for finding in findings if finding.silence}
    texts = [unit.text for unit in units if ("unit", unit.key) in silenced]
    named = [name for kind, name in sorted(silenced) if kind == "unit"]
    return named + [
        f"container {one.name}"
        for one in containers
        if ("container", one.name) in silenced or any(_named_by(text, one.name) for text in texts)
    ]
