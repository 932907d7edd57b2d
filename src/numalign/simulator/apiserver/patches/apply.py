"""Server-side apply, and the managedFields that every other write has to maintain for it.

The patch verb calls `FieldManager.apply`, the update verb `FieldManager.update`; both take trees and return a new one.
An object that was never applied has no managedFields, and tracking it costs nothing. `ownership` decides which manager
owns which field; `typed` and `merging` walk the objects. Nothing here reads the store or the request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
class FieldManager:
    """One write to an object of a kind, at a time, through the main resource or a subresource (`part`)."""

    kind: Kind
    now: str
    part: str = ""
    schema: Schema | None = None
    """The schema of a custom resource; None for a built-in kind."""

    def apply(self, live: Tree | None, wanted: Tree, manager: str, *, force: bool = False) -> Tree:
        """Returns the object after `manager` applied `wanted`.

        Raises ApplyConflict where another manager owns a field with a different value, unless `force` is set."""
        ground = self._ground
        applychecks.refuse_foreign(wanted, self.kind)
        applychecks.refuse_misshapen(wanted, self.kind, ground.shape)
        managers = managedfields.of(live)
        bare = _bare(live or {})
        if live and not managers:
            self._own_everything(bare, managers)
        who = managedfields.manager(manager, APPLY, ground.version, self.part)
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
            managers[who] = managedfields.Owned(owned.fields, owned.version, self.now)
        ownership.strip(managers, who)
        if manager == KUBECTL and _last_applied(merged):
            merged = _with_last_applied(merged, wanted)
        return _with_managers(merged, managers)

    def update(self, live: Tree, new: Tree, manager: str) -> Tree:
        """Returns `new` with managedFields that record what `manager` changed.

        An object without managedFields, before and after, is returned unchanged."""
        entries = trees.metadata(new).get("managedFields")
        if not entries and not trees.metadata(live).get("managedFields"):
            return new
        if not self.part and managedfields.is_reset(entries):
            return _with_managers(_bare(new), {})
        managers = {} if self.part else managedfields.of(new)
        managers = managers or managedfields.of(live)
        if not managers:
            return _with_managers(_bare(new), {})
        ground = self._ground
        bare = _bare(new)
        changes = ownership.changed(_bare(live), bare, ground)
        ownership.settle(changes, managers, None)
        who = managedfields.manager(manager, UPDATE, ground.version, self.part)
        ownership.credit(managers, who, changes, ground.version, self.now)
        return _with_managers(bare, managedfields.capped(managers))

    def _own_everything(self, live: Tree, managers: Managers) -> None:
        """Assigns all fields of an object that has no managedFields yet to the manager `before-first-apply`."""
        version = self._ground.version
        who = managedfields.manager(BEFORE_FIRST, UPDATE, version, self.part)
        nothing: Tree = {key: live[key] for key in ("apiVersion", "kind") if key in live}
        ownership.credit(managers, who, ownership.changed(nothing, live, self._ground), version, self.now)

    @cached_property
    def _ground(self) -> Ground:
        group, version, name = self.kind
        schema = self.schema
        shape = schema.shape if schema is not None else builtin.fields(self.kind) or shapes.ANYTHING
        resets: list[Path] = [("f:status",)] if schema is None or schema.has_status_part else []
        if self.part == "status":
            resets = [("f:spec",), *(STATUS_ALSO_RESETS.get(name, []) if schema is None else [("f:metadata",)])]
        return Ground(shape, f"{group}/{version}" if group else version, resets)


def settled(before: Tree, after: Tree) -> Tree:
    """Returns `before` if the two differ only in the times of managedFields: such a write changes nothing."""
    return before if typed.same(_timeless(before), _timeless(after)) else after


def _timeless(tree: Tree) -> Tree:
    metadata = dict(trees.metadata(tree))
    metadata["managedFields"] = [{**entry, "time": ""} for entry in metadata.get("managedFields") or ()]
    return {**tree, "metadata": metadata}


def _bare(tree: Tree) -> Tree:
    """The object without managedFields, which no manager owns."""
    if "managedFields" not in trees.metadata(tree):
        return tree
    metadata = {key: value for key, value in tree["metadata"].items() if key != "managedFields"}
    return {**tree, "metadata": metadata}


def _with_managers(tree: Tree, managers: Managers) -> Tree:
    managed = {**tree, "metadata": dict(trees.metadata(tree))}
    managedfields.put(managed, managers)
    return managed


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
