"""The known objects of one resource, and the changes that each update makes.

`informer` writes; everything else reads. An object that was deleted and created again under the same name is two
changes, never an update. Pure: no I/O, no clock."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.kube.lists import Unreadable
from numalign.kube.resources import Named

T = TypeVar("T", bound=Named)

Key = tuple[str, str]
"""Namespace and name."""


class Change(Struct, Generic[T], frozen=True):
    """Added without `old`, deleted without `new`, else updated."""

    old: T | None
    new: T | None
    final: T | None = None
    """The last state of a deleted object, if the server sent it; None where only its absence was noticed."""


class Store(Generic[T]):
    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._objects.get((namespace, name))

    def put(self, thing: T | Unreadable) -> list[Change[T]]:
        """Takes the current state of an object."""
        key = key_of(thing.metadata)
        old = self._objects.get(key)
        if isinstance(thing, Unreadable):
            return self._replaced_unreadably(old, thing)
        if old is None:
            self._objects[key] = thing
            return [Change(None, thing)]
        if not is_same(old.metadata, thing.metadata):
            self._objects[key] = thing
            return [Change(old, None), Change(None, thing)]
        if old.metadata.resource_version == thing.metadata.resource_version:
            return []
        self._objects[key] = thing
        return [Change(old, thing)]

    def remove(self, thing: T | Unreadable) -> list[Change[T]]:
        """Takes the deletion of an object."""
        old = self._objects.get(key_of(thing.metadata))
        if old is None or not is_same(old.metadata, thing.metadata):
            return []
        del self._objects[key_of(thing.metadata)]
        return [Change(old, None, None if isinstance(thing, Unreadable) else thing)]

    def replace(self, found: "ListedObjects[T]") -> list[Change[T]]:
        """Takes a complete list. Deletions come first, as they free resources."""
        gone = [key for key in self._objects if key not in found.objects]
        changes = [Change(self._objects.pop(key), None) for key in gone]
        for thing in found.objects.values():
            changes += self.put(thing)
        return changes

    def _replaced_unreadably(self, old: T | None, thing: Unreadable) -> list[Change[T]]:
        """Keeps the last readable state of the same object; a new object of that name replaces it."""
        if old is None or is_same(old.metadata, thing.metadata):
            return []
        del self._objects[key_of(old.metadata)]
        return [Change(old, None)]


class ListedObjects(Generic[T]):
    """All objects of one list, collected page by page; unchanged objects keep their identity in memory."""

    def __init__(self, known: Store[T]) -> None:
        self.objects: dict[Key, T | Unreadable] = {}
        self._known = known

    def add(self, things: Iterable[T | Unreadable]) -> None:
        for thing in things:
            meta = thing.metadata
            old = self._known.get(meta.name, meta.namespace)
            unchanged = (
                old is not None
                and is_same(old.metadata, meta)
                and old.metadata.resource_version == meta.resource_version
                and not isinstance(thing, Unreadable)
            )
            self.objects[key_of(meta)] = old if unchanged and old is not None else thing

    def discard(self, thing: T | Unreadable) -> None:
        self.objects.pop(key_of(thing.metadata), None)


def key_of(meta: ObjectMeta) -> Key:
    return meta.namespace, meta.name


def is_same(one: ObjectMeta, other: ObjectMeta) -> bool:
    """The same object at two times, not two objects of one name."""
    return one.uid == other.uid
