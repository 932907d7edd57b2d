"""The books of ownership in metadata.managedFields: reading them, writing them, naming the managers.

`apply` works on `Managers`, a dict from who to what; this module turns it from and into the wire form. A manager is
its name, operation and subresource; one that updates counts once per API version, one that applies only once."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import fieldsets
from numalign.simulator.apiserver.patches.fieldsets import Fields
from numalign.simulator.trees import Tree

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MOST_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"


class ManagerIdentifier(NamedTuple):
    """`version` is empty for an applier, who is the same whatever version it applies."""

    name: str
    operation: str
    version: str
    part: str = ""

    def text(self) -> str:
        """As conflicts name it."""
        words = json.dumps(self.name, ensure_ascii=False)
        if self.part:
            words += f' with subresource "{self.part}"'
        return words + (f" using {self.version}" if self.operation == UPDATE else "")


@dataclass(frozen=True)
class OwnedFields:
    fields: Fields
    version: str
    time: str | None = None

    def having(self, fields: Fields) -> OwnedFields:
        return replace(self, fields=fields)


Managers = dict[ManagerIdentifier, OwnedFields]


def manager(name: str, operation: str, version: str, part: str) -> ManagerIdentifier:
    return ManagerIdentifier(name or "unknown", operation, version if operation == UPDATE else "", part)


def of(tree: Tree | None) -> Managers:
    """The books of an object; none where they cannot be read, as the server starts over then."""
    entries = None if tree is None else trees.metadata(tree).get("managedFields")
    try:
        return dict(map(_read, entries or ()))
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}


def _read(entry: Tree) -> tuple[ManagerIdentifier, OwnedFields]:
    operation, version = entry["operation"], entry["apiVersion"]
    if operation not in (APPLY, UPDATE) or not version or entry["fieldsType"] != "FieldsV1":
        raise ValueError(operation)
    who = manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
    return who, OwnedFields(fieldsets.decode(entry.get("fieldsV1") or {}), version, entry.get("time"))


def is_reset(entries: Any) -> bool:
    """Whether a client asks to forget the books: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def put(tree: Tree, managers: Managers) -> None:
    """Writes the books into the object."""
    metadata = tree.setdefault("metadata", {})
    if managers:
        metadata["managedFields"] = sorted(map(_written, managers.items()), key=_order)
    else:
        metadata.pop("managedFields", None)


def _written(item: tuple[ManagerIdentifier, OwnedFields]) -> Tree:
    who, owned = item
    entry: Tree = {"manager": who.name, "operation": who.operation, "apiVersion": owned.version}
    if owned.time:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": fieldsets.encode(owned.fields)}
    return entry | ({"subresource": who.part} if who.part else {})


def _order(entry: Tree) -> tuple[str, float, str, str, str]:
    subresource = entry.get("subresource", "")
    return entry["operation"], _seconds(entry.get("time")), entry["manager"], entry["apiVersion"], subresource


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() // 1 if time else 0


def capped(managers: Managers) -> Managers:
    """No more than ten updaters: the oldest of a version are thrown together under one name."""
    updaters = [who for who in managers if who.operation == UPDATE]
    oldest = sorted(updaters, key=lambda who: (_seconds(managers[who].time), who.name, who.version, who.part))
    first: dict[str, ManagerIdentifier] = {}
    count, kept = len(updaters), dict(managers)
    for who in oldest:
        if count <= MOST_UPDATERS:
            break
        if who.version not in first:
            first[who.version] = who
            continue
        bucket = ManagerIdentifier(ANCIENT, UPDATE, who.version)
        gathered = kept.get(bucket) or kept.pop(first[who.version])
        owned = kept.pop(who)
        kept[bucket] = owned.having(owned.fields | gathered.fields)
        count -= 1
    return kept
