"""VolumeZone: nodes must be in the zone and region of a pod's bound volumes.

Volumes carry zone and region as labels, as they did before node affinity of volumes. Nodes without any such label
match every volume (kube-scheduler spec 1.16)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim
from numalign.placement.rules.clusterstate import ClusterState, Flags
from numalign.placement.rules.rowclasses import ABSENT
from numalign.placement.rules.rule import Coded, Refusal, Refusals, StaticFilter
from numalign.placement.rules.volumes import volumecatalogue
from numalign.placement.rules.volumes.intree import BETWEEN_ZONES, REGION, SUCCESSORS, ZONE
from numalign.placement.rules.volumes.volumestock import VolumeStock

OTHER_ZONE: Final = Refusal(("node(s) had no available volume zone",), unresolvable=True)

KEYS: Final = (*SUCCESSORS, ZONE, REGION)


class VolumePlace(Struct, frozen=True):
    """Values of one label from which a volume can be reached."""

    key: str
    values: frozenset[str]


class VolumeZone(StaticFilter):
    name: Final = "VolumeZone"

    def __init__(self, stock: VolumeStock) -> None:
        self._stock = stock

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.spec.volumes) and volumecatalogue.are_special(pod.spec.volumes)

    def prepare(self, pod: Pod, world: ClusterState) -> Coded | Refusal | None:
        if not pod.spec.volumes:
            return None
        places: list[VolumePlace] = []
        for claim in volumecatalogue.named(pod):
            if not claim.is_ephemeral:
                found = self._places_of_claim(claim)
                if isinstance(found, str):
                    return Refusal((found,), unresolvable=True)
                places += found
        return _coded(places, world) if places else None

    def _places_of_claim(self, name: volumecatalogue.ClaimName) -> list[VolumePlace] | str:
        """The places of the claim's volume, or the reason why no node fits."""
        if not name.name:
            return "PersistentVolumeClaim had no name"
        claim = self._stock.claims.known(name.full)
        if claim is None:
            return volumecatalogue.not_found(name.name)
        if not claim.spec.volume_name:
            return self._why_unbound(claim) or []
        volume = self._stock.volumes.known(claim.spec.volume_name)
        if volume is None:
            return f'persistentvolume "{claim.spec.volume_name}" not found'
        return list(_places(volume))

    def _why_unbound(self, claim: PersistentVolumeClaim) -> str | None:
        name = claim.class_name
        if not name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        storage_class = self._stock.classes.known(name)
        if storage_class is None:
            return f'storageclass.storage.k8s.io "{name}" not found'
        if not storage_class.volume_binding_mode:
            return f'VolumeBindingMode not set for StorageClass "{name}"'
        waits = storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        return None if waits else "PersistentVolume had no name"


def _places(volume: PersistentVolume) -> Iterator[VolumePlace]:
    for key in KEYS:
        if key in volume.metadata.labels:
            values = frozenset(each.strip() for each in volume.metadata.labels[key].split(BETWEEN_ZONES))
            # A list with a gap in it is ignored altogether.
            if "" not in values:
                yield VolumePlace(key, values)


def _coded(places: list[VolumePlace], world: ClusterState) -> Coded:
    reached = reduce(np.logical_and, (_rows(place, world) for place in places))
    nowhere = reduce(np.logical_and, (world.labels.column(key).ids == ABSENT for key in KEYS))
    return Coded(codes=np.where(reached | nowhere, 0, 1).astype(np.int32), refusals=Refusals(OTHER_ZONE))


def _rows(place: VolumePlace, world: ClusterState) -> Flags:
    rows = _with(place.key, place.values, world)
    if place.key not in SUCCESSORS:
        return rows
    unlabelled = np.equal(world.labels.column(place.key).ids, ABSENT)
    return rows | unlabelled & _with(SUCCESSORS[place.key], place.values, world)


def _with(key: str, values: frozenset[str], world: ClusterState) -> Flags:
    return world.labels.column(key).table(values, lambda value: value in values).astype(np.bool_)
