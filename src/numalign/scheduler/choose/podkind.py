"""Pods that share their parts with one that was met before: recognised without reading them.

Informers make equal parts of pods one object (`api.sharing`), so that what was found out about a pod holds for the next
one of its kind. `standings` keeps its findings by this; pods that are equal and share nothing only take longer."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final, Generic, TypeVar

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.api.objects.podvolumes import Volume

T = TypeVar("T")
Parts = tuple[object, ...]

OF_SPEC: Final = attrgetter(
    "containers",
    "init_containers",
    "affinity",
    "tolerations",
    "node_selector",
    "node_name",
    "topology_spread_constraints",
    "resource_claims",
    "host_network",
    "host_users",
)
OF_META: Final = attrgetter("labels", "owner_references", "namespace")
NO_VOLUMES: Final[tuple[Volume, ...]] = ()


class PodKinds(Generic[T]):
    """The latest finding about pods of each kind."""

    def __init__(self, most: int) -> None:
        self._known: BoundedCache[int, tuple[Parts, T]] = BoundedCache(most)
        """By the identity of their containers, which are kept with it, so that nothing else gets it."""

    def find(self, parts: Parts) -> T | None:
        known = self._known.get(id(parts[0]))
        # Parts that are one object are not looked into.
        return known[1] if known is not None and known[0] == parts else None

    def keep(self, parts: Parts, finding: T) -> None:
        self._known.keep(id(parts[0]), (parts, finding))


def kind_parts(pod: Pod) -> Parts:
    """All that rules read of a pod that waits, but for what it asks for beside its containers; containers first."""
    spec = pod.spec
    volumes = spec.volumes if spec.volumes and _decide(spec.volumes) else NO_VOLUMES
    return (*OF_SPEC(spec), *OF_META(pod.metadata), volumes)


def _decide(volumes: Iterable[Volume]) -> bool:
    """Whether one of them is more than files of the pod's own: those have names of their own, too."""
    return any(volume != Volume(name=volume.name) for volume in volumes)
