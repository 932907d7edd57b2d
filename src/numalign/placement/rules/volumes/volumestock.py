"""All storage objects of the cluster, for the volume plugins.

`scheduler.intake` puts and drops them; plugins read. A volume or claim can be assumed as the scheduler is about to
write it, until the API server shows a newer version or the binding fails (kube-scheduler spec 1.17). Followers are
notified of every change."""

from __future__ import annotations

from collections.abc import Callable, ValuesView
from typing import Generic, Protocol, TypeVar

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.volumes import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


class NamedObject(Protocol):
    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=NamedObject)
Follower = Callable[[T], None]


class Shelf(Generic[T]):
    """Objects of one kind, by name (namespace/name if namespaced) and by further indexes."""

    def __init__(self, **groups: Callable[[T], str]) -> None:
        self._groups = groups
        self._known: dict[str, T] = {}
        self._assumed: dict[str, T] = {}
        self._grouped: dict[tuple[str, str], dict[str, T]] = {}
        self._followers: list[Follower[T]] = []
        self.generation = 0
        """Raised whenever something changes."""

    def get(self, name: str) -> T | None:
        """The object, in its assumed version if there is one."""
        return self._assumed.get(name) or self._known.get(name)

    def known(self, name: str) -> T | None:
        """The object as the API server has it."""
        return self._known.get(name)

    def assumed(self) -> tuple[T, ...]:
        """All objects with an assumed version."""
        return tuple(self._assumed.values())

    def among(self, group: str, value: str) -> ValuesView[T]:
        return self._grouped.get((group, value), {}).values()

    def put(self, thing: T) -> None:
        name = thing.metadata.full_name
        before, known = self.get(name), self._known.get(name)
        self._known[name] = thing
        if known is None or known.metadata.resource_version != thing.metadata.resource_version:
            self._assumed.pop(name, None)
        self._replace(name, before)

    def drop(self, name: str) -> None:
        before = self.get(name)
        self._known.pop(name, None)
        self._assumed.pop(name, None)
        self._replace(name, before)

    def assume(self, thing: T) -> None:
        """Assumes this version of an object until the API server shows a newer one."""
        name = thing.metadata.full_name
        before = self.get(name)
        self._assumed[name] = thing
        self._replace(name, before)

    def restore(self, name: str) -> None:
        before = self.get(name)
        self._assumed.pop(name, None)
        self._replace(name, before)

    def follow(self, follower: Follower[T]) -> None:
        """Calls `follower` for every present object, and for every change with the object before and after."""
        self._followers.append(follower)
        for name in self._known:
            follower(self._assumed.get(name) or self._known[name])

    def _replace(self, name: str, before: T | None) -> None:
        after = self.get(name)
        self.generation += 1
        for group, value in self._groups.items():
            if before is not None:
                self._grouped.get((group, value(before)), {}).pop(name, None)
            if after is not None:
                self._grouped.setdefault((group, value(after)), {})[name] = after
        for follower in self._followers:
            for thing in (before, after):
                if thing is not None:
                    follower(thing)


class VolumeStock:
    def __init__(self) -> None:
        self.volumes: Shelf[PersistentVolume] = Shelf(storage_class=lambda volume: volume.class_name)
        self.claims: Shelf[PersistentVolumeClaim] = Shelf(volume=lambda claim: claim.spec.volume_name)
        self.classes: Shelf[StorageClass] = Shelf()
        self.nodes: Shelf[CSINode] = Shelf()
        self.drivers: Shelf[CSIDriver] = Shelf()
        self.capacities: Shelf[CSIStorageCapacity] = Shelf(storage_class=lambda each: each.storage_class_name)
        self.attachments: Shelf[VolumeAttachment] = Shelf(
            node=lambda each: each.spec.node_name, volume=lambda each: each.spec.source.persistent_volume_name
        )

    @property
    def generation(self) -> int:
        """Raised whenever something changes."""
        shelves = (self.volumes, self.claims, self.classes, self.nodes, self.drivers, self.capacities)
        return sum(shelf.generation for shelf in shelves) + self.attachments.generation
