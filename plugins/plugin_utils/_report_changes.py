# Copyright: (c) 2026, gb10.vllm contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rollout changed, in words: the release before and the release after of each host, compared.

Private to this collection: may change at any time. Pure: no Ansible, no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Record = Mapping[str, Any]

# Plain values of a record, as a person calls them.
PLAIN = {
    "topology": "topology",
    "model": "model",
    "revision": "revision of the model",
    "served_model_name": "name of the model for clients",
    "port": "port",
    "ranks": "hosts per engine",
}
LISTS = {"volumes": "volume", "container_options": "option of the container"}
PAIRS = {"environment": "environment", "mods": "mod", "budgets": "time budget"}
# In the place of a release: what ran here before this collection did.
LEGACY = "legacy"
# They only say which host this is.
OF_THE_HOST = ("--node-rank", "--headless", "--master-addr", "--master-port", "--nnodes")


def arguments(command: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The engine's arguments by name; a switch has an empty value. The first line is the model, which has an entry of its own."""
    found: dict[str, str] = {}
    for line in command[1:]:
        words = [str(word) for word in line]
        if words and words[0].startswith("-"):
            found[words[0]] = " ".join(words[1:])
    return found


def item(what: str, name: str, before: Any, after: Any) -> dict[str, str]:
    """One difference; an empty side means that it is not there."""
    return {"what": what, "name": name, "before": str(before), "after": str(after)}


def _mapped(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        item(what, name, _said(before, name), _said(after, name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name) or (name in before) != (name in after)
    ]


def _said(values: Mapping[str, Any], name: str) -> str:
    """A value for a person: a switch without a value is on."""
    return (str(values[name]) or "on") if name in values else ""


def differences(before: Record, after: Record) -> list[dict[str, str]]:
    """Everything that two releases of one host differ in, what decides most first."""
    found = [
        item("engine", words, before.get(key, ""), after.get(key, ""))
        for key, words in PLAIN.items()
        if before.get(key) != after.get(key)
    ]
    if before.get("image") != after.get("image"):
        found.append(item("engine", "image", before.get("image", ""), after.get("image", "")))
    found += _mapped("argument", arguments(before.get("command") or []), arguments(after.get("command") or []))
    for key, words in PAIRS.items():
        found += _mapped(words, before.get(key) or {}, after.get(key) or {})
    for key, words in LISTS.items():
        old, new = list(before.get(key) or []), list(after.get(key) or [])
        found += [item(words, "", value, "") for value in old if value not in new]
        found += [item(words, "", "", value) for value in new if value not in old]
    return found


def of_host(before: str, after: str, records: Mapping[str, Record]) -> dict[str, Any]:
    """What changed on one host, with the sentence that says it at a glance."""
    known = {"before": before, "after": after, "items": []}
    if not after:
        return {**known, "words": "The journal does not say which release was wanted here."}
    if not before:
        return {**known, "words": "The first release on this host."}
    if LEGACY in (before, after):
        when = "What ran here before was" if before == LEGACY else "What runs here now is"
        return {**known, "words": f"{when} an engine that this collection has not set up."}
    if before == after:
        return {**known, "words": "The same release again: nothing of the engine was changed."}
    lacking = [words for name, words in ((before, "before"), (after, "after")) if name not in records]
    if lacking:
        return {
            **known,
            "words": f"What changed is not known: the release {' and the one '.join(lacking)} could not be read here.",
        }
    items = differences(records[before], records[after])
    return {**known, "items": items, "words": in_words(items)}


def in_words(items: Sequence[Mapping[str, str]]) -> str:
    """One sentence of what changed, with the values where it is one thing."""
    shown = [entry for entry in items if entry["what"] != "argument" or entry["name"] not in OF_THE_HOST]
    if not shown:
        return "The releases differ only in what says which host this is."
    if len(shown) == 1:
        return f"{_name(shown[0])}: {_change(shown[0])}."
    counts: dict[str, list[str]] = {}
    for entry in shown:
        counts.setdefault(entry["what"], []).append(entry["name"])
    parts = [
        ", ".join(dict.fromkeys(called)) if what == "engine" else f"{len(called)} {_plural(what, len(called))}"
        for what, called in counts.items()
    ]
    return f"Changed: {', '.join(parts)}."


def _name(entry: Mapping[str, str]) -> str:
    return entry["name"] if entry["what"] == "engine" else f"{entry['what']} {entry['name']}".strip()


def _change(entry: Mapping[str, str]) -> str:
    if not entry["before"]:
        return f"added, {entry['after']}"
    if not entry["after"]:
        return f"taken away, was {entry['before']}"
    return f"{entry['before']} became {entry['after']}"


def _plural(what: str, count: int) -> str:
    if what == "environment":
        return "environment variable" + ("s" if count > 1 else "")
    if what.startswith("option"):
        return what.replace("option", "options") if count > 1 else what
    return what + ("s" if count > 1 else "")


def grouped(changes: Iterable[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Hosts on which the same was changed, together; releases differ by name from host to host even then."""
    found: list[dict[str, Any]] = []
    for name, entry in changes:
        release = {"host": name, "before": entry["before"], "after": entry["after"]}
        for group in found:
            if group["items"] == entry["items"] and group["words"] == entry["words"]:
                group["hosts"].append(name)
                group["releases"].append(release)
                break
        else:
            found.append({"hosts": [name], "words": entry["words"], "items": entry["items"], "releases": [release]})
    return found
