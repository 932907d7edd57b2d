"""Watches: the start version, and the events of the store as one watcher sees them.

`Watch` turns the store's events into those of one watcher: an object that leaves its selection is DELETED for it, one
that enters is ADDED. `http.watchstream` writes the events; nothing here knows sockets."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.store import Collection, EventKind, Store, StoredObject, StoreEvent
from numalign.simulator.apiserver.verbs.list import SelectionPredicate, list_objects

INITIAL_END: Final = "k8s.io/initial-events-end"


class WatchStart(Struct, frozen=True):
    """`version` empty or 0: existing objects come first. `initial` True: so too, with a bookmark after them; False:
    never."""

    version: str = ""
    initial: bool | None = None


class WatchEvent(Struct, frozen=True):
    """An event as one watcher sees it: perhaps of another type, or with the last state that it knew."""

    kind: EventKind
    entry: StoredObject
    event: StoreEvent | None
    """The store's event if the watcher sees it unchanged, so that its bytes can be shared."""


Take = Callable[[WatchEvent], None]


class Watch:
    """`begin` returns the first events; from then on `take` receives every event until `close`."""

    def __init__(self, store: Store, resource: Resource, chosen: SelectionPredicate, take: Take) -> None:
        self._store = store
        self._shelf: Collection = store.collection(resource)
        self._chosen = chosen
        self._take = take

    def begin(self, since: WatchStart) -> list[WatchEvent]:
        """Raises StatusError 410 if the watch cache no longer reaches the version; the watcher receives it as an ERROR
        event."""
        first = list(self._first(since))
        self._shelf.watchers[self._on_event] = None
        return first

    def close(self) -> None:
        self._shelf.watchers.pop(self._on_event, None)

    def _first(self, since: WatchStart) -> Iterator[WatchEvent]:
        fresh = since.version in ("", "0")
        version = 0 if fresh else version_number(since.version)
        if since.initial or (fresh and since.initial is None):
            return self._present()
        if fresh:
            return iter(())
        if not self._shelf.watch_cache.reaches(version):
            raise errors.gone(f"too old resource version: {version} ({self._shelf.watch_cache.floor})")
        return self._missed(version)

    def _present(self) -> Iterator[WatchEvent]:
        for entry in list_objects(self._store, self._shelf.resource, self._chosen).entries:
            yield WatchEvent("ADDED", entry, None)

    def _missed(self, version: int) -> Iterator[WatchEvent]:
        for event in self._shelf.watch_cache.after(version):
            seen = self._seen(event)
            if seen is not None:
                yield seen

    def _on_event(self, event: StoreEvent) -> None:
        seen = self._seen(event)
        if seen is not None:
            self._take(seen)

    def _seen(self, event: StoreEvent) -> WatchEvent | None:
        chosen = self._chosen
        if not (chosen.namespace or chosen.is_narrow):
            return WatchEvent(event.kind, event.entry, event)
        inside = event.kind != "DELETED" and chosen.holds(event.entry)
        was_inside = event.old is not None and chosen.holds(event.old)
        if inside:
            kind: EventKind = "MODIFIED" if was_inside else "ADDED"
            return WatchEvent(kind, event.entry, event if kind == event.kind else None)
        if not was_inside or event.old is None:
            return None
        if event.kind == "DELETED":
            return WatchEvent("DELETED", event.entry, event)
        return WatchEvent("DELETED", _last_seen(event.old, event.version), None)


def _last_seen(old: StoredObject, version: int) -> StoredObject:
    """The object as the watcher knew it, with the version at which it left the selection."""
    data = old.data.replace(b'"resourceVersion":"%d"' % old.version, b'"resourceVersion":"%d"' % version, 1)
    return StoredObject(old.namespace, old.name, version, data, old.labels, old.fields)


def version_number(text: str) -> int:
    if not text.isdecimal():
        why = f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise StatusError(500, "", f"resourceVersion: {why}")
    return int(text)
