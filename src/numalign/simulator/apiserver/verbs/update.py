"""Replaces objects and their status or finalize subresource.

`Api` and the HTTP layer call `update_object`; `replace_object` does the same for callers that have read the old object.
A write that changes nothing is not stored. An object that is being deleted and loses its last finalizer is removed."""

from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.patches import apply
from numalign.simulator.apiserver.patches.apply import FieldManager
from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES, Resource
from numalign.simulator.apiserver.storage.store import StoredObject, encode_object
from numalign.simulator.apiserver.verbs import conversion, create, strategy
from numalign.simulator.apiserver.verbs.state import PLAIN, ServerState, WriteOptions
from numalign.simulator.trees import Tree

STALE: Final = "the object has been modified; please apply your changes to the latest version and try again"
# In the order in which the real server writes them.
KEPT_BY_SERVER: Final = (
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
# The storage keys of nodes and services keep their original names, and messages show them.
OLD_NAMES: Final = {"nodes": "minions", "services": "services/specs"}


def update_object(
    state: ServerState, resource: Resource, tree: Tree, subresource: str = "", options: WriteOptions = PLAIN
) -> StoredObject:
    metadata = trees.metadata(tree)
    name, namespace = metadata.get("name", ""), metadata.get("namespace") or ("default" if resource.namespaced else "")
    entry = state.store.entry(resource, name, namespace)
    if entry is None and resource.group_resource in strategy.CREATED_BY_UPDATE and not subresource:
        return create.create_object(state, resource, tree, options)
    if entry is None:
        raise errors.not_found(resource, name)
    old = trees.decoded(entry.data)
    # The version says nothing about another object of the same name.
    _check_uid(resource, metadata.get("uid") or "", old)
    check_version(resource, metadata.get("resourceVersion") or "", entry, options)
    return replace_object(
        state, resource, entry, old, conversion.to_storage(resource, tree), subresource=subresource, options=options
    )


def replace_object(
    state: ServerState,
    resource: Resource,
    entry: StoredObject,
    old: Tree,
    tree: Tree,
    *,
    subresource: str = "",
    options: WriteOptions = PLAIN,
) -> StoredObject:
    """`tree` shares nothing with `old`."""
    new = _with_subresource(resource, old, tree, subresource)
    new["metadata"] = _metadata(resource, old, new["metadata"])
    new = strategy.admitted(state, resource, new, old, subresource)
    if "managedFields" in old["metadata"] or "managedFields" in new["metadata"]:
        new = _with_managed_fields(state, resource, old, new, subresource, options)
    if is_finished(resource, new):
        return _remove_finished(state, resource, entry, old, new, options)
    if new == old:
        return entry
    if not subresource and _counts(resource, new, old):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    if options.dry_run:
        return encode_object(resource, new, 0)
    return state.store.commit(resource, new, entry, old)


def _with_managed_fields(
    state: ServerState, resource: Resource, old: Tree, new: Tree, subresource: str, options: WriteOptions
) -> Tree:
    """The object with updated managedFields; `old` itself if only times in managedFields would differ."""
    if not options.applied:
        fields = FieldManager(resource.gvk, state.clock.rfc3339(), subresource, state.registry.schema(resource))
        new = fields.update(old, new, options.manager)
    return apply.unless_only_times_differ(old, new)


def is_finished(resource: Resource, tree: Tree) -> bool:
    """Whether the object is being deleted and no finalizer or grace period is left."""
    metadata = tree["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if resource is NAMESPACES and (tree.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _remove_finished(
    state: ServerState, resource: Resource, entry: StoredObject, old: Tree, new: Tree, options: WriteOptions
) -> StoredObject:
    shown = encode_object(resource, new, 0)
    if not options.dry_run:
        # Watchers see the last stored state, which still has the finalizer that this write removed.
        state.store.remove(resource, old | {"metadata": dict(old["metadata"])}, entry, old)
    return shown


def _with_subresource(resource: Resource, old: Tree, tree: Tree, subresource: str) -> Tree:
    """The old object with the parts replaced that this write may change."""
    if subresource == "status":
        return _with_status(resource, old, tree)
    if subresource == "finalize":
        spec = {key: value for key, value in (old.get("spec") or {}).items() if key != "finalizers"}
        left = (tree.get("spec") or {}).get("finalizers")
        return old | {"spec": spec | ({"finalizers": left} if left else {})}
    if not strategy.has_status(resource):
        return tree
    tree.pop("status", None)
    return tree | {"status": old["status"]} if "status" in old else tree


def _with_status(resource: Resource, old: Tree, tree: Tree) -> Tree:
    new = dict(old)
    new.pop("status", None)
    if "status" in tree:
        new["status"] = tree["status"]
    if resource.group_resource in strategy.LABELS_WITH_STATUS:
        kept = {key: old["metadata"][key] for key in ("ownerReferences", "finalizers") if key in old["metadata"]}
        allowed = {key: value for key, value in tree["metadata"].items() if key not in ("ownerReferences",)}
        new["metadata"] = kept | allowed
    return new


def _metadata(resource: Resource, old: Tree, given: Tree) -> Tree:
    before = old["metadata"]
    made: Tree = {"name": before["name"]}
    for key in KEPT_BY_SERVER:
        if key in before:
            made[key] = before[key]
    for key, value in given.items():
        if key not in made and key not in KEPT_BY_SERVER and key != "selfLink" and value not in (None, {}, []):
            made[key] = value
    return made


def _counts(resource: Resource, new: Tree, old: Tree) -> bool:
    """Whether the generation increases: with the spec; for a custom resource with everything except metadata and
    status."""
    if not resource.custom:
        return resource.generations and new.get("spec") != old.get("spec")
    ignored = {"metadata", "kind", "apiVersion"} | ({"status"} if strategy.has_status(resource) else set())
    return any(new.get(key) != old.get(key) for key in (new.keys() | old.keys()) - ignored)


def check_version(resource: Resource, version: str, entry: StoredObject, options: WriteOptions) -> None:
    """Raises StatusError unless the version is the latest, or absent where that is allowed."""
    if version in ("", "0"):
        if options.needs_version and strategy.needs_version(resource):
            raise _version_missing(resource, entry.name)
        return
    if not version.isdecimal():
        raise StatusError(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
    if int(version) != entry.version:
        raise errors.conflict(resource, entry.name, STALE)


def _version_missing(resource: Resource, name: str) -> StatusError:
    # Here the real server writes the plural in place of the kind.
    why = fielderrors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    refusal = errors.invalid(resource, name, [why])
    message = refusal.message.replace(resource.kind, resource.plural, 1)
    return StatusError(422, "Invalid", message, (refusal.details or {}) | {"kind": resource.plural})


def _check_uid(resource: Resource, uid: str, old: Tree) -> None:
    if uid and uid != old["metadata"]["uid"]:
        raise precondition_failed(resource, old, "UID", (uid, old["metadata"]["uid"]))


def precondition_failed(resource: Resource, old: Tree, what: str, values: tuple[str, str]) -> StatusError:
    metadata = old["metadata"]
    plural = OLD_NAMES.get(resource.plural, resource.plural)
    place = "/".join(filter(None, (plural, metadata.get("namespace", ""), metadata["name"])))
    root = f"/registry/{resource.group}/{place}" if resource.custom else f"/registry/{place}"
    failed = f"Precondition failed: {what} in precondition: {values[0]}, {what} in object meta: {values[1]}"
    why = f"StorageError: invalid object, Code: 4, Key: {root}, ResourceVersion: 0, AdditionalErrorMsg: {failed}"
    return errors.conflict(resource, metadata["name"], why)
