"""The in-process interface of the API server: every verb as a plain, synchronous method.

Controllers, simulated nodes and tests call it. The HTTP layer calls the modules of the verbs directly, because it wants
bytes. Returned trees belong to the caller; passed trees are not kept. Only the trees of a `Change` are shared, and read
only."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from msgspec import Struct

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, Resource
from numalign.simulator.apiserver.storage.store import SIZE, EventKind, Store, StoredObject, StoreEvent
from numalign.simulator.apiserver.verbs import conversion, strategy, subresources
from numalign.simulator.apiserver.verbs.create import create_object
from numalign.simulator.apiserver.verbs.delete import DeleteOptions, delete_object
from numalign.simulator.apiserver.verbs.list import list_objects, predicate
from numalign.simulator.apiserver.verbs.patch import Patch, PatchTarget, patch_object
from numalign.simulator.apiserver.verbs.state import Admission, NoAdmission, ServerState, WriteOptions
from numalign.simulator.apiserver.verbs.subresources import Binding, bind, evict
from numalign.simulator.apiserver.verbs.update import update_object
from numalign.simulator.clock import Clock
from numalign.simulator.trees import Tree

__all__ = ["Api", "Change", "Handler", "ObjectList", "Patch", "Subscription"]


class ObjectList(Struct, frozen=True):
    items: list[Tree]
    version: str


@dataclass(frozen=True, slots=True)
class Change:
    """`tree` and `old` are READ ONLY: every subscriber sees the same trees."""

    kind: EventKind
    resource: Resource
    key: tuple[str, str]
    """Namespace and name."""
    tree: Tree
    old: Tree | None
    version: int


Handler = Callable[[Change], None]


class Subscription:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel

    def cancel(self) -> None:
        self._cancel()


class Api:
    def __init__(
        self, clock: Clock, chance: random.Random, *, admission: Admission | None = None, watch_cache_size: int = SIZE
    ) -> None:
        """`watch_cache_size` is the number of events of each resource that are kept for watches that resume."""
        self.clock = clock
        self.chance = chance
        self.state = ServerState(clock, chance, admission or NoAdmission(), Store(watch_cache_size))
        definitions = self.state.store.collection(CUSTOMRESOURCEDEFINITIONS)
        definitions.listeners[strategy.definition_listener(self.state)] = None

    def get(self, resource: Resource, name: str, namespace: str = "") -> Tree:
        """A new tree, which the caller may change."""
        resource = self._served(resource)
        return _tree(resource, self.state.entry(resource, name, namespace))

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        """The objects of a namespace, or of all namespaces if it is empty, ordered by key."""
        resource = self._served(resource)
        page = list_objects(self.state.store, resource, predicate(resource, namespace, labels, fields))
        return ObjectList([_tree(resource, entry) for entry in page.entries], str(page.version))

    def create(self, resource: Resource, tree: Tree, *, manager: str = "", dry_run: bool = False) -> Tree:
        """Creates the object in the namespace of its metadata, or in `default`."""
        resource, options = self._served(resource), WriteOptions(manager, dry_run)
        return _tree(resource, create_object(self.state, resource, trees.copied(tree), options))

    def update(
        self, resource: Resource, tree: Tree, *, subresource: str = "", manager: str = "", dry_run: bool = False
    ) -> Tree:
        """Replaces the object or a `part` of it: "status", "scale" or "finalize".

        Raises a conflict if the resourceVersion is not the latest; an object without resourceVersion replaces any
        version. A write that changes nothing is not stored."""
        resource, options = self._served(resource), WriteOptions(manager, dry_run)
        if subresource == "scale":
            entry = subresources.update_scale(self.state, resource, trees.copied(tree), options)
            return subresources.scale_of(self.state.registry, resource, _tree(resource, entry))
        return _tree(resource, update_object(self.state, resource, trees.copied(tree), subresource, options))

    def patch(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        patch: Patch,
        *,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Tree:
        resource, options = self._served(resource), WriteOptions(manager, dry_run, force)
        place = PatchTarget(resource, name, namespace, subresource)
        tree = _tree(resource, patch_object(self.state, place, patch, options).entry)
        return subresources.scale_of(self.state.registry, resource, tree) if subresource == "scale" else tree

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace: int | None = None,
        uid: str = "",
        version: str = "",
        propagation: str = "",
        dry_run: bool = False,
    ) -> Tree:
        """The object as it is now, or its last state: finalizers and a pod's grace period may keep it for a while."""
        resource, options = self._served(resource), DeleteOptions(grace, uid, version, propagation, dry_run)
        return _tree(resource, delete_object(self.state, resource, name, namespace, options).entry)

    def bind(self, pod: str, namespace: str, node: str, *, uid: str = "", dry_run: bool = False) -> None:
        bind(self.state, Binding(pod, namespace, node, uid), dry_run=dry_run)

    def evict(
        self, pod: str, namespace: str, *, grace: int | None = None, uid: str = "", dry_run: bool = False
    ) -> None:
        evict(self.state, pod, namespace, DeleteOptions(grace, uid, dry_run=dry_run))

    def subscribe(self, resource: Resource, handler: Handler, *, since_now: bool = False) -> Subscription:
        """Calls the handler for every change right after its write, in order.

        Existing objects come first, as ADDED, unless `since_now` is set. The handler must not write: it notes the key
        and wakes a task."""
        collection = self.state.store.collection(resource)

        def listener(kind: EventKind, event: StoreEvent, tree: Tree, before: Tree | None) -> None:
            entry = event.entry
            handler(Change(kind, resource, (entry.namespace, entry.name), tree, before, event.version))

        if not since_now:
            for entry in list(collection.within("")):
                tree = trees.decoded(entry.data)
                handler(Change("ADDED", resource, (entry.namespace, entry.name), tree, None, entry.version))
        collection.listeners[listener] = None
        return Subscription(lambda: collection.listeners.pop(listener, None) and None)

    def _served(self, resource: Resource) -> Resource:
        """The resource as it is served now: callers may hold an older form of a custom resource."""
        found = self.state.registry.find(resource.group, resource.version, resource.plural)
        if found is None:
            raise errors.no_such_path()
        return found


def _tree(resource: Resource, entry: StoredObject) -> Tree:
    return trees.decoded(conversion.to_version(resource, entry.data))
