"""The strategies of kinds: how create, update and delete treat them, and the admission of their objects.

The tables list the kinds that differ from the usual behaviour; they were taken from the real server, kind by kind.

Create and update call `admitted` with an object that is complete except for its version. Built-in kinds pass through
defaulting and validation, custom resources through the schema of their definition. A definition takes effect in the
write that stores it: `definition_listener` updates the registry."""

from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import crdvalidation, fielderrors, structural
from numalign.simulator.apiserver.schemas.registry import completed_definition, custom_resources
from numalign.simulator.apiserver.storage import errors, resources
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, GroupResource, Resource
from numalign.simulator.apiserver.storage.store import EventKind, Listener, StoreEvent
from numalign.simulator.apiserver.verbs import conversion
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree


def _group_resources(*listed: Resource) -> frozenset[GroupResource]:
    return frozenset(resource.group_resource for resource in listed)


CREATED_BY_UPDATE: Final = _group_resources(
    resources.EVENTS,
    resources.SERVICES,
    resources.ENDPOINTS,
    resources.LIMITRANGES,
    resources.LEASES,
    resources.RUNTIMECLASSES,
    resources.ROLES,
    resources.ROLEBINDINGS,
    resources.CLUSTERROLES,
    resources.CLUSTERROLEBINDINGS,
)
"""A PUT of an object that does not exist creates it."""

NEEDS_VERSION: Final = _group_resources(
    resources.LEASES,
    resources.RUNTIMECLASSES,
    resources.PODDISRUPTIONBUDGETS,
    resources.CSIDRIVERS,
    resources.CSINODES,
    resources.CSISTORAGECAPACITIES,
    resources.VOLUMEATTACHMENTS,
    resources.CUSTOMRESOURCEDEFINITIONS,
)
"""A PUT over HTTP must name the version that it replaces. This holds for custom resources as well."""

SHOWN_WHEN_DELETED: Final = _group_resources(
    resources.PODS,
    resources.NAMESPACES,
    resources.PERSISTENTVOLUMES,
    resources.PERSISTENTVOLUMECLAIMS,
    resources.PODTEMPLATES,
    resources.RESOURCEQUOTAS,
    resources.SERVICES,
    resources.SERVICEACCOUNTS,
    resources.CSIDRIVERS,
    resources.CSINODES,
    resources.STORAGECLASSES,
    resources.VOLUMEATTACHMENTS,
)
"""DELETE responds with the object; for other kinds it responds with a Status."""

STATUS_ON_CREATE: Final = _group_resources(resources.NODES, resources.NAMESPACES, resources.SERVICES)
"""The status of a new object is kept; for other kinds it is dropped, because controllers write it."""

LABELS_WITH_STATUS: Final = _group_resources(
    resources.PODS,
    resources.NODES,
    resources.NAMESPACES,
    resources.PERSISTENTVOLUMES,
    resources.PERSISTENTVOLUMECLAIMS,
    resources.SERVICES,
    resources.RESOURCEQUOTAS,
    resources.JOBS,
    resources.REPLICASETS,
    resources.DAEMONSETS,
    resources.STATEFULSETS,
    resources.PODDISRUPTIONBUDGETS,
    resources.REPLICATIONCONTROLLERS,
)
"""A write to the status subresource may also change labels and annotations."""


def needs_version(resource: Resource) -> bool:
    return resource.custom or resource.group_resource in NEEDS_VERSION


def has_status(resource: Resource) -> bool:
    """Whether the status is a subresource."""
    return "status" in resource.subresources


def definition_listener(state: ServerState) -> Listener:
    def follow(kind: EventKind, event: StoreEvent, tree: Tree, before: Tree | None) -> None:
        group_resource = (trees.text(tree, "spec", "group"), trees.text(tree, "spec", "names", "plural"))
        state.registry.define(group_resource, () if kind == "DELETED" else custom_resources(tree))

    return follow


def remove_custom_objects(state: ServerState, definition: Tree) -> None:
    """Removes all objects of a definition that is deleted."""
    group, plural = trees.text(definition, "spec", "group"), trees.text(definition, "spec", "names", "plural")
    resource = next((each for each in state.registry if each.group_resource == (group, plural)), None)
    if resource is None:
        return
    for entry in list(state.store.collection(resource).within("")):
        state.store.remove(resource, trees.decoded(entry.data), entry, trees.decoded(entry.data))


def admitted(state: ServerState, resource: Resource, tree: Tree, old: Tree | None, subresource: str = "") -> Tree:
    """Raises StatusError for an invalid object. The status of built-in kinds is not validated."""
    problems = finalizer_errors(tree, old)
    if resource is CUSTOMRESOURCEDEFINITIONS and not subresource:
        tree = completed_definition(tree, old, state.clock.rfc3339())
        problems += crdvalidation.definition_errors(tree)
    elif (schema := state.registry.schema(resource)) is not None:
        tree, found = structural.admitted(schema, tree)
        problems += found
    if not subresource:
        tree = state.admission.prepare(conversion.storage_resource(resource), tree, old, state.lookup)
        problems += state.admission.errors(conversion.storage_resource(resource), tree, old)
    if problems:
        raise errors.invalid(resource, tree["metadata"].get("name", ""), problems)
    return tree


def finalizer_errors(tree: Tree, old: Tree | None) -> list[StatusCause]:
    """An object that is being deleted accepts no new finalizers."""
    if old is None or "deletionTimestamp" not in old["metadata"]:
        return []
    known = old["metadata"].get("finalizers") or ()
    new = [name for name in tree["metadata"].get("finalizers") or () if name not in known]
    if not new:
        return []
    listed = ", ".join(f'"{name}"' for name in new)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [fielderrors.forbidden("metadata.finalizers", why)]
