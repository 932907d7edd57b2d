"""metadata.managedFields: the wire form, and the ownership of fields after a write.

`apply` works on `Managers`, which maps each manager to its fields; `managers_of` and `put_managers` convert from and to
the wire form. A manager is identified by name, operation and subresource; an updater also by API version.

The other functions compute the managers after a write, or the conflicts that prevent it. Fields that the server resets
on this endpoint are never owned."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import fieldsets, typed
from numalign.simulator.apiserver.patches.errors import ApplyConflict, FieldConflict
from numalign.simulator.apiserver.patches.fieldsets import FieldPath, FieldSet
from numalign.simulator.apiserver.patches.typed import FieldChanges
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.trees import Tree

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
ANCIENT: Final = "ancient-changes"
SERVER_FIELDS: Final = (
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
# Fields that no manager owns: they identify the object, or the server writes them.
UNOWNED: Final[frozenset[FieldPath]] = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in SERVER_FIELDS)}
)


class ManagerIdentifier(NamedTuple):
    """`version` is empty for an applier, which is the same manager in every version."""

    name: str
    operation: str
    version: str
    subresource: str = ""

    def text(self) -> str:
        """The manager in conflict messages."""
        words = json.dumps(self.name, ensure_ascii=False)
        if self.subresource:
            words += f' with subresource "{self.subresource}"'
        return words + (f" using {self.version}" if self.operation == UPDATE else "")


@dataclass(frozen=True)
class OwnedFields:
    fields: FieldSet
    version: str
    time: str | None = None

    def having(self, fields: FieldSet) -> OwnedFields:
        return replace(self, fields=fields)


Managers = dict[ManagerIdentifier, OwnedFields]


def identifier(name: str, operation: str, version: str, subresource: str) -> ManagerIdentifier:
    return ManagerIdentifier(name or "unknown", operation, version if operation == UPDATE else "", subresource)


def managers_of(tree: Tree | None) -> Managers:
    """The managers of an object; none if managedFields cannot be decoded, because the server starts over then."""
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
    """Whether a client resets managedFields: an empty list, or one empty entry."""
    return isinstance(entries, list) and (not entries or entries == [{}])


def put_managers(tree: Tree, managers: Managers) -> None:
    """Writes managedFields into the object."""
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
    return entry | ({"subresource": who.subresource} if who.subresource else {})


def _order(entry: Tree) -> tuple[str, float, str, str, str]:
    subresource = entry.get("subresource", "")
    return entry["operation"], _seconds(entry.get("time")), entry["manager"], entry["apiVersion"], subresource


def _seconds(time: str | None) -> float:
    return datetime.fromisoformat(time).timestamp() // 1 if time else 0


def capped(managers: Managers) -> Managers:
    """Keeps at most ten updaters: the oldest of a version are merged into `ancient-changes`."""
    updaters = [who for who in managers if who.operation == UPDATE]
    oldest = sorted(updaters, key=lambda who: (_seconds(managers[who].time), who.name, who.version, who.subresource))
    first: dict[str, ManagerIdentifier] = {}
    count, kept = len(updaters), dict(managers)
    for who in oldest:
        if count <= MAX_UPDATERS:
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


class ApplyContext(NamedTuple):
    """What is constant within one write: the type of the object, its version, and the fields that are reset."""

    typedef: TypeDef
    version: str
    resets: list[FieldPath]


def merge(
    live: Tree, wanted: Tree, context: ApplyContext, managers: Managers, who: ManagerIdentifier
) -> tuple[Tree, Managers]:
    """The object with the applied fields, without those it no longer applies and no other manager owns."""
    merged: Tree = typed.merged(live, wanted, context.typedef)
    last = managers.get(who)
    fields = fieldsets.without(typed.fields_of(wanted, context.typedef), context.resets)
    kept = {**managers, who: OwnedFields(fields, context.version, last.time if last else None)}
    if last is not None and last.fields:
        merged = _pruned(merged, kept, last.fields, context.typedef)
    return merged, kept


def _pruned(merged: Tree, managers: Managers, last: FieldSet, typedef: TypeDef) -> Tree:
    """Removes all fields of the last apply, restores those that a manager owns, then those that no manager owned."""
    owned: FieldSet = set().union(*(each.fields for each in managers.values()))
    if last <= owned:
        return merged
    had = typed.with_named_fields(last, typedef)
    bare = _without(merged, had, typedef)
    everything = typed.with_named_fields(typed.fields_of(merged, typedef), typedef)
    wanted = typed.with_named_fields(typed.fields_of(bare, typedef), typedef) | typed.with_named_fields(owned, typedef)
    pruned = _without(merged, everything - wanted, typedef)
    gone = everything - typed.with_named_fields(typed.fields_of(pruned, typedef), typedef)
    return _without(merged, gone & had, typedef)


def _without(tree: Tree, gone: FieldSet, typedef: TypeDef) -> Tree:
    return typed.removed(tree, fieldsets.trie(gone), typedef) or {}


def owned_changes(before: Tree, after: Tree, context: ApplyContext) -> FieldChanges:
    """The changes of a write, without fields that are reset."""
    return typed.compare(before, after, context.typedef).without(context.resets)


def release_changed(changes: FieldChanges, managers: Managers, who: ManagerIdentifier | None) -> None:
    """Removes what a write changed from the fields of all other managers; changes `managers` in place."""
    lost = changes.modified | changes.added | changes.removed
    for other in list(managers):
        owned = managers[other]
        if other != who and not lost.isdisjoint(owned.fields):
            managers[other] = owned.having(owned.fields - lost)
    for other in [each for each in managers if not managers[each].fields]:
        del managers[other]


def conflicts(
    changes: FieldChanges, managers: Managers, who: ManagerIdentifier
) -> list[tuple[ManagerIdentifier, FieldPath]]:
    """The fields of other managers that a write would change."""
    touched = changes.modified | changes.added
    others = sorted((other for other in managers if other != who), key=_sorting)
    return [(other, path) for other in others for path in fieldsets.ordered(managers[other].fields & touched)]


def raise_conflicts(found: list[tuple[ManagerIdentifier, FieldPath]]) -> None:
    if found:
        raise ApplyConflict([FieldConflict(other.text(), fieldsets.text(path)) for other, path in found])


def _sorting(who: ManagerIdentifier) -> str:
    """The server sorts managers by their JSON."""
    pairs = {"manager": who.name, "operation": who.operation, "apiVersion": who.version, "subresource": who.subresource}
    return ",".join(f'"{key}":"{value}"' for key, value in pairs.items() if value)


def own_changed(managers: Managers, who: ManagerIdentifier, changes: FieldChanges, version: str, now: str) -> None:
    """Adds what a write added or changed to the fields of its manager, if there is anything."""
    fields = (changes.added | changes.modified) - UNOWNED
    if not fields:
        return
    previous = managers.get(who)
    managers[who] = OwnedFields(fields | (previous.fields if previous else set()), version, now)


def drop_unowned(managers: Managers, who: ManagerIdentifier) -> None:
    """Removes the fields that no manager owns from the entry of an applier."""
    owned = managers.get(who)
    if owned is None:
        return
    fields = owned.fields - UNOWNED
    if fields:
        managers[who] = owned.having(fields)
    else:
        del managers[who]
