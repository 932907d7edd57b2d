"""Who owns what after a write: the middle of server-side apply, on sets of fields.

`apply` brings an object before and after, and the books; what comes back are the books after the write, or the
conflicts that keep it from happening. Fields that the server resets on this path are never credited to anybody."""

from __future__ import annotations

from typing import Final, NamedTuple

from numalign.simulator.apiserver.patches import fieldsets, merging, typed
from numalign.simulator.apiserver.patches.fieldsets import Fields, Path
from numalign.simulator.apiserver.patches.managedfields import ManagerIdentifier, Managers, OwnedFields
from numalign.simulator.apiserver.patches.refused import ApplyConflict, FieldConflict
from numalign.simulator.apiserver.patches.typed import FieldChanges
from numalign.simulator.apiserver.schemas.shapes import TypeDef
from numalign.simulator.trees import Tree

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
    merged: Tree = merging.merged(live, wanted, ground.shape)
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
