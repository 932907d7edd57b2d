"""Server-side apply, and the books of ownership it needs kept on every other write.

The API server calls `applied` for an apply patch and `tracked` after any other write; both take trees and give a new
one whose managedFields are true. An object that was never applied has no books and costs nothing. Who wants to see
the rules: `ownership` decides about fields, `typed` and `merging` walk objects."""

from __future__ import annotations

import json
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import applychecks, gotext, managedfields, ownership, typed
from numalign.simulator.apiserver.patches.fieldsets import Path
from numalign.simulator.apiserver.patches.managedfields import APPLY, UPDATE, Managers
from numalign.simulator.apiserver.patches.ownership import Ground
from numalign.simulator.apiserver.schemas import builtin, shapes
from numalign.simulator.apiserver.schemas.builtin import Kind
from numalign.simulator.apiserver.schemas.structural import Schema
from numalign.simulator.trees import Tree

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST: Final = "before-first-apply"
STATUS_ALSO_RESETS: Final[dict[str, list[Path]]] = {
    "Deployment": [("f:metadata", "f:labels")],
    "Pod": [("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")],
    "VolumeAttachment": [("f:metadata",)],
    "CSINode": [("f:metadata",)],
}


def applied(
    live: Tree | None,
    wanted: Tree,
    *,
    kind: Kind,
    manager: str,
    force: bool = False,
    now: str,
    part: str = "",
    schema: Schema | None = None,
) -> Tree:
    """The object after `manager` applied what it wants; ApplyConflict where others hold it, unless forced."""
    ground = _ground(kind, part, schema)
    applychecks.refuse_foreign(wanted, kind)
    applychecks.refuse_misshapen(wanted, kind, ground.shape)
    managers = managedfields.of(live)
    bare = _bare(live or {})
    if live and not managers:
        _book_all(bare, ground, managers, part, now)
    who = managedfields.manager(manager, APPLY, ground.version, part)
    merged, managers = ownership.merge(bare, wanted, ground, managers, who)
    changes = ownership.changed(bare, merged, ground)
    if not force:
        found = ownership.conflicts(changes, managers, who)
        if found and manager == KUBECTL:
            found = _less_last_applied(found, bare, ground)
        ownership.refuse(found)
    ownership.settle(changes, managers, who)
    if not typed.same(bare, merged) and who in managers:
        owned = managers[who]
        managers[who] = managedfields.Owned(owned.fields, owned.version, now)
    ownership.strip(managers, who)
    if manager == KUBECTL and _last_applied(merged):
        merged = _with_last_applied(merged, wanted)
    return _booked(merged, managers)


def tracked(
    before: Tree | None,
    after: Tree,
    *,
    kind: Kind,
    manager: str,
    operation: str = UPDATE,
    now: str,
    part: str = "",
    schema: Schema | None = None,
) -> Tree:
    """`after` with its books brought up to date; a tree without books, before and after, comes back as it is."""
    entries = trees.metadata(after).get("managedFields")
    if before is None or (not entries and not trees.metadata(before).get("managedFields")):
        return after
    if not part and managedfields.is_reset(entries):
        return _booked(_bare(after), {})
    managers = {} if part else managedfields.of(after)
    managers = managers or managedfields.of(before)
    if not managers:
        return _booked(_bare(after), {})
    ground = _ground(kind, part, schema)
    bare = _bare(after)
    changes = ownership.changed(_bare(before), bare, ground)
    ownership.settle(changes, managers, None)
    who = managedfields.manager(manager, operation, ground.version, part)
    ownership.credit(managers, who, changes, ground.version, now)
    return _booked(bare, managedfields.capped(managers))


def settled(before: Tree, after: Tree) -> Tree:
    """`before` where nothing but times in the books differs, since such a write is none; asked once defaults are in."""
    return before if typed.same(_timeless(before), _timeless(after)) else after


def _timeless(tree: Tree) -> Tree:
    metadata = dict(trees.metadata(tree))
    metadata["managedFields"] = [{**entry, "time": ""} for entry in metadata.get("managedFields") or ()]
    return {**tree, "metadata": metadata}


def _ground(kind: Kind, part: str, schema: Schema | None) -> Ground:
    group, version, name = kind
    shape = schema.shape if schema is not None else builtin.fields(kind) or shapes.ANYTHING
    resets: list[Path] = [("f:status",)] if schema is None or schema.has_status_part else []
    if part == "status":
        resets = [("f:spec",), *(STATUS_ALSO_RESETS.get(name, []) if schema is None else [("f:metadata",)])]
    return Ground(shape, f"{group}/{version}" if group else version, resets)


def _bare(tree: Tree) -> Tree:
    """Without the books, which own nothing and are owned by nobody."""
    if "managedFields" not in trees.metadata(tree):
        return tree
    metadata = {key: value for key, value in tree["metadata"].items() if key != "managedFields"}
    return {**tree, "metadata": metadata}


def _booked(tree: Tree, managers: Managers) -> Tree:
    booked = {**tree, "metadata": dict(trees.metadata(tree))}
    managedfields.put(booked, managers)
    return booked


def _book_all(live: Tree, ground: Ground, managers: Managers, part: str, now: str) -> None:
    """Nobody kept books so far: everything there is belongs to a manager of a made-up name."""
    who = managedfields.manager(BEFORE_FIRST, UPDATE, ground.version, part)
    nothing: Tree = {key: live[key] for key in ("apiVersion", "kind") if key in live}
    ownership.credit(managers, who, ownership.changed(nothing, live, ground), ground.version, now)


def _last_applied(tree: Tree) -> Any:
    return (trees.metadata(tree).get("annotations") or {}).get(LAST_APPLIED)


def _less_last_applied(found: list[Any], live: Tree, ground: Ground) -> list[Any]:
    """kubectl may take over what it set itself by client-side apply and nobody changed since."""
    try:
        last = json.loads(_last_applied(live) or "null")
    except ValueError:
        return found
    if not isinstance(last, dict) or last.get("apiVersion") != ground.version:
        return found
    changes = typed.compare(last, live, ground.shape)
    own = typed.fields_of(last, ground.shape) - changes.modified - changes.added - changes.removed
    return [(other, path) for other, path in found if path not in own]


def _with_last_applied(merged: Tree, wanted: Tree) -> Tree:
    """Keeps the annotation of client-side apply in step, so that it does not undo what was applied here."""
    metadata = dict(trees.metadata(wanted))
    if isinstance(metadata.get("annotations"), dict):
        notes = metadata["annotations"].items()
        metadata["annotations"] = {key: note for key, note in notes if key != LAST_APPLIED}
    text = gotext.json({**wanted, "metadata": metadata}) + "\n"
    annotations = {**merged["metadata"]["annotations"], LAST_APPLIED: text}
    return {**merged, "metadata": {**merged["metadata"], "annotations": annotations}}
