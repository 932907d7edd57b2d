"""Where the objects are: encoded bytes, one counter of versions for all resources, a ring of events for each.

The verbs commit here and nobody else writes. Bytes are the truth: whoever wants a tree decodes one. After every commit
first the handlers inside the process hear of it, with trees, then the watchers, with the event. Handlers must not
write: they would be heard out of order."""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import fieldselectors
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.ring import SIZE, Entry, Event, EventKind, Ring
from numalign.simulator.trees import Tree

Watcher = Callable[[Event], None]
Listener = Callable[[EventKind, Event, Tree, Tree | None], None]
AFTER_SLASH: Final = "0"
"""The sign that follows "/": keys of one namespace are those between the two."""


class Shelf:
    """All objects of one resource, in the order of namespace/name, as etcd would have them."""

    def __init__(self, resource: Resource, ring: Ring) -> None:
        self.resource = resource
        self.entries: dict[str, Entry] = {}
        self.ring = ring
        self.version = 0
        """Of the last change."""
        self.watchers: dict[Watcher, None] = {}
        self.listeners: dict[Listener, None] = {}
        self._keys: list[str] = []
        self._by_node: dict[str, dict[str, None]] = {}

    def within(self, namespace: str) -> Iterator[Entry]:
        """In order; of all namespaces where none is given."""
        entries = self.entries
        if not namespace:
            return map(entries.__getitem__, self._keys)
        first = bisect_left(self._keys, f"{namespace}/")
        return map(entries.__getitem__, self._keys[first : bisect_left(self._keys, namespace + AFTER_SLASH)])

    def on_node(self, node: str) -> Iterator[Entry]:
        return map(self.entries.__getitem__, sorted(self._by_node.get(node, ())))

    def as_of(self, version: int) -> list[Entry]:
        """Every object as it was then, in order; the ring has to reach that far."""
        past: dict[str, Entry | None] = {}
        for event in self.ring.newest():
            if event.version <= version:
                break
            past[event.entry.key] = event.old
        if not past:
            return list(self.within(""))
        then = {key: entry for key, entry in (self.entries | past).items() if entry is not None}
        return [then[key] for key in sorted(then)]

    def put(self, key: str, old: Entry | None, new: Entry | None) -> None:
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
    def __init__(self, ring_size: int = SIZE) -> None:
        self.version = 1
        self._ring_size = ring_size
        self._shelves: dict[tuple[str, str], Shelf] = {}
        self._telling = False

    def shelf(self, resource: Resource) -> Shelf:
        shelf = self._shelves.get(resource.home)
        if shelf is None:
            shelf = Shelf(resource, Ring(self._ring_size))
            self._shelves[resource.home] = shelf
        return shelf

    def entry(self, resource: Resource, name: str, namespace: str) -> Entry | None:
        return self.shelf(resource).entries.get(f"{namespace}/{name}")

    def commit(self, resource: Resource, tree: Tree, old: Entry | None, before: Tree | None) -> Entry:
        """The object becomes `tree`, which from here on is nobody's to change; `before` is `old` decoded."""
        version = self._next()
        entry = encoded(resource, tree, version)
        self._tell(resource, Event("MODIFIED" if old else "ADDED", version, entry, old, {}), tree, before)
        return entry

    def remove(self, resource: Resource, tree: Tree, old: Entry, before: Tree) -> None:
        """The object, last seen as `tree`, is gone."""
        version = self._next()
        self._tell(resource, Event("DELETED", version, encoded(resource, tree, version), old, {}), tree, before)

    def _next(self) -> int:
        if self._telling:
            raise RuntimeError("a handler of changes must not write: note the key, and write from a task")
        self.version += 1
        return self.version

    def _tell(self, resource: Resource, event: Event, tree: Tree, before: Tree | None) -> None:
        shelf, entry = self.shelf(resource), event.entry
        shelf.put(entry.key, event.old, None if event.kind == "DELETED" else entry)
        shelf.ring.append(event)
        shelf.version = event.version
        self._telling = True
        try:
            for listener in list(shelf.listeners):
                listener(event.kind, event, tree, before)
            for watcher in list(shelf.watchers):
                watcher(event)
        finally:
            self._telling = False
            # Whoever comes back for it later is rare enough to have it made again; the ring would keep it twice.
            event.chunks.clear()


def encoded(resource: Resource, tree: Tree, version: int) -> Entry:
    """As it is kept; a version of 0 is none, for what is only shown."""
    metadata = tree["metadata"]
    if version:
        metadata["resourceVersion"] = str(version)
    return Entry(
        metadata.get("namespace", ""),
        metadata["name"],
        version,
        trees.encoded(tree),
        metadata.get("labels") or {},
        fieldselectors.of(resource, tree),
    )


def _node(entry: Entry | None) -> str:
    return entry.fields.get(fieldselectors.NODE, "") if entry is not None and entry.fields is not None else ""
