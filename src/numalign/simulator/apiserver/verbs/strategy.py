"""How kinds differ in what the verbs do with them, as tables.

`creating`, `updating` and `deleting` look here; everything that is not in a table behaves as most kinds do. The lists
were read off the real server, kind by kind.

From an object as a client wrote it to one that may be kept: defaults, rules of its kind, schema of a custom one.

`creating` and `updating` call `admitted` with the object complete but for its version. Built-in kinds go through
admission, custom ones through the schema of their definition, definitions themselves through `customs`.

Custom resources: from a definition to a resource that is served, and its objects held to their schema.

Definitions take effect in the write that stores them: there is no moment at which one is accepted but not yet
established. The listener that `follower` makes keeps the registry in step with the store.
"""

from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import crdvalidation, fielderrors, structural
from numalign.simulator.apiserver.schemas.registry import completed_definition, custom_resources
from numalign.simulator.apiserver.storage import errors, resources
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, Resource
from numalign.simulator.apiserver.storage.store import EventKind, Listener, StoreEvent
from numalign.simulator.apiserver.verbs import conversion
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

Home = tuple[str, str]


def _homes(*listed: Resource) -> frozenset[Home]:
    return frozenset(resource.home for resource in listed)


CREATED_BY_UPDATE: Final = _homes(
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
"""A PUT of one that is not there creates it."""

NEEDS_VERSION: Final = _homes(
    resources.LEASES,
    resources.RUNTIMECLASSES,
    resources.PODDISRUPTIONBUDGETS,
    resources.CSIDRIVERS,
    resources.CSINODES,
    resources.CSISTORAGECAPACITIES,
    resources.VOLUMEATTACHMENTS,
    resources.CUSTOMRESOURCEDEFINITIONS,
)
"""A PUT over HTTP has to say which version it replaces; so does one of any custom resource."""

SHOWN_WHEN_DELETED: Final = _homes(
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
"""DELETE answers with the object that was; with others, with a Status."""

STATUS_ON_CREATE: Final = _homes(resources.NODES, resources.NAMESPACES, resources.SERVICES)
"""A status that comes with a new object is kept; with others it is dropped, being the controllers' to write."""

LABELS_WITH_STATUS: Final = _homes(
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
"""A write to their status may change labels and annotations on the way."""


def needs_version(resource: Resource) -> bool:
    return resource.custom or resource.home in NEEDS_VERSION


def has_status(resource: Resource) -> bool:
    """Whether its status is written apart from the rest."""
    return "status" in resource.subresources


def definition_listener(state: ServerState) -> Listener:
    def follow(kind: EventKind, event: StoreEvent, tree: Tree, before: Tree | None) -> None:
        home = (trees.text(tree, "spec", "group"), trees.text(tree, "spec", "names", "plural"))
        state.registry.define(home, () if kind == "DELETED" else custom_resources(tree))

    return follow


def remove_custom_objects(state: ServerState, definition: Tree) -> None:
    """All objects of a definition that goes."""
    group, plural = trees.text(definition, "spec", "group"), trees.text(definition, "spec", "names", "plural")
    resource = next((each for each in state.registry if each.home == (group, plural)), None)
    if resource is None:
        return
    for entry in list(state.store.collection(resource).within("")):
        state.store.remove(resource, trees.decoded(entry.data), entry, trees.decoded(entry.data))


def admitted(state: ServerState, resource: Resource, tree: Tree, old: Tree | None, part: str = "") -> Tree:
    """Raises StatusError where a rule is broken. The statuses of built-in kinds are not checked."""
    problems = finalizer_errors(tree, old)
    if resource is CUSTOMRESOURCEDEFINITIONS and not part:
        tree = completed_definition(tree, old, state.clock.rfc3339())
        problems += crdvalidation.definition_errors(tree)
    elif (schema := state.registry.schema(resource)) is not None:
        tree, found = structural.admitted(schema, tree)
        problems += found
    if not part:
        tree = state.admission.prepare(conversion.storage_resource(resource), tree, old, state.lookup)
        problems += state.admission.errors(conversion.storage_resource(resource), tree, old)
    if problems:
        raise errors.invalid(resource, tree["metadata"].get("name", ""), problems)
    return tree


def finalizer_errors(tree: Tree, old: Tree | None) -> list[StatusCause]:
    """An object that is being deleted takes no new finalizers."""
    if old is None or "deletionTimestamp" not in old["metadata"]:
        return []
    known = old["metadata"].get("finalizers") or ()
    new = [name for name in tree["metadata"].get("finalizers") or () if name not in known]
    if not new:
        return []
    listed = ", ".join(f'"{name}"' for name in new)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [fielderrors.forbidden("metadata.finalizers", why)]
