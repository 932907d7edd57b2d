"""The books of ownership in metadata.managedFields: reading them, writing them, naming the managers.

`apply` works on `Managers`, a dict from who to what; this module turns it from and into the wire form. A manager is
its name, operation and subresource; one that updates counts once per API version, one that applies only once.

Who owns what after a write: the middle of server-side apply, on sets of fields.

`apply` brings an object before and after, and the books; what comes back are the books after the write, or the
conflicts that keep it from happening. Fields that the server resets on this path are never credited to anybody.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import fieldsets, typed
from numalign.simulator.apiserver.patches.errors import ApplyConflict, FieldConflict
from numalign.simulator.apiserver.patches.fieldsets import Fields, Path
from numalign.simulator.apiserver.patches.typed import FieldChanges
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
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


def identifier(name: str, operation: str, version: str, part: str) -> ManagerIdentifier:
    return ManagerIdentifier(name or "unknown", operation, version if operation == UPDATE else "", part)


def managers_of(tree: Tree | None) -> Managers:
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
    who = identifier(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
    return who, OwnedFields(fieldsets.decode(entry.get("fieldsV1") or {}), version, entry.get("time"))


def is_reset(entries: Any) -> bool:
    """Whether a client asks to forget the books: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def put_managers(tree: Tree, managers: Managers) -> None:
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


SERVERS: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
# Never owned by anybody: they name the object, or the server writes them.
NOBODYS: Final[frozenset[Path]] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in SERVERS)}
)


class ApplyContext(NamedTuple):
    """What stays the same within one write: how the object looks, its version, and what is reset on this path."""

    shape: TypeDef
    version: str
    resets: list[Path]


def merge(
    live: Tree, wanted: Tree, ground: ApplyContext, managers: Managers, who: ManagerIdentifier
) -> tuple[Tree, Managers]:
    """The object with the wanted fields, less those its manager no longer wants and nobody else has."""
    merged: Tree = typed.merged(live, wanted, ground.shape)
    last = managers.get(who)
    fields = fieldsets.without(typed.fields_of(wanted, ground.shape), ground.resets)
    kept = {**managers, who: OwnedFields(fields, ground.version, last.time if last else None)}
    if last is not None and last.fields:
        merged = _pruned(merged, kept, last.fields, ground.shape)
    return merged, kept


def _pruned(merged: Tree, managers: Managers, last: Fields, shape: TypeDef) -> Tree:
    """First everything the manager had is taken out, then what anybody owns is put back, then what nobody had."""
    owned: Fields = set().union(*(each.fields for each in managers.values()))
    if last <= owned:
        return merged
    had = typed.with_named_fields(last, shape)
    bare = _without(merged, had, shape)
    everything = typed.with_named_fields(typed.fields_of(merged, shape), shape)
    wanted = typed.with_named_fields(typed.fields_of(bare, shape), shape) | typed.with_named_fields(owned, shape)
    pruned = _without(merged, everything - wanted, shape)
    gone = everything - typed.with_named_fields(typed.fields_of(pruned, shape), shape)
    return _without(merged, gone & had, shape)


def _without(tree: Tree, gone: Fields, shape: TypeDef) -> Tree:
    return typed.removed(tree, fieldsets.trie(gone), shape) or {}


def changed(before: Tree, after: Tree, ground: ApplyContext) -> FieldChanges:
    """What a write changes, as far as anybody can own it."""
    return typed.compare(before, after, ground.shape).without(ground.resets)


def settle(changes: FieldChanges, managers: Managers, who: ManagerIdentifier | None) -> None:
    """Takes from all others what a write changed or removed; `managers` is changed in place."""
    lost = changes.modified | changes.added | changes.removed
    for other in list(managers):
        owned = managers[other]
        if other != who and not lost.isdisjoint(owned.fields):
            managers[other] = owned.having(owned.fields - lost)
    for other in [each for each in managers if not managers[each].fields]:
        del managers[other]


def conflicts(
    changes: FieldChanges, managers: Managers, who: ManagerIdentifier
) -> list[tuple[ManagerIdentifier, Path]]:
    """The fields a write would change under the hands of others."""
    touched = changes.modified | changes.added
    others = sorted((other for other in managers if other != who), key=_sorting)
    return [(other, path) for other in others for path in fieldsets.ordered(managers[other].fields & touched)]


def refuse(found: list[tuple[ManagerIdentifier, Path]]) -> None:
    if found:
        raise ApplyConflict([FieldConflict(other.text(), fieldsets.text(path)) for other, path in found])


def _sorting(who: ManagerIdentifier) -> str:
    """By the JSON of the manager, which is what the server sorts by."""
    pairs = {"manager": who.name, "operation": who.operation, "apiVersion": who.version, "subresource": who.part}
    return ",".join(f'"{key}":"{value}"' for key, value in pairs.items() if value)


def credit(managers: Managers, who: ManagerIdentifier, changes: FieldChanges, version: str, now: str) -> None:
    """Books what a write added or changed on its manager; a write that changed nothing leaves no trace."""
    fields = (changes.added | changes.modified) - NOBODYS
    if not fields:
        return
    previous = managers.get(who)
    managers[who] = OwnedFields(fields | (previous.fields if previous else set()), version, now)


def strip(managers: Managers, who: ManagerIdentifier) -> None:
    """Forgets what nobody owns from the entry of an applier."""
    owned = managers.get(who)
    if owned is None:
        return
    fields = owned.fields - NOBODYS
    if fields:
        managers[who] = owned.having(fields)
    else:
        del managers[who]
