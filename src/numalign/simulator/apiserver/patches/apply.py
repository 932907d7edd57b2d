"""Server-side apply, and the managedFields that every other write has to maintain for it.

The patch verb calls `FieldManager.apply`, the update verb `FieldManager.update`; both take trees and return a new one.
An object that was never applied has no managedFields, and tracking it costs nothing. `managedfields` decides which
manager owns which field; `typed` compares and merges objects.

An applied object must be of the right kind, without managedFields and of the declared types. The messages for wrong
types are those of the server's merge library, including Go values; their code is 500."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import fieldsets, managedfields, typed
from numalign.simulator.apiserver.patches.errors import SERVER_ERROR, BadPatch
from numalign.simulator.apiserver.patches.fieldsets import FieldPath
from numalign.simulator.apiserver.patches.managedfields import APPLY, UPDATE, ApplyContext, Managers
from numalign.simulator.apiserver.schemas import builtin, gotext, typedefs
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from numalign.simulator.apiserver.schemas.typedefs import TypeDef
from numalign.simulator.apiserver.storage.resources import GroupVersionKind
from numalign.simulator.trees import Tree

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST: Final = "before-first-apply"
STATUS_ALSO_RESETS: Final[dict[str, list[FieldPath]]] = {
    "Deployment": [("f:metadata", "f:labels")],
    "Pod": [("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")],
    "VolumeAttachment": [("f:metadata",)],
    "CSINode": [("f:metadata",)],
}


def check_identity(wanted: Tree, kind: GroupVersionKind) -> None:
    group, _, version = trees.text(wanted, "apiVersion").rpartition("/")
    if (group, version, trees.text(wanted, "kind")) != kind:
        raise BadPatch(f"invalid object type: {group}/{version}, Kind={trees.text(wanted, 'kind')}")
    if trees.metadata(wanted).get("managedFields") is not None:
        raise BadPatch("metadata.managedFields must be nil")


def check_types(wanted: Tree, kind: GroupVersionKind, typedef: TypeDef) -> None:
    problems = list(_problems(wanted, typedef, ""))
    if problems:
        text = problems[0] if len(problems) == 1 else "errors:\n  " + "\n  ".join(problems)
        name = f"{trees.text(wanted, 'metadata', 'namespace')}/{trees.text(wanted, 'metadata', 'name')}"
        typed_as = f"{kind[0]}/{kind[1]}, Kind={kind[2]}"
        raise BadPatch(f"failed to create typed patch object ({name}; {typed_as}): {text}", SERVER_ERROR)


def _problems(value: Any, typedef: TypeDef, path: str) -> Iterator[str]:
    walk = typed.form(value, typedef)
    if value is None:
        return
    if walk == typed.STRUCT:
        if isinstance(value, dict):
            yield from _problems_of_fields(value, typedef, path)
        else:
            yield f"{path}: expected map, got &{{{gotext.go_value(value)}}}"
    elif walk == typed.LIST:
        if isinstance(value, list):
            yield from _problems_of_items(value, typedef, path)
        else:
            yield f"{path}: expected list, got &{{{gotext.go_value(value)}}}"
    else:
        yield from _problems_of_scalar(value, typedef, path)


def _problems_of_fields(value: dict[str, Any], typedef: TypeDef, path: str) -> Iterator[str]:
    for key, child in value.items():
        below = typedef.child(key)
        if below is None:
            yield f"{path}.{key}: field not declared in schema"
            return
        yield from _problems(child, below, f"{path}.{key}")


def _problems_of_items(value: list[Any], typedef: TypeDef, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(value):
        step = f"i:{index}"
        if typedef.relation in (typedefs.SET, typedefs.MAP):
            try:
                step = typed.step_to(item, typedef)
            except ValueError as error:
                yield f"{path}: element {index}: {error}"
                return
            if step in seen:
                yield f"{path}: duplicate entries for key {fieldsets.text((step,))}"
            seen.add(step)
        yield from _problems(item, typed.items_of(typedef), path + fieldsets.text((step,)))


def _problems_of_scalar(value: Any, typedef: TypeDef, path: str) -> Iterator[str]:
    if typedef.type in ("integer", "number") and (isinstance(value, bool) or not isinstance(value, int | float)):
        yield f"{path}: expected numeric (int or float), got {gotext.go_type(value)}"
    elif typedef.type == "boolean" and not isinstance(value, bool):
        yield f"{path}: expected boolean, got &{{{gotext.go_value(value)}}}"
    elif typedef.type == "string" and typedef.format in ("", "byte") and not isinstance(value, str):
        yield f"{path}: expected string, got &value.valueUnstructured{{Value:{gotext.go_value(value)}}}"
    elif isinstance(value, dict | list):
        yield f"{path}: expected any scalar, got &{{{gotext.go_value(value)}}}"


@dataclass(frozen=True)
class FieldManager:
    """One write to an object of a kind, at a time, through the main resource or a subresource."""

    kind: GroupVersionKind
    now: str
    subresource: str = ""
    schema: StructuralSchema | None = None
    """The schema of a custom resource; None for a built-in kind."""

    def apply(self, live: Tree | None, wanted: Tree, manager: str, *, force: bool = False) -> Tree:
        """Returns the object after `manager` applied `wanted`.

        Raises ApplyConflict where another manager owns a field with a different value, unless `force` is set."""
        context = self._context
        check_identity(wanted, self.kind)
        check_types(wanted, self.kind, context.typedef)
        managers = managedfields.managers_of(live)
        bare = _bare(live or {})
        if live and not managers:
            self._own_everything(bare, managers)
        who = managedfields.identifier(manager, APPLY, context.version, self.subresource)
        merged, managers = managedfields.merge(bare, wanted, context, managers, who)
        changes = managedfields.owned_changes(bare, merged, context)
        if not force:
            found = managedfields.conflicts(changes, managers, who)
            if found and manager == KUBECTL:
                found = _less_last_applied(found, bare, context)
            managedfields.raise_conflicts(found)
        managedfields.release_changed(changes, managers, who)
        if not typed.same(bare, merged) and who in managers:
            owned = managers[who]
            managers[who] = managedfields.OwnedFields(owned.fields, owned.version, self.now)
        managedfields.drop_unowned(managers, who)
        if manager == KUBECTL and _last_applied(merged):
            merged = _with_last_applied(merged, wanted)
        return _with_managers(merged, managers)

    def update(self, live: Tree, new: Tree, manager: str) -> Tree:
        """Returns `new` with managedFields that record what `manager` changed.

        An object without managedFields, before and after, is returned unchanged."""
        entries = trees.metadata(new).get("managedFields")
        if not entries and not trees.metadata(live).get("managedFields"):
            return new
        if not self.subresource and managedfields.is_reset(entries):
            return _with_managers(_bare(new), {})
        managers = {} if self.subresource else managedfields.managers_of(new)
        managers = managers or managedfields.managers_of(live)
        if not managers:
            return _with_managers(_bare(new), {})
        context = self._context
        bare = _bare(new)
        changes = managedfields.owned_changes(_bare(live), bare, context)
        managedfields.release_changed(changes, managers, None)
        who = managedfields.identifier(manager, UPDATE, context.version, self.subresource)
        managedfields.own_changed(managers, who, changes, context.version, self.now)
        return _with_managers(bare, managedfields.capped(managers))

    def _own_everything(self, live: Tree, managers: Managers) -> None:
        """Assigns all fields of an object that has no managedFields yet to the manager `before-first-apply`."""
        version = self._context.version
        who = managedfields.identifier(BEFORE_FIRST, UPDATE, version, self.subresource)
        nothing: Tree = {key: live[key] for key in ("apiVersion", "kind") if key in live}
        managedfields.own_changed(
            managers, who, managedfields.owned_changes(nothing, live, self._context), version, self.now
        )

    @cached_property
    def _context(self) -> ApplyContext:
        group, version, name = self.kind
        schema = self.schema
        typedef = schema.typedef if schema is not None else builtin.typedef(self.kind) or typedefs.ANYTHING
        resets: list[FieldPath] = [("f:status",)] if schema is None or schema.has_status_subresource else []
        if self.subresource == "status":
            resets = [("f:spec",), *(STATUS_ALSO_RESETS.get(name, []) if schema is None else [("f:metadata",)])]
        return ApplyContext(typedef, f"{group}/{version}" if group else version, resets)


def unless_only_times_differ(before: Tree, after: Tree) -> Tree:
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
    managedfields.put_managers(managed, managers)
    return managed


def _last_applied(tree: Tree) -> Any:
    return (trees.metadata(tree).get("annotations") or {}).get(LAST_APPLIED)


def _less_last_applied(found: list[Any], live: Tree, context: ApplyContext) -> list[Any]:
    """kubectl may take over fields that it set by client-side apply and that no other manager changed since."""
    try:
        last = json.loads(_last_applied(live) or "null")
    except ValueError:
        return found
    if not isinstance(last, dict) or last.get("apiVersion") != context.version:
        return found
    changes = typed.compare(last, live, context.typedef)
    own = typed.fields_of(last, context.typedef) - changes.modified - changes.added - changes.removed
    return [(other, path) for other, path in found if path not in own]


def _with_last_applied(merged: Tree, wanted: Tree) -> Tree:
    """Updates the annotation of client-side apply, so that a later client-side apply does not revert this one."""
    metadata = dict(trees.metadata(wanted))
    if isinstance(metadata.get("annotations"), dict):
        notes = metadata["annotations"].items()
        metadata["annotations"] = {key: note for key, note in notes if key != LAST_APPLIED}
    text = gotext.go_json({**wanted, "metadata": metadata}) + "\n"
    annotations = {**merged["metadata"]["annotations"], LAST_APPLIED: text}
    return {**merged, "metadata": {**merged["metadata"], "annotations": annotations}}
