"""The object store: encoded objects, one resourceVersion counter, and a watch cache for each resource.

Only the verbs write to it. The store keeps bytes; a caller that needs a tree decodes one. After every commit the store
calls first the in-process listeners, with trees, then the watchers, with the event. Listeners must not write: their
events would arrive out of order.

The watch cache holds the most recent events of a resource, for watches that resume and for lists of an earlier version.
When it is full, it drops the oldest event, and requests for older versions get 410."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Final, Literal, Protocol

from msgspec import Struct

from numalign.api.caches import BoundedCache
from numalign.simulator import trees
from numalign.simulator.apiserver.storage import fieldselectors
from numalign.simulator.apiserver.storage.resources import GroupResource, Resource
from numalign.simulator.trees import Tree

EventKind = Literal["ADDED", "MODIFIED", "DELETED"]
SIZE: Final = 10_000
AFTER_SLASH: Final = "0"
"""The character after "/": the keys of a namespace lie between the two."""
DECODED_OBJECTS: Final = 1000


class StoredObject(Struct, frozen=True, gc=False):
    """One version of one object: its bytes, and what selectors match against."""

    namespace: str
    name: str
    version: int
    data: bytes
    labels: dict[str, str]
    fields: dict[str, str] | None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class StoreEvent(Struct, gc=False):
    """`entry` is the object after the change, or its last state if it was deleted; `old` is the state before."""

    kind: EventKind
    version: int
    entry: StoredObject
    old: StoredObject | None
    chunks: dict[str, bytes]
    """The encoded event by apiVersion, made for the first watcher and shared while the event is delivered."""


class WatchCache:
    def __init__(self, size: int) -> None:
        self._events: deque[StoreEvent] = deque()
        self._size = size
        self.floor = 0
        """The cache holds every event after this version."""

    def append(self, event: StoreEvent) -> None:
        self._events.append(event)
        if len(self._events) > self._size:
            self.floor = self._events.popleft().version

    def reaches(self, version: int) -> bool:
        return version >= self.floor

    def newest(self) -> Iterator[StoreEvent]:
        return reversed(self._events)

    def after(self, version: int) -> list[StoreEvent]:
        """The events after the version, in order. They are complete only if the cache reaches back to the version."""
        found = list(takewhile(lambda event: event.version > version, self.newest()))
        found.reverse()
        return found


Watcher = Callable[[StoreEvent], None]
Listener = Callable[[EventKind, StoreEvent, Tree, Tree | None], None]


class Collection:
    """All objects of one resource, ordered by namespace/name, as etcd orders keys."""

    def __init__(self, resource: Resource, watch_cache: WatchCache) -> None:
        self.resource = resource
        self.entries: dict[str, StoredObject] = {}
        self.watch_cache = watch_cache
        self.version = 0
        """The version of the last change."""
        self.watchers: dict[Watcher, None] = {}
        self.listeners: dict[Listener, None] = {}
        self._keys: list[str] = []
        self._by_node: dict[str, dict[str, None]] = {}

    def within(self, namespace: str) -> Iterator[StoredObject]:
        """The objects of a namespace, or of all namespaces if it is empty, in order."""
        entries = self.entries
        if not namespace:
            return map(entries.__getitem__, self._keys)
        first = bisect_left(self._keys, f"{namespace}/")
        return map(entries.__getitem__, self._keys[first : bisect_left(self._keys, namespace + AFTER_SLASH)])

    def on_node(self, node: str) -> Iterator[StoredObject]:
        return map(self.entries.__getitem__, sorted(self._by_node.get(node, ())))

    def as_of(self, version: int) -> list[StoredObject]:
        """Every object as of the version, in order. The watch cache has to reach back to it."""
        past: dict[str, StoredObject | None] = {}
        for event in self.watch_cache.newest():
            if event.version <= version:
                break
            past[event.entry.key] = event.old
        if not past:
            return list(self.within(""))
        then = {key: entry for key, entry in (self.entries | past).items() if entry is not None}
        return [then[key] for key in sorted(then)]

    def put(self, key: str, old: StoredObject | None, new: StoredObject | None) -> None:
        if old is None:
            insort(self._keys, key)
        if new is None:
            del self._keys[bisect_left(self._keys, key)]
            del self.entries[key]
        else:
            self.entries[key] = new
        self._index(key, _node(old), _node(new))

    def _index(self, key: str, before: str, after: str) -> None:
        if before == after:
            return
        if before:
            del self._by_node[before][key]
        if after:
            self._by_node.setdefault(after, {})[key] = None


class Store:
    def __init__(self, watch_cache_size: int = SIZE) -> None:
        self.version = 1
        self._watch_cache_size = watch_cache_size
        self._collections: dict[GroupResource, Collection] = {}
        self._telling = False

    def collection(self, resource: Resource) -> Collection:
        collection = self._collections.get(resource.group_resource)
        if collection is None:
            collection = Collection(resource, WatchCache(self._watch_cache_size))
            self._collections[resource.group_resource] = collection
        return collection

    def entry(self, resource: Resource, name: str, namespace: str) -> StoredObject | None:
        return self.collection(resource).entries.get(f"{namespace}/{name}")

    def commit(self, resource: Resource, tree: Tree, old: StoredObject | None, before: Tree | None) -> StoredObject:
        """Stores `tree` as the new state. The caller must not change it afterwards; `before` is `old`, decoded."""
        version = self._next()
        entry = encode_object(resource, tree, version)
        self._notify(resource, StoreEvent("MODIFIED" if old else "ADDED", version, entry, old, {}), tree, before)
        return entry

    def remove(self, resource: Resource, tree: Tree, old: StoredObject, before: Tree) -> None:
        """Deletes the object, whose last state is `tree`."""
        version = self._next()
        self._notify(
            resource, StoreEvent("DELETED", version, encode_object(resource, tree, version), old, {}), tree, before
        )

    def _next(self) -> int:
        if self._telling:
            raise RuntimeError("a listener must not write: note the key, and write from a task")
        self.version += 1
        return self.version

    def _notify(self, resource: Resource, event: StoreEvent, tree: Tree, before: Tree | None) -> None:
        collection, entry = self.collection(resource), event.entry
        collection.put(entry.key, event.old, None if event.kind == "DELETED" else entry)
        collection.watch_cache.append(event)
        collection.version = event.version
        self._telling = True
        try:
            for listener in list(collection.listeners):
                listener(event.kind, event, tree, before)
            for watcher in list(collection.watchers):
                watcher(event)
        finally:
            self._telling = False
            # A watch that resumes later encodes the event again; this is rare, and keeping the bytes would double the
            # cache.
            event.chunks.clear()


def encode_object(resource: Resource, tree: Tree, version: int) -> StoredObject:
    """The stored form of an object. Version 0 leaves resourceVersion alone, for dry runs and deleted objects."""
    metadata = tree["metadata"]
    if version:
        metadata["resourceVersion"] = str(version)
    return StoredObject(
        metadata.get("namespace", ""),
        metadata["name"],
        version,
        trees.encoded(tree),
        metadata.get("labels") or {},
        fieldselectors.selectable_fields(resource, tree),
    )


def _node(entry: StoredObject | None) -> str:
    return entry.fields.get(fieldselectors.NODE, "") if entry is not None and entry.fields is not None else ""


class ObjectReader(Protocol):
    """Reads other objects for admission: one by name (None if absent) or all of a resource. The trees are READ ONLY."""

    def __call__(self, resource: Resource, name: str, namespace: str = "") -> Tree | None: ...

    def all(self, resource: Resource) -> list[Tree]: ...


class StoreReader:
    """Reads the store and caches decoded objects: most lookups are of the same few namespaces, accounts and classes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._decoded: BoundedCache[bytes, Tree] = BoundedCache(DECODED_OBJECTS)
        self._all: dict[GroupResource, tuple[int, list[Tree]]] = {}

    def __call__(self, resource: Resource, name: str, namespace: str = "") -> Tree | None:
        found = self._store.entry(resource, name, namespace)
        if found is None:
            return None
        tree = self._decoded.get(found.data)
        if tree is None:
            tree = self._decoded.keep(found.data, trees.decoded(found.data))
        return tree

    def all(self, resource: Resource) -> list[Tree]:
        collection = self._store.collection(resource)
        version, found = self._all.get(resource.group_resource, (-1, []))
        if version != collection.version:
            found = [trees.decoded(entry.data) for entry in collection.within("")]
            self._all[resource.group_resource] = (collection.version, found)
        return found
